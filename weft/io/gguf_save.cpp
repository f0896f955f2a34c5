#include <bit>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/gguf.h"
#include "weft/io/host_array.h"

namespace weft {

namespace {

constexpr uint32_t kVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint32_t kUsualAlignment = 32, kMostAlignment = 1 << 20;

/// The header: what comes before the tensors' data.
class HeaderWriter {
 public:
  std::string write(const GgufContent& content, std::span<const uint64_t> offsets) {
    const bool says_alignment = content.alignment != kUsualAlignment;
    out_ = "GGUF";
    put(kVersion);
    put<uint64_t>(content.tensors.size());
    put<uint64_t>(content.metadata.size() + (says_alignment ? 1 : 0));
    if (says_alignment)
      write_pair(std::string(kAlignmentKey), GgufValue::of_number(content.alignment));
    for (const auto& [key, value] : content.metadata) write_pair(key, value);
    for (size_t i = 0; i < offsets.size(); ++i) write_tensor(content.tensors[i], offsets[i]);
    out_.resize((out_.size() + content.alignment - 1) / content.alignment * content.alignment);
    return std::move(out_);
  }

 private:
  template <class T>
  void put(T number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void put_text(std::string_view text) {
    put<uint64_t>(text.size());
    out_ += text;
  }
  void put_bytes(std::span<const std::byte> bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  void write_pair(const std::string& key, const GgufValue& value) {
    put_text(key);
    put(static_cast<uint32_t>(value.type));
    write_value(value);
  }
  void write_value(const GgufValue& value) {
    if (value.type == GgufType::String) {
      put_text(value.text());
    } else if (value.type == GgufType::Array) {
      write_array(value);
    } else {
      put_bytes(value.bytes);
    }
  }
  // Recursive only to the depth at which a reader reads.
  void write_array(const GgufValue& value) {
    put(static_cast<uint32_t>(value.element));
    put(value.count);
    put_bytes(value.element == GgufType::String ? std::span<const std::byte>() : value.bytes);
    for (const std::string_view text : value.texts) put_text(text);
    for (const GgufValue& inner : value.values) write_value(inner);
  }
  void write_tensor(const GgufTensor& tensor, uint64_t offset) {
    put_text(tensor.name);
    put(static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) put(static_cast<uint64_t>(tensor.shape[i]));
    put(static_cast<uint32_t>(tensor.codec));
    put(offset);
  }

  std::string out_;
};

void check_name(std::string_view name, std::unordered_set<std::string_view>& seen) {
  constexpr size_t kLongest = 65535;
  if (name.empty() || name.size() > kLongest || name.find('\0') != std::string_view::npos) {
    fail("save_gguf.name", "{} of {} bytes: names have 1 to {}, none of them NUL",
         quoted_name(name), name.size(), kLongest);
  }
  if (!seen.insert(name).second)
    fail("save_gguf.name", "{} is there twice; names must be distinct", quoted_name(name));
}

void check_value(std::string_view key, const GgufValue& value, int depth = 0) {
  constexpr int kDeepest = 4;
  const bool array = value.type == GgufType::Array;
  const uint64_t held = array && value.element == GgufType::String  ? value.texts.size()
                        : array && value.element == GgufType::Array ? value.values.size()
                        : value.type == GgufType::String
                            ? 1
                            : value.bytes.size() / size_of(array ? value.element : value.type);
  if (held != (array ? value.count : 1) || depth == kDeepest) {
    fail("save_gguf.value", "'{}' has {} values for a count of {}, at a depth of {} (at most {})",
         key, held, value.count, depth, kDeepest);
  }
  for (const GgufValue& inner : value.values) check_value(key, inner, depth + 1);
}

/// The bytes that a tensor of this shape has.
uint64_t size_of(const GgufTensor& tensor) {
  constexpr size_t kMostDims = 4;
  const std::optional<int64_t> bytes = packed_bytes(tensor.codec, tensor.shape);
  if (tensor.shape.size() > kMostDims || !bytes) {
    fail("save_gguf.shape", "'{}' is {} {}: at most {} axes, whole blocks of {}", tensor.name,
         name(tensor.codec), shape_text(tensor.shape), kMostDims, row(tensor.codec).elements);
  }
  return static_cast<uint64_t>(*bytes);
}

void check_bytes(const GgufTensor& tensor) {
  if (tensor.bytes.size() == size_of(tensor)) return;
  fail("save_gguf.shape", "'{}' has {} bytes, which {} {} does not take", tensor.name,
       tensor.bytes.size(), name(tensor.codec), shape_text(tensor.shape));
}

void check(const GgufContent& content) {
  if (!std::has_single_bit(content.alignment) || content.alignment > kMostAlignment) {
    fail("save_gguf.alignment", "an alignment of {}: it must be a power of two up to {}",
         content.alignment, kMostAlignment);
  }
  std::unordered_set<std::string_view> keys, names;
  for (const auto& [key, value] : content.metadata) {
    check_name(key, keys);
    check_value(key, value);
  }
  for (const GgufTensor& tensor : content.tensors) {
    check_name(tensor.name, names);
    size_of(tensor);
  }
}

/// content without its key of the alignment, which the writer makes.
GgufContent without_alignment(GgufContent content) {
  std::erase_if(content.metadata, [](const auto& pair) { return pair.first == kAlignmentKey; });
  return content;
}

using Made = FunctionRef<GgufTensor(size_t)>;

void write_all(const GgufContent& given, Made made,
               FunctionRef<void(std::span<const std::byte>)> write) {
  const GgufContent content = without_alignment(given);
  check(content);
  const uint64_t align = content.alignment;
  std::vector<uint64_t> offsets;
  uint64_t at = 0;
  for (const GgufTensor& tensor : content.tensors) {
    offsets.push_back(at);
    at += (size_of(tensor) + align - 1) / align * align;
  }
  const std::string header = HeaderWriter().write(content, offsets);
  write(std::as_bytes(std::span(header)));
  const std::vector<std::byte> zeros(align);
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    const GgufTensor tensor = made(i);
    check_bytes(tensor);
    write(tensor.bytes);
    write(std::span(zeros).first((align - tensor.bytes.size() % align) % align));
  }
}

/// All tensors are there already.
void write_all(const GgufContent& content, FunctionRef<void(std::span<const std::byte>)> write) {
  for (const GgufTensor& tensor : content.tensors) check_bytes(tensor);
  write_all(content, [&](size_t i) { return content.tensors[i]; }, write);
}

}  // namespace

std::vector<std::byte> gguf_bytes(const GgufContent& content) {
  std::vector<std::byte> out;
  write_all(content,
            [&](std::span<const std::byte> b) { out.insert(out.end(), b.begin(), b.end()); });
  return out;
}

void save_gguf(const std::string& path, const GgufContent& content) {
  atomic_write_file(path, [&](FileWriter& out) {
    write_all(content, [&](std::span<const std::byte> bytes) { out.write(bytes); });
  });
}

void save_gguf(const std::string& path, const GgufContent& content, Made made) {
  atomic_write_file(path, [&](FileWriter& out) {
    write_all(content, made, [&](std::span<const std::byte> bytes) { out.write(bytes); });
  });
}

}  // namespace weft
