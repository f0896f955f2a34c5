#include "weft/onnx/value.h"

#include <algorithm>
#include <cstring>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/host_memory.h"
#include "weft/io/tensors.h"
#include "weft/tensor/access.h"

namespace weft::onnx {

struct Value::Data {
  Kind kind = Kind::None;
  ElementType type = ElementType::Undefined;
  Dims dims;
  Tensor tensor;  // of the others when somebody asks for it
  std::optional<HostArray> array;
  std::optional<std::vector<Dim>> whole;
  std::vector<std::string> texts;
  std::vector<Value> elements;
  std::optional<Dequantised> from;
  bool rough = false;
};

namespace {

/// A size as an element.
Tensor tensor_of_size(const Dim& size, DType dtype) {
  const OpScope scope(Context::current(), CallSite());
  return scope.result(scope.g.cast(size.node(), dtype));
}

Scalar scalar_of(const weft::Value& x) {
  if (is_float(x.dtype())) return x.as_double();
  if (is_bool(x.dtype())) return x.as_bool();
  if (is_unsigned(x.dtype())) return x.as_uint();
  return x.as_int();
}

/// What is copied, which is not worth lending; a capture finds small copies again
/// (host_constants.h).
constexpr size_t kMostCopied = 4096;
constexpr size_t kMostComputed = Value::kMostKnown * sizeof(int64_t);

/// One element becomes a number inside of kernels; memory that lives on is used as it is.
Tensor tensor_of_constant(const HostArray& array) {
  if (array.numel() == 1)
    return Tensor::full(array.shape, scalar_of(weft::Value::load(array.dtype, array.bytes.data())),
                        array.dtype);
  // What was computed on the host is computed again by every evaluation, at another address.
  const bool in_file = MappedFile::of(array.owner) != nullptr;
  if (!array.owner || array.bytes.size() <= (in_file ? kMostCopied : kMostComputed))
    return tensor_of(array);
  return borrowed_tensor(array.bytes.data(), array.dtype, array.shape, array.owner);
}

HostArray array_of(const std::vector<Dim>& whole, const Dims& dims, DType dtype) {
  const size_t size = static_cast<size_t>(bits(dtype)) / 8;
  std::vector<std::byte> bytes(whole.size() * size);
  for (size_t i = 0; i < whole.size(); ++i)
    weft::Value::of(dtype, whole[i].value()).store(bytes.data() + i * size);
  std::vector<int64_t> shape;
  for (const Dim& d : dims) shape.push_back(d.value());
  return HostArray::owned(dtype, std::move(shape), std::move(bytes));
}

}  // namespace

Value::Value(Tensor x) : Value(x, element_type_of(x.dtype())) {}

Value::Value(Tensor x, ElementType type) : data_(std::make_shared<Data>()) {
  WEFT_CHECK(dtype_of(type) == x.dtype(), "{} is to be {}", weft::name(x.dtype()),
             onnx::name(type));
  data_->kind = Kind::Tensor;
  data_->type = type;
  data_->dims = x.dims();
  data_->tensor = std::move(x);
}

Value::Value(const ConstantData& constant) : data_(std::make_shared<Data>()) {
  const bool text = constant.type == ElementType::String;
  if (!text && dtype_of(constant.type) == DType::Void)
    fail_type("onnx.type",
              "{} has elements of {}, which weft does not compute with; give real and imaginary "
              "parts as float32 along a last axis of 2",
              quoted_name(constant.name), onnx::name(constant.type));
  data_->kind = text ? Kind::Strings : Kind::Tensor;
  data_->type = constant.type;
  data_->dims = Dims(constant.shape);
  if (text)
    data_->texts = constant.strings;
  else
    data_->array = constant.array;
}

Value::Value(HostArray array) {
  const ElementType type = element_type_of(array.dtype);
  *this = Value(std::move(array), type);
}

Value::Value(HostArray array, ElementType type) : data_(std::make_shared<Data>()) {
  data_->kind = Kind::Tensor;
  data_->type = type;
  data_->dims = Dims(array.shape);
  data_->array = std::move(array);
}

Value Value::known(std::vector<Dim> elements, DType dtype, bool scalar) {
  WEFT_CHECK(!scalar || elements.size() == 1, "{} elements of rank 0", elements.size());
  Value v;
  v.data_ = std::make_shared<Data>();
  v.data_->kind = Kind::Tensor;
  v.data_->type = element_type_of(dtype);
  if (!scalar) v.data_->dims = Dims{elements.size()};
  v.data_->whole = std::move(elements);
  return v;
}

Value Value::strings(std::vector<std::string> elements, std::vector<int64_t> shape) {
  Value v;
  v.data_ = std::make_shared<Data>();
  v.data_->kind = Kind::Strings;
  v.data_->type = ElementType::String;
  v.data_->dims = Dims(shape);
  v.data_->texts = std::move(elements);
  return v;
}

Value Value::sequence(std::vector<Value> elements) {
  Value v;
  v.data_ = std::make_shared<Data>();
  v.data_->kind = Kind::Sequence;
  v.data_->elements = std::move(elements);
  return v;
}

Value Value::optional(Value element) {
  Value v;
  v.data_ = std::make_shared<Data>();
  v.data_->kind = Kind::Optional;
  if (element) v.data_->elements.push_back(std::move(element));
  return v;
}

Value Value::map(Value keys, Value values) {
  Value v;
  v.data_ = std::make_shared<Data>();
  v.data_->kind = Kind::Map;
  v.data_->elements = {std::move(keys), std::move(values)};
  return v;
}

Value Value::dequantised(Tensor y, ElementType type, Dequantised from) {
  Value v(std::move(y), type);
  v.data_->from = std::move(from);
  return v;
}

const Dequantised* Value::dequantised_from() const {
  return data_ && data_->from ? &*data_->from : nullptr;
}

bool Value::is_rough() const { return data_ && (data_->from || data_->rough); }
void Value::note_rough() {
  if (data_) data_->rough = true;
}

Value::Kind Value::kind() const { return data_ ? data_->kind : Kind::None; }

ElementType Value::type() const {
  WEFT_CHECK(kind() == Kind::Tensor || kind() == Kind::Strings, "a value without elements");
  return data_->type;
}

DType Value::dtype() const { return dtype_of(type()); }

Dims Value::dims() const {
  WEFT_CHECK(kind() == Kind::Tensor || kind() == Kind::Strings, "a value without a shape");
  return data_->dims;
}

const Tensor& Value::tensor() const {
  WEFT_CHECK(kind() == Kind::Tensor, "a value that is no tensor");
  Data& d = *data_;
  if (d.tensor.defined()) return d.tensor;
  if (!d.array && std::ranges::all_of(*d.whole, &Dim::is_static))
    d.array = array_of(*d.whole, d.dims, dtype());
  if (d.array) {
    d.tensor = tensor_of_constant(*d.array);
    return d.tensor;
  }
  std::vector<Tensor> elements;
  for (const Dim& size : *d.whole) elements.push_back(tensor_of_size(size, dtype()));
  d.tensor = d.dims.empty() ? elements[0] : Tensor::stack(elements);
  return d.tensor;
}

std::optional<HostArray> Value::constant() const {
  if (kind() != Kind::Tensor) return std::nullopt;
  if (!data_->array && data_->whole && std::ranges::all_of(*data_->whole, &Dim::is_static))
    data_->array = array_of(*data_->whole, data_->dims, dtype());
  return data_->array;
}

std::optional<std::vector<Dim>> Value::integers() const {
  if (kind() != Kind::Tensor || is_float(dtype())) return std::nullopt;
  if (data_->whole || !data_->array) return data_->whole;
  const HostArray& array = *data_->array;
  if (array.numel() > kMostKnown) return std::nullopt;
  const size_t size = static_cast<size_t>(bits(array.dtype)) / 8;
  std::vector<Dim> all;
  for (size_t at = 0; at < array.bytes.size(); at += size)
    all.emplace_back(weft::Value::load(array.dtype, array.bytes.data() + at).as_int());
  data_->whole = all;
  return all;
}

const std::vector<std::string>& Value::texts() const {
  WEFT_CHECK(kind() == Kind::Strings, "a value that is no tensor of strings");
  return data_->texts;
}

const std::vector<Value>& Value::elements() const {
  WEFT_CHECK(data_ != nullptr, "nothing has no elements");
  return data_->elements;
}

}  // namespace weft::onnx
