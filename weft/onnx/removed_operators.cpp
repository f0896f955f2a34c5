// Operators that ONNX had as experiments in opset 1 and removed again, which old converters wrote
// (tiny YOLOv2's ImageScaler). Semantics: ONNX 1.2's operator pages, and ONNX Runtime's results.
#include "weft/onnx/operators.h"

namespace weft::onnx {
namespace {

Values affine(const NodeCall& call) {
  return {call.tensor(0) * call.number("alpha", 1) + call.number("beta", 0)};
}

/// border: how much goes at the left, top, right and bottom; with scale (height, width) only where
/// what is left begins.
Values crop(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const std::vector<int64_t> border = call.ints("border"), scale = call.ints("scale");
  if (x.ndim() != 4 || border.size() != 4 || (!scale.empty() && scale.size() != 2))
    call.refuse("input {}, {} borders, {} scales: (n, c, h, w), 4 and 0 or 2", x.dims().text(),
                border.size(), scale.size());
  const int64_t h = x.size(2), w = x.size(3), top = border[1], left = border[0];
  const int64_t rows = scale.empty() ? h - top - border[3] : scale[0];
  const int64_t columns = scale.empty() ? w - left - border[2] : scale[1];
  const auto fits = [](int64_t from, int64_t count, int64_t size) {
    return from >= 0 && from <= size && count >= 0 && count <= size - from;
  };
  if (!fits(top, rows, h) || !fits(left, columns, w))
    call.refuse("{} rows from {} on and {} columns from {} on of {}: inside of the picture", rows,
                top, columns, left, x.dims().text());
  return {x.index({kEllipsis, Slice(top, top + rows), Slice(left, left + columns)})};
}

Values dynamic_slice(const NodeCall& call) {
  Values inputs;
  for (size_t i = 0; i < call.inputs(); ++i)
    inputs.push_back(call.has(i) ? call.input(i) : Value());
  return find_operator(kOnnx, "Slice", 10)->run(call.as(10, std::move(inputs)));
}

Values image_scaler(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const std::vector<double> bias = call.numbers("bias");
  if (x.ndim() != 4 || static_cast<int64_t>(bias.size()) != x.size(1))
    call.refuse("{} biases for {}: one for each channel of (n, c, h, w)", bias.size(),
                x.dims().text());
  const Tensor of_channels = Tensor::of(std::vector<float>(bias.begin(), bias.end()));
  return {x * call.number("scale", 1) + of_channels.reshape({-1, 1, 1}).cast(x.dtype())};
}

Values parametric_softplus(const NodeCall& call) {
  return {(call.tensor(0) * call.number("beta")).softplus() * call.number("alpha")};
}
Values scale(const NodeCall& call) { return {call.tensor(0) * call.number("scale", 1)}; }
Values scaled_tanh(const NodeCall& call) {
  return {(call.tensor(0) * call.number("beta")).tanh() * call.number("alpha")};
}

}  // namespace

std::span<const Operator> removed_operators() {
  static constexpr Operator kRows[] = {
      {kOnnx, "Affine", 1, affine},
      {kOnnx, "Crop", 1, crop},
      {kOnnx, "DynamicSlice", 1, dynamic_slice},
      {kOnnx, "ImageScaler", 1, image_scaler},
      {kOnnx, "ParametricSoftplus", 1, parametric_softplus},
      {kOnnx, "Scale", 1, scale},
      {kOnnx, "ScaledTanh", 1, scaled_tanh},
  };
  return kRows;
}

}  // namespace weft::onnx
