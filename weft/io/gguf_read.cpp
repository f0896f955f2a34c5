#include <algorithm>
#include <bit>
#include <unordered_set>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/reader.h"
#include "weft/io/gguf.h"
#include "weft/io/host_array.h"

namespace weft {

namespace {

// Beyond every real model; so that entries, which are larger here than in the file, stay few.
constexpr uint64_t kMostKeys = 1 << 16, kMostTensors = 1 << 17, kMostNested = 1 << 12;
constexpr uint64_t kLongestName = 65535;
constexpr uint32_t kMostDims = 4;  // ggml's
constexpr int kDeepest = 4;        // arrays of arrays; ggml has none
// Least bytes of an entry: lengths, a name of one character, numbers.
constexpr size_t kLeastPair = 8 + 1 + 4 + 1, kLeastTensor = 8 + 1 + 4 + 4 + 8;

class Reader {
 public:
  Reader(std::span<const std::byte> data, std::string_view what) : in_(data, what) {}

  GgufContent read(std::span<const std::byte> data) {
    content_.version = read_version();
    const uint64_t tensors = limited(in_.u64(), kMostTensors, kLeastTensor, "tensors");
    const uint64_t pairs = limited(in_.u64(), kMostKeys, kLeastPair, "metadata pairs");
    for (uint64_t i = 0; i < pairs; ++i) read_pair();
    read_alignment();
    for (uint64_t i = 0; i < tensors; ++i) read_tensor();
    place_tensors(data);
    return std::move(content_);
  }

 private:
  template <class... Args>
  [[noreturn]] void wrong(const char* code, fmt::format_string<Args...> pattern, Args&&... args) {
    fail_runtime(code, "{}: {}; the file is damaged or was not written by a correct program",
                 in_.what(), strformat(pattern, std::forward<Args>(args)...));
  }

  uint32_t read_version() {
    if (in_.remaining() < 4 || in_.text(4) != "GGUF") {
      fail_runtime("gguf.header", "{}: does not begin with 'GGUF'; this is not a GGUF file",
                   in_.what());
    }
    const uint32_t version = in_.u32();
    if (version == 2 || version == 3) return version;
    const bool swapped = __builtin_bswap32(version) <= 3 && version != 0;
    fail_runtime("gguf.header", "{}: is {}, and weft reads versions 2 and 3, little-endian; {}",
                 in_.what(), swapped ? "big-endian" : strformat("version {}", version),
                 swapped        ? "convert it with gguf-convert-endian"
                 : version == 1 ? "make it anew with today's converter"
                                : "update weft, or the file is damaged");
  }

  uint64_t limited(uint64_t claimed, uint64_t most, size_t least_bytes, const char* of) {
    if (claimed > most)
      wrong("gguf.header", "promises {} {}, and at most {} are read", claimed, of, most);
    return in_.count(claimed, least_bytes);
  }

  std::string_view text() { return in_.text(in_.u64()); }

  // A key or a tensor's name, which no other has.
  std::string read_name(std::unordered_set<std::string_view>& seen, const char* of) {
    const size_t at = in_.offset();
    const uint64_t size = in_.u64();
    if (size == 0 || size > kLongestName)
      wrong("gguf.name", "{} of {} bytes at offset {}; they have 1 to {}", of, size, at,
            kLongestName);
    const std::string_view name = in_.text(size);
    if (name.find('\0') != std::string_view::npos)
      wrong("gguf.name", "{} with a NUL in it at offset {}: {}", of, at, quoted_name(name));
    if (!seen.insert(name).second)
      wrong("gguf.name", "{} {} is there twice, again at offset {}", of, quoted_name(name), at);
    return std::string(name);
  }

  GgufType read_type() {
    const size_t at = in_.offset();
    const uint32_t type = in_.u32();
    if (type >= kGgufTypes)
      wrong("gguf.value", "type {} of a value at offset {}; there are 0 to {}", type, at,
            kGgufTypes - 1);
    return static_cast<GgufType>(type);
  }

  void read_pair() {
    std::string key = read_name(keys_, "a key");
    GgufValue value = read_value(read_type(), 0);
    content_.metadata.emplace_back(std::move(key), std::move(value));
  }

  GgufValue read_value(GgufType type, int depth) {
    GgufValue value;
    value.type = type;
    if (type == GgufType::Array) {
      value.element = read_type();
      value.count = in_.u64();
      read_elements(value, depth + 1);
    } else if (type == GgufType::String) {
      const std::string_view all = text();
      value.bytes = std::as_bytes(std::span(all));
    } else {
      value.element = type;
      read_numbers(value);
    }
    return value;
  }

  void read_numbers(GgufValue& value) {
    const size_t size = size_of(value.element), at = in_.offset();
    value.bytes = in_.bytes(in_.count(value.count, size) * size);
    if (value.element != GgufType::Bool) return;
    if (std::ranges::any_of(value.bytes, [](std::byte b) { return b > std::byte{1}; }))
      wrong("gguf.value", "a bool at offset {} is neither 0 nor 1", at);
  }

  void read_elements(GgufValue& value, int depth) {
    if (value.element == GgufType::String) {
      value.texts.reserve(in_.count(value.count, sizeof(uint64_t)));
      for (uint64_t i = 0; i < value.count; ++i) value.texts.push_back(text());
    } else if (value.element == GgufType::Array) {
      read_arrays(value, depth);
    } else {
      read_numbers(value);
    }
  }

  void read_arrays(GgufValue& value, int depth) {
    if (depth == kDeepest)
      wrong("gguf.value", "arrays in arrays at offset {}, more than {} deep", in_.offset(),
            kDeepest);
    nested_ += limited(value.count, kMostNested, 12, "arrays in an array");
    if (nested_ > kMostNested)
      wrong("gguf.value", "{} arrays in arrays, and at most {} are read", nested_, kMostNested);
    for (uint64_t i = 0; i < value.count; ++i)
      value.values.push_back(read_value(GgufType::Array, depth));
  }

  void read_alignment() {
    const GgufValue* value = content_.value("general.alignment");
    if (value == nullptr) return;
    const std::optional<int64_t> alignment =
        value->type == GgufType::U32 ? value->integer() : std::nullopt;
    if (!alignment || !std::has_single_bit(static_cast<uint64_t>(*alignment)))
      wrong("gguf.alignment", "general.alignment is {} {}, not a power of two as u32",
            name(value->type), value->shown());
    content_.alignment = static_cast<uint32_t>(*alignment);
  }

  void read_tensor() {
    GgufTensor tensor;
    tensor.name = read_name(names_, "a tensor's name");
    const uint32_t dims = in_.u32();
    if (dims > kMostDims)
      wrong("gguf.shape", "{} has {} axes, and at most {} are possible", quoted_name(tensor.name),
            dims, kMostDims);
    for (uint32_t i = 0; i < dims; ++i) {
      const uint64_t size = in_.u64();
      if (size > INT64_MAX)
        wrong("gguf.shape", "{} has an axis of {}", quoted_name(tensor.name), size);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    tensor.codec = read_codec(tensor.name);
    offsets_.push_back(in_.u64());
    content_.tensors.push_back(std::move(tensor));
  }

  Codec read_codec(std::string_view tensor) {
    const uint32_t type = in_.u32();
    if (const std::optional<Codec> codec = codec_from_id(type)) return *codec;
    fail_runtime(
        "gguf.type",
        "{}: {} has the ggml type {}, which is unknown or no longer in use; convert the model "
        "anew, or update weft",
        in_.what(), quoted_name(tensor), static_cast<int32_t>(type));
  }

  // The data begins at the next multiple of the alignment; without tensors there need be none.
  void place_tensors(std::span<const std::byte> data) {
    if (content_.tensors.empty()) return;
    const uint64_t align = content_.alignment;
    const uint64_t begin = (in_.offset() + align - 1) / align * align;
    const auto content = data.subspan(std::min<uint64_t>(begin, data.size()));
    for (size_t i = 0; i < content_.tensors.size(); ++i)
      place(content_.tensors[i], offsets_[i], content);
    check_overlap();
  }

  void place(GgufTensor& tensor, uint64_t offset, std::span<const std::byte> content) {
    const std::optional<int64_t> bytes = packed_bytes(tensor.codec, tensor.shape);
    if (!bytes) {
      wrong("gguf.shape",
            "{} of shape {} is not whole blocks of {} {} elements, or larger than 2^63",
            quoted_name(tensor.name), shape_text(tensor.shape), row(tensor.codec).elements,
            name(tensor.codec));
    }
    if (offset % content_.alignment != 0)
      wrong("gguf.offset", "{} begins at {}, no multiple of the alignment {}",
            quoted_name(tensor.name), offset, content_.alignment);
    const auto size = static_cast<uint64_t>(*bytes);
    if (offset > content.size() || size > content.size() - offset) {
      fail_runtime("gguf.offset",
                   "{}: {} takes {} bytes at data offset {}, but the data has {}; the file is cut "
                   "short: fetch it again",
                   in_.what(), quoted_name(tensor.name), size, offset, content.size());
    }
    tensor.bytes = content.subspan(offset, size);
  }

  void check_overlap() {
    std::vector<size_t> order;
    for (size_t i = 0; i < offsets_.size(); ++i)
      if (!content_.tensors[i].bytes.empty()) order.push_back(i);
    std::ranges::sort(order, {}, [&](size_t i) { return offsets_[i]; });
    for (size_t k = 1; k < order.size(); ++k) {
      const GgufTensor &before = content_.tensors[order[k - 1]],
                       &after = content_.tensors[order[k]];
      const uint64_t end = offsets_[order[k - 1]] + before.bytes.size();
      if (offsets_[order[k]] < end)
        wrong("gguf.offset", "{} begins at data offset {}, before {} ends at {}",
              quoted_name(after.name), offsets_[order[k]], quoted_name(before.name), end);
    }
  }

  ByteReader in_;
  GgufContent content_;
  std::unordered_set<std::string_view> keys_, names_;
  std::vector<uint64_t> offsets_;
  uint64_t nested_ = 0;
};

}  // namespace

const GgufValue* GgufContent::value(std::string_view key) const {
  const auto at = std::ranges::find(metadata, key, &std::pair<std::string, GgufValue>::first);
  return at == metadata.end() ? nullptr : &at->second;
}

const GgufTensor* GgufContent::find(std::string_view name) const {
  const auto at = std::ranges::find(tensors, name, &GgufTensor::name);
  return at == tensors.end() ? nullptr : &*at;
}

GgufContent parse_gguf(std::span<const std::byte> data, std::string_view what,
                       std::shared_ptr<const void> owner) {
  GgufContent content = Reader(data, what).read(data);
  for (GgufTensor& tensor : content.tensors) tensor.owner = owner;
  content.owner = std::move(owner);
  return content;
}

}  // namespace weft
