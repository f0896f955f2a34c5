// Products and convolutions of integers with zero points. Semantics: the ONNX operator
// specification.
#include "weft/onnx/image_order.h"
#include "weft/onnx/integer_products.h"
#include "weft/onnx/quantised_operators.h"
#include "weft/onnx/quantised_types.h"

namespace weft::onnx {

namespace {

Value given(const NodeCall& call, size_t i) { return call.has(i) ? call.input(i) : Value(); }

Centred centred(const NodeCall& call, size_t input, size_t zero) {
  call.tensor(input);
  return Centred::of(call.input(input), given(call, zero));
}

/// A vector of rows or columns beside a matrix: (m) as (m, 1), (n) as (n); one number as it is.
Tensor of_rows(const Tensor& v) {
  if (v.dims().product() == Dim(1)) return v.reshape({});
  return v.ndim() == 1 ? v.unsqueeze(-1) : v;
}
Tensor of_columns(const Tensor& v) { return v.dims().product() == Dim(1) ? v.reshape({}) : v; }

/// A sum in i32 in the steps of the result: as many as scale says, from a zero point on.
Value requantised(const NodeCall& call, const Tensor& sum, const Tensor& scale, size_t zero) {
  return quantised_to(sum.cast(DType::F32) * scale, call.tensor(zero), call.input(zero).type());
}

/// With scales of the sums in that of the result.
Tensor ratio(const Tensor& a, const Tensor& b, const Tensor& y) {
  return a.cast(DType::F32) * b.cast(DType::F32) / y.cast(DType::F32);
}

Spatial spatial_of(const NodeCall& call, size_t weight) {
  return Spatial::of(call, call.tensor(0), kernel_of(call, call.tensor(weight)));
}

}  // namespace

Values product_of_integers(const NodeCall& call) {
  return {product_of(centred(call, 0, 2), centred(call, 1, 3))};
}

Values quantised_product(const NodeCall& call) {
  const Tensor scale =
      ratio(of_rows(call.tensor(1)), of_columns(call.tensor(4)), of_columns(call.tensor(6)));
  return {requantised(call, product_of(centred(call, 0, 2), centred(call, 3, 5)), scale, 7)};
}

Values convolution_of_integers(const NodeCall& call) {
  const Tensor sum =
      convolution_of(call, centred(call, 0, 2), centred(call, 1, 3), spatial_of(call, 1));
  return {channels_first(sum.cast(DType::I32))};
}

Values quantised_convolution(const NodeCall& call) {
  Tensor sum = convolution_of(call, centred(call, 0, 2), centred(call, 3, 5), spatial_of(call, 3));
  if (call.has(8)) sum = sum + call.tensor(8).cast(sum.dtype());
  const Tensor scale =
      ratio(call.tensor(1).reshape({}), of_columns(call.tensor(4)), call.tensor(6).reshape({}));
  const Value y = requantised(call, sum, scale, 7);
  return {Value(channels_first(y.tensor().contiguous()), y.type())};
}

}  // namespace weft::onnx
