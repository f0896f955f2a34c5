#include <cmath>

#include "weft/onnx/contrib.h"
#include "weft/onnx/host.h"
#include "weft/onnx/image_order.h"
#include "weft/onnx/quantised_types.h"

namespace weft::onnx {

Values standard(const NodeCall& call, std::string_view name, int64_t opset, Values inputs) {
  const Operator* o = find_operator(kOnnx, name, opset);
  if (!o) call.refuse("it is made of {}, which weft lacks", name);
  return o->run(call.as(opset, std::move(inputs)));
}

Values inputs_of(const NodeCall& call, size_t first, size_t count) {
  Values all;
  for (size_t i = first; i < call.inputs() && all.size() < count; ++i)
    all.push_back(call.has(i) ? call.input(i) : Value());
  return all;
}

Tensor widened(const Tensor& x) { return is_narrow_float(x.dtype()) ? x.cast(DType::F32) : x; }

Tensor activated(const NodeCall& call, const Tensor& x, const std::string& name,
                 const std::vector<double>& numbers) {
  const auto number = [&](size_t i, double otherwise) {
    return i < numbers.size() ? numbers[i] : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return x.relu();
  if (name == "Tanh") return x.tanh();
  if (name == "Sigmoid") return x.sigmoid();
  if (name == "LeakyRelu") return x.leaky_relu(number(0, 0.01));
  if (name == "Elu") return x.elu(number(0, 1));
  if (name == "Clip") return x.clamp(number(0, -INFINITY), number(1, INFINITY));
  if (name == "HardSigmoid") return x.hardsigmoid(number(0, 0.2), number(1, 0.5));
  if (name == "HardSwish") return x.hardswish();
  if (name == "Softplus") return x.softplus();
  if (name == "Gelu") return x.gelu(false);
  if (name == "FastGelu") return x.gelu(true);
  call.refuse(
      "activation {}: Relu, Tanh, Sigmoid, LeakyRelu, Elu, Clip, HardSigmoid, HardSwish, "
      "Softplus, Gelu or FastGelu",
      quoted_name(name));
}

Tensor normed(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon,
              bool centered) {
  const Tensor wide = widened(x);
  Tensor y = centered ? wide.layernorm(-1, epsilon)
                      : wide * ((wide * wide).mean(-1, true) + epsilon).rsqrt();
  if (gamma.defined()) y = y * widened(gamma);
  if (beta.defined()) y = y + widened(beta);
  return y.cast(x.dtype());
}

Tensor dequantised(const Tensor& x, const Tensor& scale, const Tensor& zero) {
  const Tensor y = x.cast(DType::F32);
  return (zero.defined() ? y - zero.cast(DType::F32) : y) * scale.cast(DType::F32);
}

Tensor requantised(const Tensor& y, const Tensor& scale, const Tensor& zero, DType dtype) {
  const Tensor steps = scale.defined() ? y / scale.cast(DType::F32) : y;
  return in_image_order(quantised_to(steps, zero, element_type_of(dtype)).tensor());
}

Tensor optional_tensor(const NodeCall& call, size_t i) {
  return call.has(i) ? call.tensor(i) : Tensor();
}

Tensor dequantised_at(const NodeCall& call, size_t tensor, size_t scale, size_t zero) {
  return dequantised(call.tensor(tensor), call.tensor(scale), optional_tensor(call, zero));
}

Values embedded(const NodeCall& call, const std::vector<Tensor>& in) {
  enum { kIds, kSegments, kWords, kPlaces, kSegmentWords, kGamma, kBeta, kMask, kPositions };
  const auto rows = [](const Tensor& table, const Tensor& at) { return table.index({at}); };
  const Dims shape = in[kIds].dims();
  if (shape.size() != 2) call.refuse("input_ids {}: (batch, positions)", shape.text());
  Tensor sum = rows(in[kWords], in[kIds]);
  if (in[kPositions].defined())
    sum = sum + rows(in[kPlaces], in[kPositions]);
  else
    sum = sum + in[kPlaces].index({Slice(shape[1])});
  const Tensor words = sum;
  if (in[kSegmentWords].defined() && in[kSegments].defined())
    sum = sum + rows(in[kSegmentWords], in[kSegments]);
  const Tensor y = normed(sum, in[kGamma], in[kBeta], call.number("epsilon", 1e-12), true);
  const Tensor count = in[kMask].defined()
                           ? (in[kMask] != 0).cast(DType::I32).cumprod(1).sum(1).cast(DType::I32)
                           : Tensor::zeros({shape[0]}, DType::I32);
  return {y, count, sum};
}

}  // namespace weft::onnx
