#include "weft/io/tar.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/reader.h"

namespace weft {

namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kLongestExtension = uint64_t{1} << 20;  // of names and pax records

struct Field {
  size_t at, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kType = 156;
constexpr std::string_view kUstar("ustar\00000", 8);

/// What an extension says of the member after it.
struct Extension {
  std::optional<std::string> name;
  std::optional<uint64_t> size;
};

class TarReader {
 public:
  TarReader(std::span<const std::byte> data, std::string_view what,
            std::shared_ptr<const void> owner, const UnpackLimits& limits)
      : reader_(data, what), what_(what), owner_(std::move(owner)), limits_(limits) {}

  std::vector<NamedArray> read() {
    while (!at_end()) read_member();
    if (next_.name || next_.size) wrong("ends after an extension, without its member");
    return std::move(files_);
  }

 private:
  // A block of zeros, and nothing else after it.
  bool at_end() {
    const auto is_zero = [](char c) { return c == 0; };
    begin_ = reader_.offset();
    header_ = reader_.text(kBlock);
    if (!std::ranges::all_of(header_, is_zero)) return false;
    if (!std::ranges::all_of(reader_.text(reader_.remaining()), is_zero))
      wrong("something follows its end");
    return true;
  }

  void read_member() {
    check_header();
    const char type = header_[kType];
    const uint64_t size = take_size(type);
    const std::string_view content = reader_.text(size);
    // The last block's rest; some writers leave it out at the very end.
    reader_.skip(std::min<uint64_t>((kBlock - size % kBlock) % kBlock, reader_.remaining()));
    switch (type) {
      case 'x': return read_pax(content, false);
      case 'g': return read_pax(content, true);
      case 'L': return take_name(content);
      case 'K': return check_extension(content.size());  // where a link leads
      case '\0':
      case '0':
      case '7': return add(content);
      case '5': break;
      case '1':
      case '2':
      case '3':
      case '4':
      case '6':
        if (size != 0) wrong("a link or device with {} bytes of content", size);
        break;
      case 'S': wrong("a sparse file; make the archive without --sparse");
      default: wrong("a member of unknown type {}", quoted_name({&type, 1}));
    }
    next_ = {};
  }

  void check_header() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
      sum += own ? ' ' : static_cast<unsigned char>(header_[i]);
    }
    if (number(kChecksum) != sum)
      wrong("the header's checksum is not {:o}: it is no tar archive, or damaged", sum);
  }

  std::string_view field(Field f) const { return header_.substr(f.at, f.size); }
  std::string_view text(Field f) const {
    const std::string_view whole = field(f);
    return whole.substr(0, whole.find('\0'));
  }

  // Octal digits, or, where the first bit is set, big-endian binary (GNU).
  uint64_t number(Field f) const {
    std::string_view digits = field(f);
    if ((static_cast<unsigned char>(digits[0]) & 0x80) != 0) return binary(digits);
    digits = digits.substr(std::min(digits.find_first_not_of(' '), digits.size()));
    digits = digits.substr(0, digits.find_first_of(std::string_view(" \0", 2)));
    uint64_t value = 0;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    const bool whole = error == std::errc() && stop == digits.data() + digits.size();
    if (!whole && !digits.empty()) wrong("{} is not an octal number", quoted_name(digits));
    return value;
  }
  uint64_t binary(std::string_view digits) const {
    uint64_t value = static_cast<unsigned char>(digits[0]) & 0x7f;
    for (const char c : digits.substr(1)) {
      if (value >> 55 != 0) wrong("a size that is negative or above 2^63");
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }

  uint64_t take_size(char type) {
    const bool extension = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    return extension || !next_.size ? number(kSize) : *next_.size;
  }

  void check_extension(uint64_t size) const {
    if (size > kLongestExtension)
      wrong("an extension of {} bytes; at most {} are read", size, kLongestExtension);
  }
  void take_name(std::string_view content) {
    check_extension(content.size());
    if (next_.name) wrong("two names for one member");
    next_.name = content.substr(0, content.find('\0'));
  }

  // "27 path=some/long/name\n": the length counts itself.
  void read_pax(std::string_view content, bool global) {
    check_extension(content.size());
    while (!content.empty() && content[0] != '\0') {
      size_t length = 0;
      const auto [stop, error] =
          std::from_chars(content.data(), content.data() + content.size(), length);
      const auto digits = static_cast<size_t>(stop - content.data());
      const bool whole = error == std::errc() && length > digits + 2 && length <= content.size() &&
                         *stop == ' ' && content[length - 1] == '\n';
      const size_t equals = whole ? content.find('=', digits + 1) : content.npos;
      if (equals >= length) wrong("a malformed pax record");
      take_pax(content.substr(digits + 1, equals - digits - 1),
               content.substr(equals + 1, length - equals - 2), global);
      content.remove_prefix(length);
    }
  }
  void take_pax(std::string_view key, std::string_view value, bool global) {
    if (key.starts_with("GNU.sparse")) wrong("a sparse file; make the archive without --sparse");
    const bool counts = key == "path" || key == "size";
    if (!counts) return;
    if (global) wrong("a pax record {} for all members", quoted_name(key));
    if (key == "path") return take_name(value);
    uint64_t size = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || stop != value.data() + value.size() || next_.size)
      wrong("a pax size {} that is no number, or the second one", quoted_name(value));
    next_.size = size;
  }

  std::string name() const {
    if (next_.name) return *next_.name;
    std::string name(text(kName));
    // GNU's headers have other things where ustar's have the folder.
    const std::string_view prefix = field(kMagic) == kUstar ? text(kPrefix) : "";
    return prefix.empty() ? name : std::string(prefix) + "/" + name;
  }

  void add(std::string_view content) {
    std::string member = name();
    next_ = {};
    if (member.starts_with("./")) member.erase(0, 2);
    if (member.ends_with('/') && content.empty()) return;  // v7's folders
    if (const char* why = wrong_member_name(member))
      wrong("the name {} {}", quoted_name(member), why);
    if (!names_.insert(member).second) wrong("{} is there twice", quoted_name(member));
    if (files_.size() >= limits_.most_members)
      fail_runtime("tar.size", "{}: more than {} files", what_, limits_.most_members);
    const auto bytes = std::as_bytes(std::span(content));
    files_.push_back(
        {std::move(member), {DType::U8, {static_cast<int64_t>(bytes.size())}, bytes, owner_}});
  }

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> pattern, Args&&... args) const {
    std::string problem;
    append_vformat(problem, pattern, fmt::make_format_args(args...));
    fail_runtime("tar.format", "{}: {} (the header at offset {})", what_, problem, begin_);
  }

  ByteReader reader_;
  std::string_view what_, header_;
  std::shared_ptr<const void> owner_;
  const UnpackLimits& limits_;
  size_t begin_ = 0;
  Extension next_;
  std::vector<NamedArray> files_;
  std::unordered_set<std::string> names_;
};

}  // namespace

std::vector<NamedArray> untar(std::span<const std::byte> data, std::string_view what,
                              std::shared_ptr<const void> owner, const UnpackLimits& limits) {
  return TarReader(data, what, std::move(owner), limits).read();
}

std::vector<NamedArray> read_tar(const std::string& path, const UnpackLimits& limits) {
  const auto file = MappedFile::open(path);
  const auto size = static_cast<int64_t>(file->bytes().size());
  const HostArray all = unpacked({DType::U8, {size}, file->bytes(), file}, path, limits);
  return untar(all.bytes, path, all.owner, limits);
}

}  // namespace weft
