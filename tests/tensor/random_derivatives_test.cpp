// Random functions and their derivatives (first, second, jvp and vmap of gradients): kernels give
// what the oracle gives, and the oracle what finite differences give.
#include <cmath>
#include <memory>

#include "tests/tensor/random_function.h"
#include "weft/base/context.h"
#include "weft/eval/evaluate.h"
#include "weft/run/realize.h"
#include "weft/run/storage.h"
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
        n->dtype, extents, context.get<BufferTable>().find(buffer_id(n))->data());
  }
  Values out;
  for (const eval::Array& a : eval::evaluate(roots, inputs)) out.push_back(a.doubles());
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
  RandomFunction f;
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
    for (uint64_t k = 0; k < 3 && !shaken; ++k) {
      const Values moved = evaluated(c.at((c.x * (1 + 100 * eps * c.f.point(k))).contiguous()));
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

/// One after the other; a machine of its own for every hundred, which then end with their kernels.
class Search {
 public:
  Search(const char* device, int64_t least_steps, int64_t most_steps)
      : device_(device), least_(least_steps), most_(most_steps) {}

  void run(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; ++seed) {
      if (!context_ || seed % 100 == 0) renew();
      const ContextScope scope(*context_);
      ASSERT_NO_FATAL_FAILURE(check(seed)) << "seed " << seed << " on " << device_ << "\n" << text_;
    }
  }

 private:
  void renew() {
    Options options = Options::from_environment();
    options.dev = device_;
    options.threads = 1;
    context_ = std::make_unique<Context>(options);
  }

  void check(uint64_t seed) {
    const bool single = seed % 8 == 7;
    const RandomFunction f(seed, least_, most_, single ? DType::F32 : DType::F64);
    Case c{f, f.point(1), f.point(2), seed % 4};
    const std::vector<Tensor> results = c.at(c.x);
    text_ = c.f.text();
    const Values wanted = evaluated(results);
    ASSERT_NO_THROW(realize(results));
    Values got;
    for (const Tensor& t : results) got.push_back(t.cast(DType::F64).to_vector<double>());
    ASSERT_TRUE(near(c, got, wanted, single ? 0x1p-24 : 0x1p-53));
    const bool smooth = single || seed % 16 > 2 || like_finite_differences(c, wanted);
    ASSERT_TRUE(smooth) << "finite differences";
  }

  const char* device_;
  int64_t least_, most_;
  std::unique_ptr<Context> context_;
  std::string text_;
};

TEST(RandomDerivatives, KernelsGiveWhatTheOracleAndFiniteDifferencesGive) {
  Search("CPU:INTERP", 2, 8).run(0, 850);
  Search("CPU:X86", 2, 8).run(850, 140);
  Search("CPU:C", 2, 8).run(990, 10);
}

TEST(RandomDerivatives, SlowHundredThousandPrograms) {
  Search("CPU:X86", 4, 20).run(1000, 50'000);
  Search("CPU:X86", 20, 60).run(51'000, 40'000);
  Search("CPU:INTERP", 20, 60).run(91'000, 9'900);
  Search("CPU:C", 20, 60).run(100'900, 100);
}

}  // namespace
}  // namespace weft
