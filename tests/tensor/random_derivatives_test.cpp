// Random functions and their derivatives (first, second, jvp and vmap of gradients): kernels give
// what the oracle gives, and the oracle what finite differences give.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

#include "tests/support/compiler/buffer_bytes.h"
#include "tests/support/device_here.h"
#include "tests/tensor/random_function.h"
#include "weft/base/context.h"
#include "weft/eval/evaluate.h"
#include "weft/run/realize.h"
#include "weft/run/storage.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/transforms.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Values = std::vector<std::vector<double>>;

/// By the oracle: no schedule, no kernel.
Values evaluated(const std::vector<Tensor>& tensors) {
  Context& context = tensors[0].context();
  const Graph::Building building(tensor_graph(context));
  std::vector<NodeRef> roots;
  for (const Tensor& t : tensors) roots.push_back(t.node());
  eval::Inputs inputs;
  for (NodeRef n : Toposort(roots)) {
    if (n->op != Op::Buffer) continue;
    eval::Extents extents;
    for (NodeRef d : n->shape->span()) extents.push_back(d->vmin);
    inputs.buffers[buffer_id(n)] = eval::Array::copy_of(
        n->dtype, extents, testing::bytes_of(context.get<BufferTable>().find(buffer_id(n))).data());
  }
  Values out;
  for (const eval::Array& a : eval::evaluate(roots, inputs)) out.push_back(a.doubles());
  return out;
}

Values realized(const std::vector<Tensor>& tensors) {
  realize(tensors);
  Values out;
  for (const Tensor& t : tensors) out.push_back(t.cast(DType::F64).to_vector<double>());
  return out;
}

double largest(const std::vector<double>& values) {
  double most = 1;
  for (const double x : values) most = std::max(most, std::fabs(x));
  return most;
}

/// The largest difference; infinite where one alone is no number.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && std::isfinite(most); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double d = a[i] == b[i] ? 0 : std::fabs(a[i] - b[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
  }
  return most;
}

/// A program, where it is looked at, and what is looked at.
struct Case {
  std::function<Tensor(const Tensor&)> f;
  Tensor x, v;
  uint64_t kind;

  Tensor gradient(const Tensor& at) { return f(at).gradient({at})[0]; }

  /// The value, the gradient, and one more: how the gradient moves along v, as a gradient or by
  /// jvp, or gradients mapped over slices.
  std::vector<Tensor> at(const Tensor& place) {
    const Tensor y = f(place), g = y.gradient({place})[0];
    std::vector<Tensor> all{y, g};
    const TensorFunction slope = of_one([this](const Tensor& p) { return gradient(p); });
    if (kind == 1) all.push_back((g * v).sum().gradient({place})[0]);
    if (kind == 2) all.push_back(jvp(slope, {place}, {v}).second[0]);
    if (kind == 3) all.push_back(vmap(slope, {Tensor::stack({place, v, place * v})})[0]);
    return all;
  }
};

/// Rounding may be as different as that of inputs which are not quite the same: ill-conditioned
/// programs, and those that decide between nearly equal numbers, are known by it.
bool near(Case& c, const Values& got, const Values& wanted, double eps) {
  bool shaken = false;
  std::vector<double> loose(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double d = apart(got[i], wanted[i]);
    if (d <= 1e4 * eps * largest(wanted[i])) continue;
    for (int k = 0; k < 3 && !shaken; ++k) {
      const Tensor turn = Tensor::arange(c.x.numel()).cast(c.x.dtype()).reshape(c.x.dims());
      const Tensor nudge = 1 + 100 * eps * (turn * (k + 1)).cos();
      const Values moved = evaluated(c.at((c.x * nudge).contiguous()));
      for (size_t j = 0; j < moved.size(); ++j)
        loose[j] = std::max(loose[j], apart(moved[j], wanted[j]));
    }
    shaken = true;
    if (d > 100 * loose[i]) return false;
  }
  return true;
}

/// Along v, twice: a kink between the two ends of one step is no mistake.
bool like_finite_differences(Case& c, const Values& known) {
  double dot = 0;
  const std::vector<double> v = evaluated({c.v})[0];
  for (size_t i = 0; i < v.size(); ++i) dot += known[1][i] * v[i];
  for (const double step : {1e-5, 1e-6, 3e-7}) {
    const Values up = evaluated(c.at((c.x + c.v * step).contiguous())),
                 down = evaluated(c.at((c.x - c.v * step).contiguous()));
    std::vector<double> slope{(up[0][0] - down[0][0]) / (2 * step)}, turn;
    for (size_t i = 0; i < v.size(); ++i) turn.push_back((up[1][i] - down[1][i]) / (2 * step));
    const bool second = c.kind != 1 && c.kind != 2;
    if (apart(slope, {dot}) < 1e-3 * largest(slope) &&
        (second || apart(turn, known[2]) < 1e-2 * largest(turn)))
      return true;
  }
  return false;
}

/// What is wrong; nothing where all is well. F32 is too coarse for finite differences.
std::string problem(Case& c, bool with_differences) {
  const bool single = c.x.dtype() == DType::F32;
  try {
    const std::vector<Tensor> results = c.at(c.x);
    const Values wanted = evaluated(results), got = realized(results);
    if (!near(c, got, wanted, single ? 0x1p-24 : 0x1p-53)) return "kernels differ from the oracle";
    if (single || !with_differences || like_finite_differences(c, wanted)) return "";
    return "the oracle differs from finite differences";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::unique_ptr<Context> machine(const char* device) {
  Options options = Options::from_environment();
  options.dev = testing::device_here(device);
  options.threads = 1;
  return std::make_unique<Context>(options);
}

/// A new machine for every hundred: kernels end with theirs.
void check_programs(const char* device, int64_t least_steps, int64_t most_steps, uint64_t first,
                    uint64_t count) {
  std::unique_ptr<Context> context;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!context || seed % 100 == 0) context = machine(device);
    const ContextScope scope(*context);
    RandomFunction f(seed, least_steps, most_steps, seed % 8 == 7 ? DType::F32 : DType::F64);
    Case c{std::ref(f), f.point(1), f.point(2), seed % 4};
    EXPECT_EQ(problem(c, seed % 16 < 3), "") << "seed " << seed << " on " << device << "\n"
                                             << f.text();
  }
}

/// The same, saying every thousand programs how far it is: hours pass.
void check_many(const char* device, int64_t least_steps, int64_t most_steps, uint64_t first,
                uint64_t count) {
  for (uint64_t done = 0; done < count;) {
    const uint64_t some = std::min<uint64_t>(1000, count - done);
    check_programs(device, least_steps, most_steps, first + done, some);
    done += some;
    std::printf("%s: seeds %llu to %llu, %llu programs of %lld to %lld steps\n", device,
                static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(first + done - 1),
                static_cast<unsigned long long>(done), static_cast<long long>(least_steps),
                static_cast<long long>(most_steps));
    std::fflush(stdout);
  }
}

/// What a fold along one axis makes of what a reduction along another gives, for several numbers of
/// rows: which loops are outside depends on them.
TEST(RandomDerivatives, EveryFoldAfterEveryReduction) {
  using Step = Tensor (*)(const Tensor&, int64_t);
  constexpr Step reductions[] = {
      [](const Tensor& x, int64_t a) { return x / x.sum(a, true); },
      [](const Tensor& x, int64_t a) { return x / ((x * x).sum(a, true) + 0.1).sqrt(); },
      [](const Tensor& x, int64_t a) { return x.layernorm(a); },
      [](const Tensor& x, int64_t a) { return x.log_softmax(a); },
      [](const Tensor& x, int64_t a) { return x * x.max(a, true); },
      [](const Tensor& x, int64_t a) { return x.cumprod(a); },
      [](const Tensor& x, int64_t a) { return logcumsumexp(x, a); }};
  constexpr Step folds[] = {[](const Tensor& x, int64_t a) { return x.cumsum(a); },
                            [](const Tensor& x, int64_t a) { return x.cumprod(a); },
                            [](const Tensor& x, int64_t a) { return x.cummax(a); },
                            [](const Tensor& x, int64_t a) { return cummin(x, a).values; },
                            [](const Tensor& x, int64_t a) { return logcumsumexp(x, a); },
                            [](const Tensor& x, int64_t a) { return x.tanh().prod(a); },
                            [](const Tensor& x, int64_t a) { return x.softmax(a); },
                            [](const Tensor& x, int64_t a) { return x.std(a); },
                            [](const Tensor& x, int64_t a) { return x.sort(a).first; }};
  uint64_t number = 0;
  for (const Step reduction : reductions) {
    const std::unique_ptr<Context> context = machine("CPU:INTERP");
    const ContextScope scope(*context);
    for (const Step fold : folds) {
      const int64_t rows = 2 + static_cast<int64_t>(++number % 8), axis = number / 8 % 2;
      const Tensor x =
          (Tensor::arange(rows * 5).cast(DType::F64) * 2.4).sin().reshape({rows, 5}) + 2;
      const Tensor v = x.cos();
      realize({x, v});
      Case c{[=](const Tensor& at) {
               const Tensor y = fold(reduction(at, axis), 1 - axis);
               return (y * (Tensor::arange(y.numel()).reshape(y.dims()) * 1.7).cos()).sum();
             },
             x, v, 1};
      EXPECT_EQ(problem(c, true), "") << "case " << number << ", rows " << rows;
    }
  }
}

TEST(RandomDerivatives, KernelsGiveWhatTheOracleAndFiniteDifferencesGive) {
  check_programs("CPU:INTERP", 2, 8, 0, 850);
  check_programs("CPU:X86", 2, 8, 850, 140);
  check_programs("CPU:C", 2, 8, 990, 10);
}

/// Others with --gtest_random_seed=N.
TEST(RandomDerivatives, SlowHundredThousandPrograms) {
  const uint64_t from = 1000 + 100'000 * static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  check_many("CPU:INTERP", 20, 60, from, 9'900);
  check_many("CPU:C", 20, 60, from + 9'900, 100);
  check_many("CPU:X86", 20, 60, from + 10'000, 40'000);
  check_many("CPU:X86", 4, 20, from + 50'000, 50'000);
}

}  // namespace
}  // namespace weft
