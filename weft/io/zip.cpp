#include "weft/io/zip.h"

#include <algorithm>
#include <unordered_set>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/io/gzip.h"
#include "weft/io/zip_format.h"

namespace weft {

namespace {

using namespace zip;  // NOLINT: names of the format

/// Where the directory lies, and how many members it has.
struct Directory {
  uint64_t members = 0, begin = 0, size = 0;
};

/// What both the directory and the header before the data say of a member.
struct Header {
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, bytes = 0;
  std::string_view name;
};

struct Entry {
  Header header;
  uint64_t begin = 0;       // of the header before the data
  uint64_t data_begin = 0;  // of the data
};

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> data, std::string_view what, const UnpackLimits& limits)
      : data_(data), what_(what), limits_(limits) {}

  std::vector<ZipMember> read() {
    const Directory directory = read_end();
    read_directory(directory);
    for (Entry& entry : entries_) read_local(entry, directory.begin);
    check_layout(directory.begin);
    return members();
  }

 private:
  // The end record is the file's last 22 bytes, or a comment follows that says how long it is.
  uint64_t find_end() const {
    for (uint64_t comment = 0; comment <= UINT16_MAX && comment + kEndBytes <= data_.size();
         ++comment) {
      const uint64_t at = data_.size() - kEndBytes - comment;
      ByteReader reader(data_, what_);
      reader.seek(at);
      if (reader.u32() != kEnd) continue;
      reader.skip(16);
      if (reader.u16() == comment) return at;
      wrong("something other than its comment follows the end record at offset {}", at);
    }
    wrong("has no end record: it is not a zip archive, is cut short, or bytes follow it");
  }

  Directory read_end() const {
    const uint64_t at = find_end();
    ByteReader reader(data_, what_);
    reader.seek(at + 4);
    const uint16_t disk = reader.u16(), first_disk = reader.u16(), here = reader.u16();
    Directory directory;
    directory.members = reader.u16();
    directory.size = reader.u32();
    directory.begin = reader.u32();
    if (disk != 0 || first_disk != 0 || here != directory.members)
      wrong("is one of several disks of an archive; join them first");
    const uint64_t end = widen(directory, at);
    const auto directory_end = checked_add(directory.begin, directory.size);
    if (!directory_end || *directory_end != end)
      wrong("its directory of {} bytes from offset {} does not end at the end record at {}",
            directory.size, directory.begin, end);
    if (directory.members > limits_.most_members)
      fail_runtime("zip.size", "{}: {} members; at most {} are read", what_, directory.members,
                   limits_.most_members);
    return directory;
  }

  // The zip64 record, where there is one, must say the same as the fields that are not all ones.
  // Gives where the records of the end begin.
  uint64_t widen(Directory& narrow, uint64_t end) const {
    ByteReader reader(data_, what_);
    const bool needed =
        narrow.members == kMany16 || narrow.size == kMany32 || narrow.begin == kMany32;
    if (end < kLocatorBytes + kEnd64Bytes) {
      if (needed) wrong("lacks the zip64 record that it needs");
      return end;
    }
    reader.seek(end - kLocatorBytes);
    if (reader.u32() != kLocator) {
      if (needed) wrong("lacks the zip64 record that it needs");
      return end;
    }
    const uint32_t disk = reader.u32();
    const uint64_t at = reader.u64();
    if (disk != 0 || reader.u32() > 1 || at != end - kLocatorBytes - kEnd64Bytes)
      wrong("its zip64 locator at offset {} points to {}", end - kLocatorBytes, at);
    reader.seek(at);
    if (reader.u32() != kEnd64 || reader.u64() != kEnd64Bytes - 12)
      wrong("has no zip64 record at offset {}", at);
    reader.skip(2 + 2 + 4 + 4);
    const uint64_t here = reader.u64();
    Directory wide;
    wide.members = reader.u64();
    wide.size = reader.u64();
    wide.begin = reader.u64();
    const bool equal = agree(narrow.members, wide.members, kMany16) &&
                       agree(narrow.size, wide.size, kMany32) &&
                       agree(narrow.begin, wide.begin, kMany32) && here == wide.members;
    if (!equal) wrong("its end record and its zip64 record at offset {} differ", at);
    narrow = wide;
    return at;
  }
  static bool agree(uint64_t narrow, uint64_t wide, uint64_t many) {
    return narrow == many || narrow == wide;
  }

  void read_directory(const Directory& directory) {
    ByteReader reader(data_.subspan(directory.begin, directory.size), what_);
    std::unordered_set<std::string_view> names;
    const size_t count = reader.count(directory.members, kCentralBytes);
    for (size_t i = 0; i < count; ++i) {
      const Entry& entry = entries_.emplace_back(read_central(reader, directory));
      const std::string_view name = entry.header.name;
      if (!names.insert(name).second) wrong("{} is listed twice", quoted_name(name));
      if (const char* why = wrong_member_name(name))
        wrong("the name {} {}", quoted_name(name), why);
    }
    if (!reader.done())
      wrong("{} bytes are left in its directory after {} members", reader.remaining(), count);
  }

  Entry read_central(ByteReader& reader, const Directory& directory) const {
    const uint64_t at = directory.begin + reader.offset();
    if (reader.u32() != kCentral) wrong("has no member in its directory at offset {}", at);
    const uint16_t made_by = reader.u16();
    reader.skip(2);  // the version that is needed
    Entry entry;
    Header& h = entry.header;
    read_common(reader, h);
    const uint16_t name_bytes = reader.u16(), extra = reader.u16(), comment = reader.u16();
    const uint16_t disk = reader.u16();
    reader.skip(2);
    const uint32_t attributes = reader.u32();
    entry.begin = reader.u32();
    h.name = reader.text(name_bytes);
    widen(reader.bytes(extra), h, &entry.begin);
    reader.skip(comment);
    if (disk != 0 && disk != kMany16) wrong("{} is on another disk", quoted_name(h.name));
    const bool is_link = made_by >> 8 == kMadeByUnix && (attributes >> 28) == kLinkMode;
    if (is_link) wrong("{} is a link", quoted_name(h.name));
    check_kind(h);
    return entry;
  }

  void check_kind(const Header& h) const {
    if ((h.flags & kEncrypted) != 0)
      wrong("{} is encrypted; decrypt the archive first", quoted_name(h.name));
    if ((h.flags & ~kKnownFlags) != 0)
      wrong("{} has flags {:#06x}, some of which are not known", quoted_name(h.name), h.flags);
    if (h.method != kStored && h.method != kDeflated)
      wrong("{} is packed by method {}; 0 (stored) and 8 (deflated) are read", quoted_name(h.name),
            h.method);
    if (h.method == kStored && h.packed != h.bytes)
      wrong("{} is stored, but takes {} bytes for {}", quoted_name(h.name), h.packed, h.bytes);
    if (h.name.ends_with('/') && h.bytes != 0)
      wrong("{} is a folder with {} bytes", quoted_name(h.name), h.bytes);
  }

  static void read_common(ByteReader& reader, Header& h) {
    h.flags = reader.u16();
    h.method = reader.u16();
    reader.skip(4);  // time and date
    h.crc = reader.u32();
    h.packed = reader.u32();
    h.bytes = reader.u32();
  }

  // APPNOTE 4.5.3: the extra field with id 1 has those numbers that are all ones, in this order.
  void widen(std::span<const std::byte> extra, Header& h, uint64_t* begin) const {
    ByteReader fields(extra, what_);
    while (fields.remaining() >= 4) {
      const uint16_t id = fields.u16(), size = fields.u16();
      ByteReader field(fields.bytes(size), what_);
      if (id != kWide) continue;
      if (h.bytes == kMany32) h.bytes = field.u64();
      if (h.packed == kMany32) h.packed = field.u64();
      if (begin && *begin == kMany32) *begin = field.u64();
    }
  }

  void read_local(Entry& entry, uint64_t directory) const {
    const Header& h = entry.header;
    ByteReader reader(data_.first(directory), what_);
    reader.seek(entry.begin);
    if (reader.u32() != kLocal)
      wrong("{} has no header at offset {}", quoted_name(h.name), entry.begin);
    reader.skip(2);
    Header local;
    read_common(reader, local);
    const uint16_t name_bytes = reader.u16(), extra = reader.u16();
    local.name = reader.text(name_bytes);
    widen(reader.bytes(extra), local, nullptr);
    entry.data_begin = reader.offset();
    check_equal(local, h, entry.begin);
    reader.skip(h.packed);
  }

  void check_equal(const Header& local, const Header& h, uint64_t at) const {
    const bool later = (h.flags & kDescriptor) != 0;  // sizes follow the data; here they may be 0
    const auto same = [&](uint64_t a, uint64_t b) { return a == b || (later && a == 0); };
    const bool equal = local.name == h.name && local.flags == h.flags && local.method == h.method &&
                       same(local.crc, h.crc) && same(local.packed, h.packed) &&
                       same(local.bytes, h.bytes);
    if (!equal)
      wrong("the directory and the header at offset {} differ about {}", at, quoted_name(h.name));
  }

  // From offset 0 to the directory there is nothing but members, in whatever order.
  void check_layout(uint64_t directory) const {
    std::vector<const Entry*> order;
    for (const Entry& entry : entries_) order.push_back(&entry);
    std::ranges::sort(order, {}, &Entry::begin);
    uint64_t at = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Entry& entry = *order[i];
      if (entry.begin != at)
        wrong("{} begins at offset {}, but what is before it ends at {}: {}",
              quoted_name(entry.header.name), entry.begin, at,
              entry.begin < at ? "they overlap" : "a hole");
      const uint64_t next = i + 1 < order.size() ? order[i + 1]->begin : directory;
      at = entry.data_begin + entry.header.packed;
      if ((entry.header.flags & kDescriptor) != 0) at = after_descriptor(entry.header, at, next);
    }
    if (at != directory)
      wrong("its members end at offset {}, but its directory begins at {}", at, directory);
  }

  // With or without a signature, with sizes of 32 or of 64 bits: its length says which.
  uint64_t after_descriptor(const Header& h, uint64_t at, uint64_t next) const {
    const uint64_t length = next > at ? next - at : 0;
    ByteReader reader(data_, what_);
    reader.seek(at);
    bool right = length == 12 || length == 16 || length == 20 || length == 24;
    if (right && (length == 16 || length == 24)) right = reader.u32() == kDescriptorMark;
    if (right) {
      const bool wide = length >= 20;
      right = reader.u32() == h.crc;
      right = right && (wide ? reader.u64() : reader.u32()) == h.packed;
      right = right && (wide ? reader.u64() : reader.u32()) == h.bytes;
    }
    if (!right) wrong("{} has no right descriptor at offset {}", quoted_name(h.name), at);
    return next;
  }

  std::vector<ZipMember> members() const {
    std::vector<ZipMember> all;
    uint64_t unpacked = 0;
    for (const Entry& entry : entries_) {
      const Header& h = entry.header;
      const bool stored = h.method == kStored;
      if (!stored) unpacked = checked_add(unpacked, h.bytes).value_or(UINT64_MAX);
      all.push_back(
          {std::string(h.name), data_.subspan(entry.data_begin, h.packed), h.bytes, h.crc, stored});
    }
    check_unpacked(unpacked, limits_, data_.size(), "zip.size", what_);
    return all;
  }

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> pattern, Args&&... args) const {
    std::string problem;
    append_vformat(problem, pattern, fmt::make_format_args(args...));
    fail_runtime("zip.format", "{}: {}", what_, problem);
  }

  std::span<const std::byte> data_;
  std::string_view what_;
  const UnpackLimits& limits_;
  std::vector<Entry> entries_;
};

}  // namespace

bool is_zip(std::span<const std::byte> data) {
  if (data.size() < zip::kEndBytes) return false;
  const uint32_t first = ByteReader(data, "").u32();
  return first == zip::kLocal || first == zip::kEnd;
}

std::vector<ZipMember> parse_zip(std::span<const std::byte> data, std::string_view what,
                                 const UnpackLimits& limits) {
  return ZipReader(data, what, limits).read();
}

HostArray zip_content(const ZipMember& member, std::string_view what,
                      std::shared_ptr<const void> owner, Checksum checksum) {
  const std::vector<int64_t> shape{static_cast<int64_t>(member.bytes)};
  HostArray content{DType::U8, shape, member.packed, std::move(owner)};
  if (!member.stored)
    content = HostArray::owned(DType::U8, shape, inflate_raw(member.packed, member.bytes, what));
  const bool unknown = checksum == Checksum::MayBeZero && member.stored && member.crc == 0;
  if (!unknown && crc32_of(content.bytes) != member.crc)
    fail_runtime("zip.damaged", "{}: {} does not have its checksum {:08x}; fetch the file again",
                 what, quoted_name(member.name), member.crc);
  return content;
}

std::vector<NamedArray> unzip(std::span<const std::byte> data, std::string_view what,
                              std::shared_ptr<const void> owner, const UnpackLimits& limits) {
  std::vector<NamedArray> all;
  for (const ZipMember& member : parse_zip(data, what, limits))
    if (!member.is_folder()) all.push_back({member.name, zip_content(member, what, owner)});
  return all;
}

std::vector<NamedArray> read_zip(const std::string& path, const UnpackLimits& limits) {
  const auto file = MappedFile::open(path);
  return unzip(file->bytes(), path, file, limits);
}

}  // namespace weft
