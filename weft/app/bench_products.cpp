// Products, convolutions and attention.
#include "weft/app/bench_cases.h"
#include "weft/base/format.h"

namespace weft {
namespace {

using Fill = BenchOperand::Fill;

BenchValues product(const BenchValues& v) { return {v[0].matmul(v[1])}; }

/// [m, k] by [k, n], where the size stands for -1.
BenchCase product_of(std::string name, std::vector<int64_t> sizes, int64_t m, int64_t k,
                     int64_t n) {
  const auto of = [](int64_t dim, int64_t size) { return dim < 0 ? size : dim; };
  return {
      .group = "products",
      .name = std::move(name),
      .sizes = std::move(sizes),
      .operands = [=](int64_t s) -> BenchOperands {
        return {{{of(m, s), of(k, s)}}, {{of(k, s), of(n, s)}}};
      },
      .compute = product,
      .torch = "a @ b",
      .numpy = "a @ b",
      .flops =
          [=](int64_t s) { return 2.0 * double(of(m, s)) * double(of(k, s)) * double(of(n, s)); }};
}

BenchCase square_product(DType dtype, DType sum, const char* torch) {
  const bool whole = is_int(dtype);
  return {.group = "products",
          .name = strformat("matmul {{0}} x {{0}} x {{0}} {}", name(dtype)),
          .sizes = {512, 1024, 2048},
          .operands = [=](int64_t n) -> BenchOperands {
            const BenchOperand one{{n, n}, dtype, whole ? Fill::Below : Fill::Normal, 100};
            return {one, one};
          },
          .compute = [=](const BenchValues& v) -> BenchValues {
            return {v[0].cast(sum).matmul(v[1].cast(sum)).cast(sum)};
          },
          .torch = torch,
          .numpy = dtype == DType::F64 ? "a @ b" : "",
          .flops = [](int64_t n) { return 2.0 * double(n) * double(n) * double(n); }};
}

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
  std::string torch() const {
    return strformat("F.conv{}d(a, b, stride={}, padding={}, groups={}, dilation={})", axes, stride,
                     padding, groups, dilation);
  }
  BenchOperands operands(int64_t batch) const {
    BenchOperand x{{batch, in}}, w{{out, in / groups}};
    for (int64_t i = 0; i < axes; ++i) {
      x.dims.push_back(side);
      w.dims.push_back(kernel);
    }
    return {x, w};
  }
  Tensor of(const BenchValues& v) const {
    const auto all = [this](int64_t one) { return Ints::filled(static_cast<size_t>(axes), one); };
    return v[0].conv2d(v[1], {},
                       {.groups = groups,
                        .stride = all(stride),
                        .dilation = all(dilation),
                        .padding = all(padding)});
  }
  double flops(int64_t batch) const {
    const int64_t places = (side + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    double each = 2.0 * double(in / groups) * double(out) * double(batch);
    for (int64_t i = 0; i < axes; ++i) each *= double(places * kernel);
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

BenchCase forward(const Layer& layer) {
  return {.group = "convolutions",
          .name = layer.name(),
          .sizes = {1, 8},
          .operands = [layer](int64_t n) { return layer.operands(n); },
          .compute = [layer](const BenchValues& v) -> BenchValues { return {layer.of(v)}; },
          .torch = layer.torch(),
          .flops = [layer](int64_t n) { return layer.flops(n); }};
}

/// Of both operands, for a gradient of ones.
BenchCase gradients(const Layer& layer) {
  return {.group = "gradients",
          .name = layer.name(),
          .sizes = {8},
          .operands = [layer](int64_t n) { return layer.operands(n); },
          .compute = [layer](const BenchValues& v) -> BenchValues {
            return layer.of(v).sum().gradient({v[0], v[1]});
          },
          .torch = "grad(" + layer.torch() + ", (a, b))",
          .flops = [layer](int64_t n) { return 2 * layer.flops(n); }};
}

/// Forwards, which takes two products, or all three gradients for ones from above: five.
BenchCase attention(int64_t width, bool causal, bool backwards) {
  const std::string call =
      strformat("F.scaled_dot_product_attention(a, b, c, is_causal={})", causal ? "True" : "False");
  return {.group = "attention",
          .name = strformat("attention{} 1 x 16 x {{}} x {}{}", backwards ? " gradient" : "", width,
                            causal ? ", causal" : ""),
          .sizes = {1024, 2048, 4096},
          .operands = [=](int64_t n) -> BenchOperands {
            const BenchOperand one{{1, 16, n, width}};
            return {one, one, one};
          },
          .compute = [=](const BenchValues& v) -> BenchValues {
            const Tensor y = v[0].scaled_dot_product_attention(v[1], v[2], {.causal = causal});
            return backwards ? y.sum().gradient({v[0], v[1], v[2]}) : BenchValues{y};
          },
          .torch = backwards ? "grad(" + call + ", (a, b, c))" : call,
          .flops =
              [=](int64_t n) {
                const double each = (causal ? 1.0 : 2.0) * 16 * double(n) * double(n);
                return (backwards ? 5 : 2) * each * double(width);
              }};
}

}  // namespace

void add_products(std::vector<BenchCase>& cases) {
  cases.push_back(product_of("matmul {0} x {0} x {0}", {512, 1000, 1024, 2048, 4096}, -1, -1, -1));
  cases.push_back(product_of("matmul 4096 x 4096 x {}", {1, 4, 16, 64}, 4096, 4096, -1));
  cases.push_back(product_of("matmul {} x 4096 x 4096", {1, 4, 16, 64}, -1, 4096, 4096));
  cases.push_back(square_product(DType::F64, DType::F64, "a @ b"));
  cases.push_back(square_product(DType::I32, DType::I32, "a @ b"));
  cases.push_back(square_product(DType::BF16, DType::BF16, "a @ b"));
  cases.push_back(square_product(DType::I8, DType::I32, "torch._int_mm(a, b)"));
  const auto flops = [](int64_t n) { return 2.0 * 512 * 768 * double(n); };
  cases.push_back({"products",
                   "x @ w^T, 512 x 768 x {}",
                   {768, 3072},
                   [](int64_t n) -> BenchOperands { return {{{512, 768}}, {{n, 768}}}; },
                   [](const BenchValues& v) -> BenchValues { return {v[0].matmul(v[1].T())}; },
                   "a @ b.T",
                   "a @ b.T",
                   flops});
  cases.push_back({"products",
                   "x^T @ y, {}",
                   {512, 2048},
                   [](int64_t n) -> BenchOperands { return {{{n, n}}, {{n, n}}}; },
                   [](const BenchValues& v) -> BenchValues { return {v[0].T().matmul(v[1])}; },
                   "a.T @ b",
                   "a.T @ b",
                   [](int64_t n) { return 2.0 * double(n) * double(n) * double(n); }});
  cases.push_back({"products",
                   "batched {} x (128 x 64 x 128)",
                   {1, 96},
                   [](int64_t n) -> BenchOperands { return {{{n, 128, 64}}, {{n, 64, 128}}}; },
                   product,
                   "a @ b",
                   "a @ b",
                   [](int64_t n) { return 2.0 * 128 * 64 * 128 * double(n); }});
}

void add_convolutions(std::vector<BenchCase>& cases) {
  for (const Layer& layer : kLayers) cases.push_back(forward(layer));
  cases.push_back({"convolutions",
                   "conv_transpose2d 64 -> 32 of 28, kernel 4, stride 2, batch {}",
                   {1, 8},
                   [](int64_t n) -> BenchOperands { return {{{n, 64, 28, 28}}, {{64, 32, 4, 4}}}; },
                   [](const BenchValues& v) -> BenchValues {
                     return {v[0].conv_transpose2d(v[1], {}, {.stride = 2})};
                   },
                   "F.conv_transpose2d(a, b, stride=2)",
                   "",
                   [](int64_t n) { return 2.0 * 64 * 32 * 28 * 28 * 16 * double(n); }});
  for (const Layer& layer : kLayers) cases.push_back(gradients(layer));
  for (const int64_t width : {64, 128})
    for (const bool causal : {false, true})
      for (const bool backwards : {false, true})
        cases.push_back(attention(width, causal, backwards));
}

}  // namespace weft
