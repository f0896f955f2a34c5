// Functions captured for every length from 1 to 1000, beside the same captured for one.
#include <cmath>
#include <functional>
#include <memory>

#include "weft/app/bench.h"
#include "weft/app/gpt2.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/nn/attention.h"
#include "weft/run/stats.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

constexpr int64_t kLongest = 1000;
constexpr int64_t kLengths[] = {1, 7, 16, 64, 100, 128, 333, 512, 777, 1000};
constexpr int64_t kQuickLengths[] = {7, 64, 333, 1000};
constexpr int64_t kTurns = 20, kQuickTurns = 5;  // for each repeat

struct LengthCase {
  std::string name;
  std::vector<Dims> operands;  // as long as they may be
  std::function<Tensor(const std::vector<Tensor>&, const Dim&)> compute;
  DType dtype = DType::F32;
};

Tensor rows(const Tensor& x, const Dim& n) { return x.shrink({{0, n}, {0, x.shape()[1]}}); }
Tensor middle(const Tensor& x, const Dim& n) {
  return x.shrink({{0, x.shape()[0]}, {0, n}, {0, x.shape()[2]}});
}

/// An encoder's layer whose weights are held, as a model's are.
LengthCase encoder(int64_t batch, int64_t dim, int64_t heads) {
  const nn::TransformerOptions options{.feedforward = 4 * dim,
                                       .dropout = 0,
                                       .activation = nn::Activation::Gelu,
                                       .batch_first = true};
  const auto layer = std::make_shared<nn::TransformerEncoderLayer>(dim, heads, options);
  realize(parameters(*layer));
  return {strformat("encoder layer, {} x n x {}, {} heads", batch, dim, heads),
          {{batch, kLongest, dim}},
          [=](auto& v, auto& n) { return (*layer)(middle(v[0], n)); }};
}

LengthCase decoder(int64_t dim, int64_t heads) {
  const auto block = std::make_shared<Gpt2Block>(Gpt2Config{.dim = dim, .heads = heads});
  realize(parameters(*block));
  return {strformat("block of GPT-2, 1 x n x {}, {} heads", dim, heads),
          {{1, kLongest, dim}},
          [=](auto& v, auto& n) { return (*block)(middle(v[0], n)); }};
}

/// One query for each of 32 heads, 8 heads of keys and values, of which n are there.
LengthCase cached(int64_t width, DType dtype) {
  return {strformat("32 queries of {} to 8 x n keys of {}", width, name(dtype)),
          {{32, 1, width}, {8, kLongest, width}, {8, kLongest, width}},
          [](auto& v, auto& n) {
            return v[0].scaled_dot_product_attention(middle(v[1], n), middle(v[2], n),
                                                     {.grouped_queries = true});
          },
          dtype};
}

std::vector<LengthCase> length_cases() {
  return {
      {"gelu of n x 512", {{kLongest, 512}}, [](auto& v, auto& n) { return rows(v[0], n).gelu(); }},
      {"softmax of 256 x n",
       {{256, kLongest}},
       [](auto& v, auto& n) { return v[0].shrink({{0, 256}, {0, n}}).softmax(); }},
      {"sum of n x 512 along n",
       {{kLongest, 512}},
       [](auto& v, auto& n) { return rows(v[0], n).sum(0); }},
      {"n x 512 by 512 x 512",
       {{kLongest, 512}, {512, 512}},
       [](auto& v, auto& n) { return rows(v[0], n).matmul(v[1]); }},
      {"512 x n by n x 512",
       {{512, kLongest}, {kLongest, 512}},
       [](auto& v, auto& n) { return v[0].shrink({{0, 512}, {0, n}}).matmul(rows(v[1], n)); }},
      {"attention of 8 heads, n x 64",
       {{8, kLongest, 64}, {8, kLongest, 64}, {8, kLongest, 64}},
       [](auto& v, auto& n) {
         const Tensor q = middle(v[0], n), k = middle(v[1], n), w = middle(v[2], n);
         return (q.matmul(k.transpose(-2, -1)) * 0.125).softmax().matmul(w);
       }},
      encoder(1, 768, 12),
      encoder(8, 384, 12),
      decoder(768, 12),
      cached(64, DType::F32),
      cached(128, DType::F32),
      cached(128, DType::F16),
      cached(128, DType::BF16),
  };
}

/// Medians of the two in turns: what the machine does meanwhile meets both.
std::pair<double, double> in_turns(int64_t repeats, FunctionRef<void()> a, FunctionRef<void()> b) {
  std::vector<double> of_a, of_b;
  for (int64_t i = 0; i < repeats; ++i) {
    const uint64_t start = now_ns();
    a();
    const uint64_t between = now_ns();
    b();
    of_a.push_back(static_cast<double>(between - start) * 1e-9);
    of_b.push_back(static_cast<double>(now_ns() - between) * 1e-9);
  }
  return {median(std::move(of_a)), median(std::move(of_b))};
}

std::vector<int64_t> lengths_of(const BenchOptions& options) {
  if (options.size > kLongest)
    fail("bench", "--size {} is over {}, the longest of lengths", options.size, kLongest);
  if (options.size > 0) return {options.size};
  if (options.quick) return {std::begin(kQuickLengths), std::end(kQuickLengths)};
  return {std::begin(kLengths), std::end(kLengths)};
}

class LengthBench {
 public:
  LengthBench(Context& context, const BenchOptions& options, BenchReport report)
      : context_(context),
        report_(report),
        lengths_(lengths_of(options)),
        turns_((options.quick ? kQuickTurns : kTurns) * options.repeats) {}

  void measure(const LengthCase& which) {
    std::vector<Tensor> values;
    for (const Dims& shape : which.operands)
      values.push_back(Tensor::randn(shape).cast(which.dtype).realize());
    const Variable length("n", 1, kLongest);
    // Arguments: what only depends on what a function holds would be computed once.
    using Values = std::vector<Tensor>;
    auto any =
        jit([&](const Values& v, const Dim& n) { return which.compute(v, n); }, "any length");
    const int64_t first = kernels_compiled_by(context_, [&] {
      for (int i = 0; i < 3; ++i) any(values, length.bind(kLongest));  // plain, captured, replayed
    });
    const int64_t later = kernels_compiled_by(context_, [&] {
      for (const int64_t n : lengths_) any(values, length.bind(n));
    });
    report_({strformat("{}, kernels", which.name), static_cast<double>(first), "compiled", 0,
             strformat("{} more for other lengths", later)});
    for (const int64_t n : lengths_) {
      auto one = jit([&](const Values& v) { return which.compute(v, n); }, "one length");
      for (int i = 0; i < 3; ++i) one(values);
      const auto [dynamic, fixed] =
          in_turns(turns_, [&] { any(values, length.bind(n)); }, [&] { one(values); });
      add(strformat("{}, n = {}", which.name, n), dynamic, fixed);
    }
  }

  void summarise() const {
    report_({strformat("geometric mean of {} rows", count_),
             100 * std::exp(logs_ / static_cast<double>(count_)), "%", 0,
             strformat("least {:.1f} %: {}", 100 * least_, slowest_)});
  }

 private:
  void add(const std::string& name, double dynamic, double fixed) {
    const double share = fixed / dynamic;
    report_(
        {name, 100 * share, "%", 0,
         strformat("of the speed for one length: {}, {}", time_text(dynamic), time_text(fixed))});
    if (count_ == 0 || share < least_) least_ = share, slowest_ = name;
    logs_ += std::log(share), ++count_;
  }

  Context& context_;
  BenchReport report_;
  std::vector<int64_t> lengths_;
  int64_t turns_;
  double logs_ = 0, least_ = 0;  // of shares so far
  int64_t count_ = 0;
  std::string slowest_;
};

}  // namespace

void bench_lengths(const Session& session, const BenchOptions& options, BenchReport report) {
  LengthBench bench(session.context, options, report);
  bool found = false;
  for (const LengthCase& which : length_cases()) {
    if (!options.which.empty() && which.name.find(options.which) == std::string::npos) continue;
    found = true;
    bench.measure(which);
  }
  if (!found) fail("bench", "no function of lengths has '{}' in its name", options.which);
  bench.summarise();
}

}  // namespace weft
