// com.microsoft: operators on integers that stand for numbers.
#include "weft/onnx/contrib.h"
#include "weft/onnx/host.h"
#include "weft/onnx/image_order.h"
#include "weft/onnx/quantised_types.h"

namespace weft::onnx {
namespace {

// y as input 0's kind of integers, by the scale and zero at these inputs.
Value result(const NodeCall& call, const Tensor& y, size_t scale, size_t zero, DType otherwise) {
  const Tensor point = optional_tensor(call, zero);
  return requantised(y, call.tensor(scale), point, point.defined() ? point.dtype() : otherwise);
}

// Of x, x_scale, x_zero, y_scale, y_zero.
Values of_one(const NodeCall& call, FunctionRef<Tensor(const Tensor&)> f) {
  return {result(call, f(dequantised_at(call, 0, 1, 2)), 3, 4, call.tensor(0).dtype())};
}
// Of a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
Values of_two(const NodeCall& call, FunctionRef<Tensor(const Tensor&, const Tensor&)> f) {
  const Tensor y = f(dequantised_at(call, 0, 1, 2), dequantised_at(call, 3, 4, 5));
  const Tensor point = optional_tensor(call, 7);
  // Times what the scale goes into once, as ONNX Runtime does.
  return {requantised(y * (1 / call.tensor(6).cast(DType::F32)), {}, point,
                      point.defined() ? point.dtype() : call.tensor(0).dtype())};
}

Values q_add(const NodeCall& call) {
  return of_two(call, [](const Tensor& a, const Tensor& b) { return a + b; });
}
Values q_mul(const NodeCall& call) {
  return of_two(call, [](const Tensor& a, const Tensor& b) { return a * b; });
}
Values q_leaky_relu(const NodeCall& call) {
  const double alpha = call.number("alpha", 0.01);
  return of_one(call, [&](const Tensor& x) { return x.leaky_relu(alpha); });
}
Values q_sigmoid(const NodeCall& call) {
  return of_one(call, [](const Tensor& x) { return x.sigmoid(); });
}
Values q_softmax(const NodeCall& call) {
  return of_one(call, [&](const Tensor& x) {
    const int64_t axis = call.axis(call.integer("axis", -1), x.ndim());
    if (call.integer("opset") >= 13) return x.softmax(axis);
    return x.flatten(axis).softmax(-1).reshape(x.dims());
  });
}
Values q_reduce_mean(const NodeCall& call) {
  return of_one(call, [&](const Tensor& x) {
    return x.mean(Axes(call.ints("axes")), call.integer("keepdims") != 0);
  });
}
Values q_average_pool(const NodeCall& call) {
  const bool last = call.integer("channels_last", 0) != 0;
  const Tensor x = dequantised_at(call, 0, 1, 2);
  const Tensor y = standard(call, "AveragePool", 11, {last ? channels_first(x) : x})[0].tensor();
  // ONNX Runtime rounds what the zero point has been added to: other ties go up.
  Tensor steps = y / call.tensor(3).reshape({});
  if (call.has(4)) steps = steps + call.tensor(4).reshape({}).cast(steps.dtype());
  const Value whole = clamped_to(steps.round(), call.input(0).type());
  return {last ? Value(channels_last(whole.tensor()), whole.type()) : whole};
}
Values q_global_average_pool(const NodeCall& call) {
  const bool last = call.integer("channels_last", 0) != 0;
  return of_one(call, [&](const Tensor& x) {
    Axes axes;
    for (size_t d = last ? 1 : 2; d + (last ? 1 : 0) < x.ndim(); ++d)
      axes.push_back(static_cast<int64_t>(d));
    return axes.empty() ? x : x.mean(axes, true);
  });
}
// y_scale, y_zero, then x, x_scale, x_zero of each.
Values q_concat(const NodeCall& call) {
  std::vector<Tensor> parts;
  for (size_t i = 2; i + 2 < call.inputs(); i += 3)
    parts.push_back(dequantised_at(call, i, i + 1, i + 2));
  if (parts.empty()) call.refuse("nothing to be joined: it has {} inputs", call.inputs());
  const int64_t axis = call.axis(call.integer("axis"), parts[0].ndim());
  return {result(call, Tensor::cat(parts, axis), 0, 1, DType::U8)};
}
// condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero.
Values q_where(const NodeCall& call) {
  const Tensor z =
      call.tensor(0).where(dequantised_at(call, 1, 2, 3), dequantised_at(call, 4, 5, 6));
  return {result(call, z, 7, 8, call.tensor(1).dtype())};
}

Values quantize_linear(const NodeCall& call) {
  return standard(call, "QuantizeLinear", 21, inputs_of(call));
}
Values dequantize_linear(const NodeCall& call) {
  return standard(call, "DequantizeLinear", 21, inputs_of(call));
}

// ---- products

Value given(const NodeCall& call, size_t i) { return call.has(i) ? call.input(i) : Value(); }

// (a - a_zero) @ (b - b_zero) in i32.
Tensor integer_product(const NodeCall& call, const Value& a, const Value& b, const Value& a_zero,
                       const Value& b_zero) {
  return standard(call, "MatMulInteger", 10, {a, b, a_zero, b_zero})[0].tensor();
}

Tensor scaled(const NodeCall& call, const Tensor& product, const Tensor& a_scale,
              const Tensor& b_scale, size_t bias) {
  const Tensor y = product.cast(DType::F32) * (a_scale * b_scale);
  return call.has(bias) ? y + call.tensor(bias) : y;
}

Values dynamic_quantize_matmul(const NodeCall& call) {
  const Values a = standard(call, "DynamicQuantizeLinear", 11, {call.input(0)});
  const Tensor product = integer_product(call, a[0], call.input(1), a[2], given(call, 3));
  return {scaled(call, product, a[1].tensor(), call.tensor(2), 4)};
}
Values matmul_integer_to_float(const NodeCall& call) {
  const Tensor product =
      integer_product(call, call.input(0), call.input(1), given(call, 4), given(call, 5));
  return {scaled(call, product, call.tensor(2), call.tensor(3), 6)};
}

// a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero.
Values q_gemm(const NodeCall& call) {
  const bool flip_a = call.integer("transA", 0) != 0, flip_b = call.integer("transB", 0) != 0;
  const Tensor a = flip_a ? call.tensor(0).T() : call.tensor(0);
  const Tensor b = flip_b ? call.tensor(3).T() : call.tensor(3);
  Tensor y = integer_product(call, a, b, given(call, 2), given(call, 5));
  if (call.has(6)) y = y + call.tensor(6);
  y = y.cast(DType::F32) * (call.number("alpha", 1) * (call.tensor(1) * call.tensor(4)));
  if (!call.has(7)) return {y};
  return {result(call, y, 7, 8, a.dtype())};
}

Values q_conv(const NodeCall& call) {
  Values inputs = inputs_of(call);
  const bool last = call.integer("channels_last", 0) != 0;
  if (last) inputs[0] = channels_first(call.tensor(0));
  const Value y = standard(call, "QLinearConv", 10, std::move(inputs))[0];
  return {last ? Value(channels_last(y.tensor())) : y};
}

Values matmul_integer_16(const NodeCall& call) {
  return {call.tensor(0).cast(DType::I32).matmul(call.tensor(1).cast(DType::I32))};
}

// a, a_zero, b, b_zero.
Values mul_integer(const NodeCall& call) {
  const auto whole = [&](size_t x, size_t zero) {
    const Tensor y = call.tensor(x).cast(DType::I32);
    return call.has(zero) ? y - call.tensor(zero).cast(DType::I32) : y;
  };
  return {whole(0, 1) * whole(2, 3)};
}

Values reduce_sum_integer(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const DType dtype = is_unsigned(x.dtype()) ? DType::U32 : DType::I32;
  return {x.sum(Axes(call.ints("axes")), call.integer("keepdims") != 0, dtype)};
}

// ---- embeddings: ids, segments, three tables, gamma, beta, mask, then five scales and five zeros.
Values q_embed_layer_norm(const NodeCall& call) {
  std::vector<Tensor> inputs = {call.tensor(0), optional_tensor(call, 1)};
  for (size_t i = 0; i < 5; ++i)
    inputs.push_back(call.has(2 + i) ? dequantised_at(call, 2 + i, 8 + i, 13 + i) : Tensor());
  inputs.push_back(optional_tensor(call, 7));
  inputs.emplace_back();
  Values results = embedded(call, inputs);
  results.resize(2);
  return results;
}

}  // namespace

std::span<const Operator> contrib_quantised_operators() {
  static constexpr Operator kRows[] = {
      {kMicrosoft, "DequantizeLinear", 1, dequantize_linear},
      {kMicrosoft, "DynamicQuantizeMatMul", 1, dynamic_quantize_matmul},
      {kMicrosoft, "GatherBlockQuantized", 1, gather_block_quantized},
      {kMicrosoft, "MatMulBnb4", 1, matmul_bnb4},
      {kMicrosoft, "MatMulInteger16", 1, matmul_integer_16},
      {kMicrosoft, "MatMulIntegerToFloat", 1, matmul_integer_to_float},
      {kMicrosoft, "MatMulNBits", 1, matmul_n_bits},
      {kMicrosoft, "MulInteger", 1, mul_integer},
      {kMicrosoft, "QEmbedLayerNormalization", 1, q_embed_layer_norm},
      {kMicrosoft, "QGemm", 1, q_gemm},
      {kMicrosoft, "QLinearAdd", 1, q_add},
      {kMicrosoft, "QLinearAveragePool", 1, q_average_pool},
      {kMicrosoft, "QLinearConcat", 1, q_concat},
      {kMicrosoft, "QLinearConv", 1, q_conv},
      {kMicrosoft, "QLinearGlobalAveragePool", 1, q_global_average_pool},
      {kMicrosoft, "QLinearLeakyRelu", 1, q_leaky_relu},
      {kMicrosoft, "QLinearMul", 1, q_mul},
      {kMicrosoft, "QLinearReduceMean", 1, q_reduce_mean},
      {kMicrosoft, "QLinearSigmoid", 1, q_sigmoid},
      {kMicrosoft, "QLinearSoftmax", 1, q_softmax},
      {kMicrosoft, "QLinearWhere", 1, q_where},
      {kMicrosoft, "QuantizeLinear", 1, quantize_linear},
      {kMicrosoft, "ReduceSumInteger", 1, reduce_sum_integer},
  };
  return kRows;
}

}  // namespace weft::onnx
