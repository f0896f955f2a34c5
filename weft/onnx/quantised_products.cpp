// Products and convolutions of integers with zero points. Semantics: the ONNX operator
// specification.
#include "weft/onnx/constant_sums.h"
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
Centred weight_of(const NodeCall& call, size_t input, size_t zero, int64_t channels) {
  call.tensor(input);
  return Centred::of_weight(call.input(input), given(call, zero), channels);
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

/// Of the sums, in those of the result: the scales at inputs 1 and 4 over that at 6.
Tensor ratio(const NodeCall& call) {
  if (const auto known = constant_scale(call.input(1), call.input(4), call.input(6))) return *known;
  const Tensor a = of_rows(call.tensor(1)), b = of_columns(call.tensor(4)),
               y = of_columns(call.tensor(6));
  return a.cast(DType::F32) * b.cast(DType::F32) / y.cast(DType::F32);
}

Spatial spatial_of(const NodeCall& call, size_t weight) {
  return Spatial::of(call, call.tensor(0), kernel_of(call, call.tensor(weight)));
}

}  // namespace

Values product_of_integers(const NodeCall& call) {
  return {product_of(centred(call, 0, 2), weight_of(call, 1, 3, -1))};
}

Values quantised_product(const NodeCall& call) {
  const Tensor sum = product_of(centred(call, 0, 2), weight_of(call, 3, 5, -1));
  return {requantised(call, sum, ratio(call), 7)};
}

Values convolution_of_integers(const NodeCall& call) {
  const Tensor sum =
      convolution_of(call, centred(call, 0, 2), weight_of(call, 1, 3, 0), spatial_of(call, 1));
  return {channels_first(sum.cast(DType::I32))};
}

Values quantised_convolution(const NodeCall& call) {
  Tensor sum =
      convolution_of(call, centred(call, 0, 2), weight_of(call, 3, 5, 0), spatial_of(call, 3));
  if (call.has(8)) sum = sum + call.tensor(8).cast(sum.dtype());
  const Value y = requantised(call, sum, ratio(call), 7);
  return {Value(channels_first(y.tensor().contiguous()), y.type())};
}

}  // namespace weft::onnx
