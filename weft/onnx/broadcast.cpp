#include "weft/onnx/broadcast.h"

#include <algorithm>

#include "weft/io/host_array.h"

namespace weft::onnx {

Dims aligned(const Dims& sizes, int64_t axis, size_t rank) {
  Dims all;
  for (size_t i = 0; i < rank; ++i) {
    const size_t at = i - static_cast<size_t>(axis);
    all.push_back(static_cast<int64_t>(i) >= axis && at < sizes.size() ? sizes[at] : Dim(1));
  }
  return all;
}

Tensor fitted(const NodeCall& call, const Tensor& a, const Tensor& b) {
  if (call.opset() >= 7 || !call.has("axis") || call.integer("broadcast", 0) == 0) return b;
  const int64_t axis = call.axis(call.integer("axis"), std::max<size_t>(a.ndim(), 1));
  if (static_cast<size_t>(axis) + b.ndim() > a.ndim())
    call.refuse("input 1 of shape {} cannot stand at axis {} of shape {}", b.dims().text(), axis,
                a.dims().text());
  return b.reshape(aligned(b.dims(), axis, a.ndim()));
}

BroadcastPlaces::BroadcastPlaces(const std::vector<int64_t>& shape,
                                 const std::vector<int64_t>& whole)
    : whole_(whole), strides_(whole.size(), 0) {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i])
    if (shape[i] != 1) strides_[whole.size() - shape.size() + i] = step;
}

size_t BroadcastPlaces::of(size_t flat) const {
  auto rest = static_cast<int64_t>(flat);
  int64_t at = 0;
  for (size_t i = whole_.size(); i-- > 0; rest /= whole_[i]) at += rest % whole_[i] * strides_[i];
  return static_cast<size_t>(at);
}

std::vector<int64_t> broadcast_shape(const NodeCall& call,
                                     const std::vector<std::vector<int64_t>>& shapes) {
  size_t rank = 0;
  for (const auto& shape : shapes) rank = std::max(rank, shape.size());
  std::vector<int64_t> whole(rank, 1);
  for (const auto& shape : shapes)
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& n = whole[rank - shape.size() + i];
      if (n != shape[i] && n != 1 && shape[i] != 1)
        call.refuse("shapes {} and {} do not broadcast", shape_text(whole), shape_text(shape));
      if (n == 1) n = shape[i];
    }
  return whole;
}

namespace {

std::vector<int64_t> numbers_of(const Dims& dims) {
  std::vector<int64_t> shape;
  for (const Dim& d : dims) shape.push_back(d.value());
  return shape;
}

size_t count_of(const std::vector<int64_t>& shape) {
  return static_cast<size_t>(checked_numel(shape).value_or(0));
}

}  // namespace

Value equal_strings(const NodeCall& call) {
  const std::vector<std::string>&a = call.texts(0), &b = call.texts(1);
  const auto a_shape = numbers_of(call.input(0).dims()), b_shape = numbers_of(call.input(1).dims());
  const auto whole = broadcast_shape(call, {a_shape, b_shape});
  const BroadcastPlaces in_a(a_shape, whole), in_b(b_shape, whole);
  std::vector<std::byte> equal;
  for (size_t i = 0; i < count_of(whole); ++i)
    equal.push_back(static_cast<std::byte>(a[in_a.of(i)] == b[in_b.of(i)]));
  return Value(HostArray::owned(DType::Bool, whole, std::move(equal)));
}

Value where_strings(const NodeCall& call) {
  const HostArray condition = call.array(0);
  const std::vector<std::string>&a = call.texts(1), &b = call.texts(2);
  const auto a_shape = numbers_of(call.input(1).dims()), b_shape = numbers_of(call.input(2).dims());
  const auto whole = broadcast_shape(call, {condition.shape, a_shape, b_shape});
  const BroadcastPlaces in_c(condition.shape, whole), in_a(a_shape, whole), in_b(b_shape, whole);
  std::vector<std::string> chosen;
  for (size_t i = 0; i < count_of(whole); ++i)
    chosen.push_back(condition.bytes[in_c.of(i)] != std::byte{0} ? a[in_a.of(i)] : b[in_b.of(i)]);
  return Value::strings(std::move(chosen), whole);
}

}  // namespace weft::onnx
