#include <cstring>

#include "weft/base/error.h"
#include "weft/onnx/read_parts.h"

namespace weft::onnx {

namespace {

constexpr size_t kMostAxes = 64;

/// TensorProto without its elements.
struct TensorHead {
  ConstantData tensor;
  std::optional<std::span<const std::byte>> raw;
  std::string location, offset, length;
  bool external = false;
};

void read_external_entry(WireReader entry, TensorHead& head) {
  std::string key, value;
  while (entry.next()) {
    if (entry.field() == 1) key = entry.text();
    if (entry.field() == 2) value = entry.text();
  }
  if (key == "location") head.location = value;
  if (key == "offset") head.offset = value;
  if (key == "length") head.length = value;
}

TensorHead read_head(WireReader m) {
  TensorHead head;
  while (m.next()) switch (m.field()) {
      case 1:
        m.each_integer([&](int64_t size) {
          if (head.tensor.shape.size() == kMostAxes) m.refuse("more than {} axes", kMostAxes);
          head.tensor.shape.push_back(size);
        });
        break;
      case 2: head.tensor.type = static_cast<ElementType>(m.integer()); break;
      case 3: m.refuse("a tensor in segments, which no version of ONNX uses");
      case 8: head.tensor.name = m.text(); break;
      case 9: head.raw = m.bytes(); break;
      case 13: read_external_entry(m.message(), head); break;
      case 14: head.external = m.integer() == 1; break;
      default: break;
    }
  return head;
}

/// Which field of TensorProto has the elements where they do not lie in raw_data.
enum class TypedField : uint32_t { Float = 4, Int32 = 5, Int64 = 7, Double = 10, Uint64 = 11 };
TypedField typed_field(ElementType type) {
  switch (type) {
    case ElementType::Float:
    case ElementType::Complex64: return TypedField::Float;
    case ElementType::Int64: return TypedField::Int64;
    case ElementType::Double:
    case ElementType::Complex128: return TypedField::Double;
    case ElementType::Uint32:
    case ElementType::Uint64: return TypedField::Uint64;
    default: return TypedField::Int32;
  }
}

/// Bytes as raw_data would have them; the message has been seen to be long enough for them.
class TypedBytes {
 public:
  TypedBytes(const WireReader& message, const ConstantData& tensor, size_t bytes)
      : message_(message), tensor_(tensor), bytes_(bytes) {}

  std::vector<std::byte> read() {
    const TypedField wanted = typed_field(tensor_.type);
    const int bits = stored_bits(tensor_.type);
    const size_t size = static_cast<size_t>(bits < 8 ? 8 : bits) / 8;
    for (WireReader m = message_; m.next();) {
      if (m.field() != static_cast<uint32_t>(wanted)) continue;
      if (wanted == TypedField::Float)
        m.each_fixed32([&](uint32_t x) { put(&x, 4); });
      else if (wanted == TypedField::Double)
        m.each_fixed64([&](uint64_t x) { put(&x, 8); });
      else
        m.each_integer([&](int64_t x) { put_integer(m, x, size); });
    }
    if (at_ != bytes_)
      message_.refuse("{} holds {} bytes of elements and its shape {} of {} needs {}",
                      quoted_name(tensor_.name), at_, shape_text(tensor_.shape), name(tensor_.type),
                      bytes_);
    return std::move(out_);
  }

 private:
  void put(const void* x, size_t size) {
    at_ += size;
    if (at_ > bytes_) return;  // counted for the message
    const auto* from = static_cast<const std::byte*>(x);
    out_.insert(out_.end(), from, from + size);
  }
  void put_integer(const WireReader& m, int64_t x, size_t size) {
    const int bits = static_cast<int>(size) * 8;
    if (bits < 64 && (x < -(int64_t{1} << (bits - 1)) || x >= int64_t{1} << bits))
      m.refuse("{} has the element {}, which {} bits do not hold", quoted_name(tensor_.name), x,
               bits);
    put(&x, size);
  }

  const WireReader& message_;
  const ConstantData& tensor_;
  size_t bytes_, at_ = 0;
  std::vector<std::byte> out_;
};

void read_strings(WireReader m, ConstantData& tensor, int64_t count) {
  const WireReader message = m;
  while (m.next()) {
    if (m.field() != 6) continue;
    const std::span<const std::byte> bytes = m.bytes();
    tensor.strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (static_cast<int64_t>(tensor.strings.size()) != count)
    message.refuse("{} holds {} strings and its shape {} needs {}", quoted_name(tensor.name),
                   tensor.strings.size(), shape_text(tensor.shape), count);
}

/// Bytes in the file's form as a tensor's elements: as they lie there where weft has the dtype.
HostArray array_of(const ConstantData& tensor, std::span<const std::byte> stored,
                   std::shared_ptr<const void> owner) {
  const DType dtype = dtype_of(tensor.type);
  if (dtype == DType::Void || stored_bits(tensor.type) == bits(dtype))
    return {dtype, tensor.shape, stored, std::move(owner)};
  return unpacked(tensor.type, tensor.shape, stored);
}

}  // namespace

ConstantData read_tensor(WireReader message, Source& source) {
  TensorHead head = read_head(message);
  ConstantData& t = head.tensor;
  const std::optional<int64_t> count = checked_numel(t.shape);
  const int width = stored_bits(t.type);
  if (!count || *count > INT64_MAX / 128)
    message.refuse("{} has the shape {}, which is none", quoted_name(t.name), shape_text(t.shape));
  if (t.type == ElementType::String) {
    read_strings(message, t, *count);
    return std::move(t);
  }
  if (width == 0)
    message.refuse("{} has elements of {}, which does not exist", quoted_name(t.name),
                   name(t.type));
  const auto bytes = static_cast<size_t>((*count * width + 7) / 8);
  ExternalData::Slice slice{head.raw.value_or(std::span<const std::byte>()), source.owner};
  if (head.external)
    slice = source.external.slice(source.what, t.name, head.location, head.offset, head.length);
  const bool typed = !head.external && !head.raw;
  if (typed && bytes > 0) {
    // An element takes at least a byte; of the 64-bit ones eight are made of it.
    if (bytes / 16 > message.size())
      message.refuse("{} has the shape {} of {} and only {} bytes", quoted_name(t.name),
                     shape_text(t.shape), name(t.type), message.size());
    auto own = std::make_shared<const std::vector<std::byte>>(TypedBytes(message, t, bytes).read());
    slice = {*own, own};
  }
  if (slice.bytes.size() != bytes)
    message.refuse("{} has {} bytes and its shape {} of {} needs {}", quoted_name(t.name),
                   slice.bytes.size(), shape_text(t.shape), name(t.type), bytes);
  t.array = array_of(t, slice.bytes, std::move(slice.owner));
  return std::move(t);
}

SparseData read_sparse(WireReader m, Source& source) {
  SparseData sparse;
  const WireReader message = m;
  while (m.next()) {
    if (m.field() == 1) sparse.values = read_tensor(m.message(), source);
    if (m.field() == 2) sparse.indices = read_tensor(m.message(), source);
    if (m.field() == 3)
      m.each_integer([&](int64_t size) {
        if (sparse.shape.size() == kMostAxes) m.refuse("more than {} axes", kMostAxes);
        sparse.shape.push_back(size);
      });
  }
  const std::vector<int64_t>&v = sparse.values.shape, &i = sparse.indices.shape;
  const bool fits =
      v.size() == 1 && !i.empty() && i[0] == v[0] &&
      (i.size() == 1 || (i.size() == 2 && i[1] == static_cast<int64_t>(sparse.shape.size()))) &&
      sparse.indices.type == ElementType::Int64 && dtype_of(sparse.values.type) != DType::Void;
  if (!fits || !checked_bytes(sparse.values.array.dtype, sparse.shape))
    message.refuse("a sparse tensor of shape {} with values of shape {} and {} indices of shape {}",
                   shape_text(sparse.shape), shape_text(v), name(sparse.indices.type),
                   shape_text(i));
  return sparse;
}

}  // namespace weft::onnx
