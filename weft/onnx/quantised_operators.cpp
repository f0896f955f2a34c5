// Quantisation. Semantics: the ONNX operator specification.
#include "weft/onnx/quantised_operators.h"

#include <algorithm>
#include <array>

#include "weft/onnx/axes.h"
#include "weft/onnx/cast.h"
#include "weft/onnx/constant_sums.h"
#include "weft/onnx/image_order.h"
#include "weft/onnx/operators.h"
#include "weft/onnx/quantised_types.h"

namespace weft::onnx {

namespace {

/// Scales or zero points beside x: one for all, one for each place of an axis, or one for each
/// block along it.
Tensor beside(const NodeCall& call, const Tensor& v, const Tensor& x) {
  if (v.dims().product() == Dim(1)) return v.reshape({});
  const int64_t block = call.integer("block_size", 0);
  const int64_t axis = call.axis(call.integer("axis", 1), x.ndim());
  if (block <= 0 && v.ndim() == 1) {
    if (!(v.dim(0) == x.dim(axis)))
      call.refuse("{} scales along axis {} of shape {}: give one, or one for each place",
                  v.dim(0).text(), axis, x.dims().text());
    return along_axis(v, x.ndim(), axis);
  }
  if (block <= 0 || v.ndim() != x.ndim())
    call.refuse("scales {} for shape {} in blocks of {}: give as many axes, and block_size",
                v.dims().text(), x.dims().text(), block);
  const Tensor each = v.repeat_interleave(block, axis);
  std::vector<DimPair> range;
  for (size_t i = 0; i < x.ndim(); ++i) {
    const auto a = static_cast<int64_t>(i);
    if (each.dim(a).max() < x.dim(a).min() || (a != axis && !(each.dim(a) == x.dim(a))))
      call.refuse("scales {} in blocks of {} along axis {} do not cover shape {}", v.dims().text(),
                  block, axis, x.dims().text());
    range.emplace_back(0, x.dim(a));
  }
  return each.shrink(range);
}

ElementType type_of(const NodeCall& call, std::string_view attribute, ElementType otherwise) {
  const int64_t given = call.integer(attribute, 0);
  const auto type = given == 0 ? otherwise : static_cast<ElementType>(given);
  if (dtype_of(type) == DType::Void) call.refuse("{} {} is no type of numbers", attribute, given);
  return type;
}

/// x / scale, rounded, plus the zero point, as far as the type goes.
Values quantise(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& scale = call.tensor(1);
  const ElementType of_zero = call.has(2) ? call.input(2).type() : ElementType::Uint8;
  const ElementType to = type_of(call, "output_dtype", of_zero);
  const Value given_zero = call.has(2) ? call.input(2) : Value();
  if (comes_from(call.input(0), call.input(1), given_zero))
    if (const Value& from = call.input(0).dequantised_from()->x; from.type() == to) return {from};
  const DType asked = dtype_of(type_of(call, "precision", element_type_of(scale.dtype())));
  const DType run = is_float(asked) ? asked : DType::F32;
  // Ties decide where x is what was given. What was computed from steps may lie beside them.
  const Tensor step = beside(call, scale, x).cast(run);
  const Tensor ratio = call.input(0).is_rough() ? x.cast(run) * (1 / step) : x.cast(run) / step;
  const bool zero = call.has(2);
  if (is_float(dtype_of(to))) {
    const Tensor all = zero ? ratio + beside(call, call.tensor(2), x).cast(run) : ratio;
    return {cast_to(all, to, {.saturate = call.integer("saturate", 1) != 0})};
  }
  if (run == DType::F32 && bits(dtype_of(to)) <= 16) {
    const Tensor point = zero ? beside(call, call.tensor(2), x) : Tensor();
    return {Value(in_image_order(quantised_to(ratio, point, to).tensor()), to)};
  }
  // Whole numbers of up to 16 bits and their sums with a zero point are exact in f32.
  const Tensor whole = ratio.cast(wide(run)).round();
  return {
      clamped_to(zero ? whole + beside(call, call.tensor(2), x).cast(whole.dtype()) : whole, to)};
}

Values dequantise(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& scale = call.tensor(1);
  const ElementType to = type_of(call, "output_dtype", element_type_of(scale.dtype()));
  const bool narrow = !is_float(x.dtype()) && bits(x.dtype()) <= 16;
  const Value zero = call.has(2) ? call.input(2) : Value();
  if (to == ElementType::Float && !narrow)
    if (const auto known = constant_dequantised(call.input(0), call.input(1), zero))
      return {*known};
  const DType run = wide(dtype_of(to));
  Tensor y = x.cast(run);
  if (call.has(2)) {
    // Differences of 32 bits are exact as integers only.
    const bool whole = !is_float(x.dtype());
    const Tensor point = beside(call, call.tensor(2), x);
    y = whole ? (x.cast(DType::I32) - point.cast(DType::I32)).cast(run) : y - point.cast(run);
  }
  const Tensor all = (y * beside(call, scale, x).cast(run)).cast(dtype_of(to));
  if (!narrow || call.integer("block_size", 0) > 0) return {Value(all, to)};
  const bool one = scale.dims().product() == Dim(1);
  const int64_t axis = one ? 0 : call.axis(call.integer("axis", 1), x.ndim());
  return {Value::dequantised(all, to, {call.input(0), call.input(1), zero, axis})};
}

/// To u8, by the least and the greatest element and 0.
Values quantise_dynamically(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor low = x.min().minimum(0), high = x.max().maximum(0);
  const Tensor range = (high - low) / 255.0;
  const Tensor scale = (range == 0).where(1, range).cast(DType::F32);
  const Value zero = quantised_to(-low / scale, {}, ElementType::Uint8);
  return {quantised_to(x / scale, zero.tensor(), ElementType::Uint8), scale, zero};
}

}  // namespace

std::span<const Operator> quantised_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "ConvInteger", 10, convolution_of_integers},
      Operator{kOnnx, "DequantizeLinear", 10, dequantise},
      Operator{kOnnx, "DynamicQuantizeLinear", 11, quantise_dynamically},
      Operator{kOnnx, "MatMulInteger", 10, product_of_integers},
      Operator{kOnnx, "QLinearConv", 10, quantised_convolution},
      Operator{kOnnx, "QLinearMatMul", 10, quantised_product},
      Operator{kOnnx, "QuantizeLinear", 10, quantise},
  };
  return kRows;
}

}  // namespace weft::onnx
