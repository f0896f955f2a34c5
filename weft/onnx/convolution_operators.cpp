// Convolutions. Semantics: the ONNX operator specification.
#include "weft/onnx/convolution_operators.h"

#include <array>

#include "weft/onnx/integer_products.h"
#include "weft/onnx/operators.h"
#include "weft/onnx/spatial.h"
#include "weft/tensor/image.h"

namespace weft::onnx {

namespace {

Values convolution(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& weight = call.tensor(1);
  const Spatial s = Spatial::of(call, x, kernel_of(call, weight));
  if (const auto y = convolution_of_dequantised(call, s)) return {*y};
  return {x.conv2d(weight, call.tensor_or(2, {}),
                   {.groups = call.integer("group", 1),
                    .stride = s.stride,
                    .dilation = s.dilation,
                    .padding = s.padding()})};
}

/// What is cut off at both ends of each axis so that the outputs are this many, or as pads say.
void cut_to(const NodeCall& call, const Tensor& x, const Ints& extra, Spatial& s) {
  const std::vector<int64_t> asked = call.ints("output_shape");
  const std::string mode = auto_pad(call);
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (asked.empty() && !same) return;
  if (!asked.empty() && asked.size() != s.axes() && asked.size() != s.axes() + 2)
    call.refuse("output_shape has {} numbers for {} spatial axes", asked.size(), s.axes());
  for (size_t i = 0; i < s.axes(); ++i) {
    const int64_t n = x.size(static_cast<int64_t>(i) + 2);
    const int64_t outputs = asked.empty() ? n * s.stride[i] : asked[asked.size() - s.axes() + i];
    const int64_t all = s.stride[i] * (n - 1) + extra[i] + s.reach(i) - outputs;
    if (outputs < 1) call.refuse("output_shape {}: sizes must be at least 1", outputs);
    s.before[i] = all < 0 ? 0 : mode == "SAME_UPPER" ? all / 2 : all - all / 2;
    s.after[i] = all - s.before[i];
  }
}

Values transposed_convolution(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& weight = call.tensor(1);
  Spatial s = Spatial::of(call, x, kernel_of(call, weight));
  Ints extra = call.ints("output_padding", std::vector<int64_t>(s.axes(), 0));
  if (extra.size() != s.axes())
    call.refuse("output_padding has {} numbers for {} spatial axes", extra.size(), s.axes());
  cut_to(call, x, extra, s);
  for (size_t i = 0; i < s.axes(); ++i) s.after[i] -= extra[i];
  return {x.conv_transpose2d(weight, call.tensor_or(2, {}),
                             {.groups = call.integer("group", 1),
                              .stride = s.stride,
                              .dilation = s.dilation,
                              .padding = s.padding()})};
}

Values column_to_image(const NodeCall& call) {
  const std::vector<int64_t> image = call.ints(1), block = call.ints(2);
  const size_t axes = block.size();
  const Ints ones = std::vector<int64_t>(axes, 1);
  const std::vector<int64_t> strides = call.ints("strides"), dilations = call.ints("dilations");
  std::vector<int64_t> pads = call.ints("pads", std::vector<int64_t>(2 * axes, 0));
  if (pads.size() != 2 * axes)
    call.refuse("pads has {} numbers for {} spatial axes", pads.size(), axes);
  Ints padding;
  for (size_t i = axes; i-- > 0;) {
    padding.push_back(pads[i]);
    padding.push_back(pads[axes + i]);
  }
  return {fold(call.tensor(0), image, block,
               {.stride = strides.empty() ? ones : Ints(strides),
                .dilation = dilations.empty() ? ones : Ints(dilations),
                .padding = padding})};
}

}  // namespace

/// Depthwise over the last axis, each output from inputs up to its own place, silu behind it.
Values causal_convolution(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& weight = call.tensor(1);
  if (x.ndim() != 3 || weight.ndim() != 3)
    call.refuse("input {} and weight {}: give (batch, channels, length) and (channels, 1, k)",
                x.dims().text(), weight.dims().text());
  const int64_t before = weight.size(2) - 1;
  const Tensor all =
      call.has(3) ? Tensor::cat({call.tensor(3), x}, 2) : x.pad({{0, 0}, {0, 0}, {before, 0}});
  const std::string activation = call.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    call.refuse("activation is '{}': give silu, swish or none", activation);
  const Tensor y = all.conv2d(weight, call.tensor_or(2, {}), {.groups = x.size(1)});
  const Dim length = all.dim(2);
  return {activation == "none" ? y : y.silu(),
          all.index({Slice(), Slice(), Slice(length - before, length)})};
}

std::span<const Operator> convolution_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "AveragePool", 1, average_pool},
      Operator{kOnnx, "CausalConvWithState", 27, causal_convolution},
      Operator{kOnnx, "Col2Im", 18, column_to_image},
      Operator{kOnnx, "Conv", 1, convolution},
      Operator{kOnnx, "ConvTranspose", 1, transposed_convolution},
      Operator{kOnnx, "DeformConv", 19, deformed_convolution},
      Operator{kOnnx, "GlobalAveragePool", 1, global_average_pool},
      Operator{kOnnx, "GlobalLpPool", 1, global_lp_pool},
      Operator{kOnnx, "GlobalMaxPool", 1, global_max_pool},
      Operator{kOnnx, "LpPool", 1, lp_pool},
      Operator{kOnnx, "MaxPool", 1, max_pool},
      Operator{kOnnx, "MaxRoiPool", 1, max_roi_pool},
      Operator{kOnnx, "MaxUnpool", 9, max_unpool},
  };
  return kRows;
}

}  // namespace weft::onnx
