// Products and attention.
#include <memory>

#include "weft/app/bench_cases.h"
#include "weft/base/format.h"
#include "weft/io/gguf_model.h"
#include "weft/llm/interleaved.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/packed.h"

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
          [=](int64_t s) { return 2.0 * double(of(m, s)) * double(of(k, s)) * double(of(n, s)); },
      .onednn = "linear(a, b.T)"};
}

BenchCase square_product(DType dtype, DType sum, const char* torch) {
  const bool whole = is_int(dtype);
  return {.group = "products",
          .name = strformat("matmul {{0}} x {{0}} x {{0}} {}", name(dtype)),
          .sizes = bits(dtype) > 16 ? std::vector<int64_t>{512, 1024, 2048}
                                    : std::vector<int64_t>{512, 1024, 2048, 4096},
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

/// A captured function of x that multiplies it with a weight, which it packs once.
std::function<BenchValues(const BenchValues&)> linear_layer() {
  using Function = std::function<Tensor(const Tensor&)>;
  struct Layer {
    Tensor weight;
    Jit<Function> run = jit(Function([this](const Tensor& x) { return x.matmul(weight.T()); }));
  };
  const auto layer = std::make_shared<Layer>();
  return [layer](const BenchValues& v) -> BenchValues {
    layer->weight = v[1];
    return {layer->run(v[0])};
  };
}

/// x @ w^T, [m, k] by [n, k], where the size stands for -1 and w never changes.
BenchCase constant_weight(std::string name, std::vector<int64_t> sizes, int64_t m, int64_t k,
                          int64_t n) {
  const auto of = [](int64_t dim, int64_t size) { return dim < 0 ? size : dim; };
  const std::string torch = "F.linear(a, b)";
  BenchCase c{.group = "constant weights",
              .name = std::move(name),
              .sizes = std::move(sizes),
              .operands = [=](int64_t s) -> BenchOperands {
                return {{{of(m, s), of(k, s)}}, {{of(n, s), of(k, s)}}};
              },
              .compute = {},
              .torch = torch,
              .numpy = "a @ b.T"};
  c.flops = [=](int64_t s) { return 2.0 * double(of(m, s)) * double(of(k, s)) * double(of(n, s)); };
  c.onednn = "linear(a, packed(b, len(a)))";
  c.network = linear_layer;
  return c;
}

/// How packed weights are multiplied.
struct PackedProduct {
  std::string_view name;
  Factors factors = Factors::F32;
  bool interleaved = false;
};
constexpr PackedProduct kPackedProducts[] = {{""},
                                             {"as bf16", Factors::BF16},
                                             {"as bytes", Factors::Q8},
                                             {"interleaved, as bytes", Factors::Q8, true}};
constexpr int64_t kSum = 2048, kColumns = 8192, kInterleavedRows = 16;

/// A captured function of x that multiplies it with each of many packed weights.
std::function<BenchValues(const BenchValues&)> packed_layers(Codec codec, int64_t k, int64_t n,
                                                             const PackedProduct& how) {
  using Function = std::function<BenchValues(const Tensor&)>;
  struct Layers {
    Codec codec;
    Dims shape;
    PackedProduct how;
    BenchValues weights = {};
    Jit<Function> run = jit(Function([this](const Tensor& x) {
      BenchValues y;
      for (const Tensor& w : weights) {
        const Tensor decoded = how.interleaved ? decode_interleaved(w, codec, shape)
                                               : PackedTensor{"", codec, shape, w}.value();
        y.push_back(product_with(x, decoded, how.factors));
      }
      return y;
    }));
  };
  const auto layers = std::make_shared<Layers>(codec, Dims{n, k}, how);
  return [layers](const BenchValues& v) {
    if (!layers->how.interleaved) {
      layers->weights.assign(v.begin() + 1, v.end());
    } else if (layers->weights.empty()) {
      for (size_t i = 1; i < v.size(); ++i)
        layers->weights.push_back(
            llm::interleaved(v[i], layers->codec, layers->shape, kInterleavedRows));
    }
    return layers->run(v[0]);
  };
}

/// x @ w^T with sixteen weights that no cache holds, as in a step of a language model.
BenchCase packed_weights(Codec codec, const PackedProduct& how) {
  constexpr int64_t kLayers = 16;
  BenchCase c{
      .group = strformat("packed weights{}{}", how.name.empty() ? "" : " ", how.name),
      .name = strformat("x @ w^T, {{}} x {} x {}, {} times, {}{}{}", kSum, kColumns, kLayers,
                        name(codec), how.name.empty() ? "" : ", ", how.name),
      .sizes = {1, 4, 16, 64, 256},
      .operands = [=](int64_t rows) -> BenchOperands {
        const bool plain = is_plain(codec);
        BenchOperands all{{{rows, kSum}}};
        // Bytes of packed weights are small enough that scales are finite.
        all.resize(
            1 + kLayers,
            plain ? BenchOperand{{kColumns, kSum}, row(codec).dtype}
                  : BenchOperand{
                        {*packed_bytes(codec, {{kColumns, kSum}})}, DType::U8, Fill::Below, 64});
        return all;
      },
      .compute = {},
      .torch = ""};
  c.flops = [=](int64_t rows) { return 2.0 * double(kLayers * kSum * kColumns * rows); };
  c.network = [=] { return packed_layers(codec, kSum, kColumns, how); };
  c.reads = true;
  return c;
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
  cases.push_back(product_of("matmul {} x 4096 x 4096", {1, 4, 16, 64, 256}, -1, 4096, 4096));
  cases.push_back(product_of("matmul {} x 3072 x 5000", {32, 128, 1024}, -1, 3072, 5000));
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
  cases.back().onednn = "linear(a, b)";
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

void add_constant_weights(std::vector<BenchCase>& cases) {
  cases.push_back(constant_weight("x @ w^T, w constant, {0} x {0} x {0}",
                                  {256, 512, 1024, 2048, 4096}, -1, -1, -1));
  cases.push_back(
      constant_weight("x @ w^T, w constant, 512 x 768 x {}", {768, 2304, 3072}, 512, 768, -1));
  cases.push_back(
      constant_weight("x @ w^T, w constant, {} x 3072 x 768", {1, 32, 512}, -1, 3072, 768));
  cases.push_back(
      constant_weight("x @ w^T, w constant, {} x 2048 x 8192", {1, 16, 256}, -1, 2048, 8192));
}

void add_packed_weights(std::vector<BenchCase>& cases) {
  for (const CodecRow& r : kCodecs)
    if (!is_plain(r.codec) || bits(r.dtype) == 16)
      for (const PackedProduct& how : kPackedProducts)
        if (!how.interleaved || may_be_interleaved(r.codec, {kColumns, kSum}, kInterleavedRows))
          cases.push_back(packed_weights(r.codec, how));
}

void add_attention(std::vector<BenchCase>& cases) {
  for (const int64_t width : {64, 128})
    for (const bool causal : {false, true})
      for (const bool backwards : {false, true})
        cases.push_back(attention(width, causal, backwards));
}

}  // namespace weft
