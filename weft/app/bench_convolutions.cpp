// Convolutions: one of each kind, and those of ResNet-50 and MobileNetV2.
#include "weft/app/bench_cases.h"
#include "weft/base/format.h"

namespace weft {
namespace {

/// One convolution, of `size` pictures.
struct Layer {
  int64_t in, out, side, kernel, stride = 1, padding = 0, groups = 1, dilation = 1, axes = 2;

  std::string name() const {
    std::string text = strformat("conv{}d {} -> {} of {}, kernel {}", axes, in, out, side, kernel);
    if (stride != 1) text += strformat(", stride {}", stride);
    if (padding != 0) text += strformat(", padding {}", padding);
    if (groups != 1) text += strformat(", groups {}", groups);
    if (dilation != 1) text += strformat(", dilation {}", dilation);
    return text + ", batch {}";
  }
  std::string options() const {
    return strformat("stride={}, padding={}, groups={}, dilation={}", stride, padding, groups,
                     dilation);
  }
  std::string torch() const { return strformat("F.conv{}d(a, b, {})", axes, options()); }
  std::string onnx() const {
    return strformat(
        "op('Conv', a, b, strides=[{1}] * {0}, pads=[{2}] * {3}, dilations=[{4}] * {0}, group={5})",
        axes, stride, padding, 2 * axes, dilation, groups);
  }
  int64_t places() const { return (side + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }

  static BenchOperand operand(int64_t first, int64_t second, int64_t axes, int64_t size) {
    BenchOperand made{{first, second}};
    made.dims.insert(made.dims.end(), static_cast<size_t>(axes), size);
    return made;
  }
  BenchOperand image(int64_t batch) const { return operand(batch, in, axes, side); }
  BenchOperand weight() const { return operand(out, in / groups, axes, kernel); }
  BenchOperand result(int64_t batch) const { return operand(batch, out, axes, places()); }

  Tensor of(const Tensor& x, const Tensor& w) const {
    const auto all = [this](int64_t one) { return Ints::filled(static_cast<size_t>(axes), one); };
    return x.conv2d(w, {},
                    {.groups = groups,
                     .stride = all(stride),
                     .dilation = all(dilation),
                     .padding = all(padding)});
  }
  double flops(int64_t batch) const {
    double each = 2.0 * double(in / groups) * double(out) * double(batch);
    for (int64_t i = 0; i < axes; ++i) each *= double(places() * kernel);
    return each;
  }
};

constexpr Layer kLayers[] = {
    {64, 64, 56, 3, 1, 1},
    {128, 128, 28, 3, 1, 1},
    {256, 256, 14, 3, 1, 1},
    {512, 512, 7, 3, 1, 1},
    {3, 64, 224, 7, 2, 3},
    {256, 64, 56, 1},
    {256, 512, 56, 1, 2},
    {144, 144, 56, 3, 1, 1, 144},
    {64, 64, 56, 5},
    {64, 64, 56, 3, 1, 2, 1, 2},
    {.in = 64, .out = 64, .side = 3000, .kernel = 3, .padding = 1, .axes = 1},
    {.in = 16, .out = 16, .side = 28, .kernel = 3, .padding = 1, .axes = 3},
};

// All kinds that it has: He, Zhang, Ren and Sun 2016, with the stride in the middle of a block.
constexpr Layer kResNet50[] = {
    {3, 64, 224, 7, 2, 3},   {64, 64, 56, 1},    {64, 64, 56, 3, 1, 1},   {64, 256, 56, 1},
    {256, 64, 56, 1},        {256, 128, 56, 1},  {128, 128, 56, 3, 2, 1}, {128, 512, 28, 1},
    {256, 512, 56, 1, 2},    {512, 128, 28, 1},  {128, 128, 28, 3, 1, 1}, {512, 256, 28, 1},
    {256, 256, 28, 3, 2, 1}, {256, 1024, 14, 1}, {512, 1024, 28, 1, 2},   {1024, 256, 14, 1},
    {256, 256, 14, 3, 1, 1}, {1024, 512, 14, 1}, {512, 512, 14, 3, 2, 1}, {512, 2048, 7, 1},
    {1024, 2048, 14, 1, 2},  {2048, 512, 7, 1},  {512, 512, 7, 3, 1, 1},
};

// Its depthwise ones: Sandler et al. 2018.
constexpr Layer kMobileNetV2[] = {
    {32, 32, 112, 3, 1, 1, 32},   {96, 96, 112, 3, 2, 1, 96},   {144, 144, 56, 3, 1, 1, 144},
    {144, 144, 56, 3, 2, 1, 144}, {192, 192, 28, 3, 1, 1, 192}, {192, 192, 28, 3, 2, 1, 192},
    {384, 384, 14, 3, 1, 1, 384}, {576, 576, 14, 3, 1, 1, 576}, {576, 576, 14, 3, 2, 1, 576},
    {960, 960, 7, 3, 1, 1, 960},
};

BenchCase forward(const char* group, const Layer& layer, std::vector<int64_t> batches) {
  return {
      .group = group,
      .name = layer.name(),
      .sizes = std::move(batches),
      .operands = [layer](int64_t n) -> BenchOperands { return {layer.image(n), layer.weight()}; },
      .compute = [layer](const BenchValues& v) -> BenchValues { return {layer.of(v[0], v[1])}; },
      .torch = layer.torch(),
      .flops = [layer](int64_t n) { return layer.flops(n); },
      .onnx = layer.onnx()};
}

/// Of both operands, for a gradient of ones: sums of what repeats, far fewer operations than a
/// convolution, so that only memory is a limit.
BenchCase gradients_of_sum(const Layer& layer) {
  BenchCase made = forward("gradients", layer, {8});
  made.name = "gradients of the sum, " + made.name;
  made.compute = [layer](const BenchValues& v) -> BenchValues {
    return layer.of(v[0], v[1]).sum().gradient({v[0], v[1]});
  };
  made.torch = "grad(" + layer.torch() + ", (a, b))";
  made.flops = {};
  made.onnx = "";
  return made;
}

/// Of the image (operand 0) or the weight (1), for any gradient from above, c: nothing else.
BenchCase gradient(const char* group, const Layer& layer, std::vector<int64_t> batches,
                   size_t operand) {
  BenchCase made = forward(group, layer, std::move(batches));
  made.name = std::string(operand == 0 ? "image's" : "weight's") + " gradient, " + made.name;
  made.operands = [layer](int64_t n) -> BenchOperands {
    return {layer.image(n), layer.weight(), layer.result(n)};
  };
  made.compute = [layer, operand](const BenchValues& v) -> BenchValues {
    return (layer.of(v[0], v[1]) * v[2]).sum().gradient({v[operand]});
  };
  made.torch = strformat("torch.nn.grad.conv{}d_{}, c, {})", layer.axes,
                         operand == 0 ? "input(a.shape, b" : "weight(a, b.shape", layer.options());
  made.onnx = "";
  return made;
}

/// Of a network's layers: forward and both gradients, each by itself.
void add_layers(const char* group, const std::vector<int64_t>& batches,
                std::span<const Layer> layers, std::vector<BenchCase>& cases) {
  for (const Layer& layer : layers) cases.push_back(forward(group, layer, batches));
  for (const size_t operand : {0, 1})
    for (const Layer& layer : layers)
      if (operand == 1 || layer.in > 3)  // pictures have none
        cases.push_back(gradient(group, layer, batches, operand));
}

}  // namespace

void add_convolutions(std::vector<BenchCase>& cases) {
  for (const Layer& layer : kLayers) cases.push_back(forward("convolutions", layer, {1, 8}));
  cases.push_back({"convolutions",
                   "conv_transpose2d 64 -> 32 of 28, kernel 4, stride 2, batch {}",
                   {1, 8},
                   [](int64_t n) -> BenchOperands { return {{{n, 64, 28, 28}}, {{64, 32, 4, 4}}}; },
                   [](const BenchValues& v) -> BenchValues {
                     return {v[0].conv_transpose2d(v[1], {}, {.stride = 2})};
                   },
                   "F.conv_transpose2d(a, b, stride=2)",
                   "",
                   [](int64_t n) { return 2.0 * 64 * 32 * 28 * 28 * 16 * double(n); },
                   "op('ConvTranspose', a, b, strides=[2, 2])"});
  for (const Layer& layer : kLayers) cases.push_back(gradients_of_sum(layer));
  add_layers("ResNet-50", {1, 32}, kResNet50, cases);
  add_layers("MobileNetV2", {1, 32}, kMobileNetV2, cases);
}

}  // namespace weft
