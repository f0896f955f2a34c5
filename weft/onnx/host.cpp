#include "weft/onnx/host.h"

#include "weft/base/error.h"

namespace weft::onnx {
HostArray read_now(const Value& x) {
  if (std::optional<HostArray> known = x.constant()) return *std::move(known);
  const Tensor& t = x.tensor();
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(t.dtype(), t.numel())));
  t.copy_to(bytes);
  return HostArray::owned(t.dtype(), t.shape(), std::move(bytes));
}

Value host_numbers(const std::vector<double>& elements, std::vector<int64_t> shape, DType dtype) {
  const auto count = static_cast<int64_t>(elements.size());
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(dtype, count)));
  for (int64_t i = 0; i < count; ++i)
    weft::Value::of(dtype, elements[i]).store(bytes.data() + bytes_for(dtype, i));
  return Value(HostArray::owned(dtype, std::move(shape), std::move(bytes)));
}

std::vector<double> as_doubles(const HostArray& a) {
  std::vector<double> all(static_cast<size_t>(a.numel()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = element(a, static_cast<int64_t>(i)).as_double();
  return all;
}

std::vector<int64_t> as_ints(const HostArray& a) {
  std::vector<int64_t> all(static_cast<size_t>(a.numel()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = element(a, static_cast<int64_t>(i)).as_int();
  return all;
}

std::vector<float> as_floats(const HostArray& a) {
  std::vector<float> all(static_cast<size_t>(a.numel()));
  if (a.dtype == DType::F32) {
    if (!all.empty()) std::memcpy(all.data(), a.bytes.data(), a.bytes.size());
    return all;
  }
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<float>(element(a, static_cast<int64_t>(i)).as_double());
  return all;
}

int64_t number_now(const Value& x) {
  const HostArray all = read_now(x);
  if (all.numel() != 1)
    fail("onnx.node", "a tensor of shape {} where one number has to be", shape_text(all.shape));
  return element(all, 0).cast(DType::I64).as_int();
}

std::vector<int64_t> static_sizes(const Dims& dims) {
  std::vector<int64_t> sizes;
  for (const Dim& d : dims) sizes.push_back(d.value());
  return sizes;
}

Value moved(const Value& x, FunctionRef<Tensor(const Tensor& x)> movement) {
  if (x.kind() != Value::Kind::Strings) return Value(movement(x.tensor()), x.type());
  const auto count = static_cast<int64_t>(x.texts().size());
  const Tensor places = movement(Tensor::arange(count, DType::I64).reshape(x.dims()));
  std::vector<std::string> texts;
  for (const int64_t at : places.to_vector<int64_t>())
    texts.push_back(x.texts()[static_cast<size_t>(at)]);
  return Value::strings(std::move(texts), places.shape());
}

}  // namespace weft::onnx
