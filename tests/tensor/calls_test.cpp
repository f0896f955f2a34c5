// called(): a function that is traced once gives what it gives where it is written out, is
// differentiated and batched like it, and costs few nodes from the second time on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/tensor/near.h"
#include "tests/tensor/random_function.h"
#include "weft/base/context.h"
#include "weft/run/stats.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/tracing.h"
#include "weft/tensor/transforms.h"

namespace weft {
namespace {

/// A random function, as it is and as a call inside of a call.
struct Both {
  explicit Both(uint64_t seed) : plain(seed, 3, 12) {}
  Tensor call(const Tensor& x, int64_t seed) {
    return called("outer", {seed}, {x}, [&](const Tensors& in) {
      const Tensor inner =
          called("inner", {seed}, in, [&](const Tensors& v) { return Tensors{plain(v[0])}; })[0];
      return Tensors{inner + in[0].sum()};
    })[0];
  }
  Tensor written_out(const Tensor& x) { return plain(x) + x.sum(); }
  RandomFunction plain;
};

TEST(Calls, AreTheFunctionAndItsDerivatives) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Both f(seed);
    const auto number = static_cast<int64_t>(seed);
    for (uint64_t point = 0; point < 2; ++point) {
      const Tensor x = f.plain.point(seed + point);
      const Tensor want = f.written_out(x), got = f.call(x, number);
      expect_near(got, want, f.plain.text());
      expect_near(got.gradient({x})[0], want.gradient({x})[0], f.plain.text());
      const Tensor rows = f.plain.point(seed, 3);
      const TensorFunction mine = of_one([&](const Tensor& v) { return f.call(v, number); });
      const TensorFunction other = of_one([&](const Tensor& v) { return f.written_out(v); });
      expect_near(vmap(mine, {rows})[0], vmap(other, {rows})[0], f.plain.text());
    }
  }
}

Tensors sum_and_product(const Tensors& in) { return {in[0] + in[1] * 2, in[0] * in[1]}; }

/// What comes by way of another input is that input's.
TEST(Calls, MayGetInputsThatAreComputedFromEachOther) {
  const Tensor x = sample({4}, 3);
  const auto loss = [&](bool call) {
    const Tensors in{x, x.exp()};
    const Tensors made =
        call ? called("sum_and_product", {}, in, sum_and_product) : sum_and_product(in);
    return (made[0] * made[1]).sum();
  };
  expect_near(loss(true).gradient({x})[0], loss(false).gradient({x})[0], "once");
  const auto second = [&](bool call) {
    const Tensor g = loss(call).gradient({x})[0];
    return (g * g).sum().gradient({x})[0];
  };
  expect_near(second(true), second(false), "twice");
}

TEST(Calls, MayBeInBodiesAndHaveThemInside) {
  const Tensor x = sample({3, 4, 4}, 5), start = sample({4}, 6);
  const auto run = [&](auto&& solve) {
    const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
      const Tensor next = solve(slices[0], state[0]);
      return ScanResult{{next}, {next * 2}};
    };
    const ScanResult made = scan(step, {start}, {x});
    return made.carried[0].sum() + made.stacked[0].square().sum();
  };
  const auto by_call = [](const Tensor& a, const Tensor& b) {
    return linalg::solve(a + 8 * Tensor::eye(4, a.dtype()), b);
  };
  const auto by_inverse = [](const Tensor& a, const Tensor& b) {
    return linalg::inv(a + 8 * Tensor::eye(4, a.dtype())).matmul(b);
  };
  expect_near(run(by_call), run(by_inverse), "value");
  expect_near(run(by_call).gradient({x})[0], run(by_inverse).gradient({x})[0], "gradient");
}

/// Everything that is a call, on a small input.
const std::vector<std::pair<const char*, void (*)(const Tensor&)>> kCalls = {
    {"rand", [](const Tensor&) { Tensor::rand({8}).realize(); }},
    {"randn", [](const Tensor&) { Tensor::randn({8}).realize(); }},
    {"randint", [](const Tensor&) { Tensor::randint(0, 9, {8}).realize(); }},
    {"randperm", [](const Tensor&) { Tensor::randperm(8).realize(); }},
    {"sort", [](const Tensor& a) { a.sort().first.realize(); }},
    {"topk", [](const Tensor& a) { a.topk(2).first.realize(); }},
    {"cholesky", [](const Tensor& a) { linalg::cholesky(a).realize(); }},
    {"inv", [](const Tensor& a) { linalg::inv(a).realize(); }},
    {"solve", [](const Tensor& a) { linalg::solve(a, a).realize(); }},
    {"det", [](const Tensor& a) { linalg::det(a).realize(); }},
    {"qr", [](const Tensor& a) { linalg::qr(a).second.realize(); }},
    {"eigh", [](const Tensor& a) { linalg::eigh(a).first.realize(); }},
    {"svd", [](const Tensor& a) { linalg::svd(a).s.realize(); }},
    {"pinv", [](const Tensor& a) { linalg::pinv(a).realize(); }},
    {"eig", [](const Tensor& a) { linalg::eig(a).first.realize(); }},
};

TEST(Calls, AreFewNodesFromTheSecondTimeOnAndOneSchedule) {
  Context context;
  const ContextScope scope(context);
  for (const auto& [name, call] : kCalls) {
    SCOPED_TRACE(name);
    const auto matrix = [](float d) { return Tensor::of({{d, 1.f}, {1.f, d}}).realize(); };
    for (const float d : {3.f, 4.f}) call(matrix(d));
    const Tensor a = matrix(5);
    const size_t before = tensor_graph(context).live_nodes();
    const int64_t misses = run_stats(context).schedules.misses;
    call(a);
    EXPECT_LE(tensor_graph(context).live_nodes(), before + 16);
    EXPECT_EQ(run_stats(context).schedules.misses, misses);
  }
}

struct SmallFunction {
  const char* name;
  Tensor (*compute)(const Tensor& x);
  double (*value)(double x);
};

double held(double x, double low, double high) { return std::min(std::max(x, low), high); }

constexpr SmallFunction kSmall[] = {
    {"sign", [](const Tensor& x) { return x.sign(); },
     [](double x) { return double(x > 0) - double(x < 0); }},
    {"floor", [](const Tensor& x) { return x.floor(); }, [](double x) { return std::floor(x); }},
    {"ceil", [](const Tensor& x) { return x.ceil(); }, [](double x) { return std::ceil(x); }},
    {"leaky_relu", [](const Tensor& x) { return x.leaky_relu(0.25); },
     [](double x) { return x > 0 ? x : 0.25 * x; }},
    {"hardtanh", [](const Tensor& x) { return x.hardtanh(-0.5, 1); },
     [](double x) { return held(x, -0.5, 1); }},
    {"hardshrink", [](const Tensor& x) { return x.hardshrink(); },
     [](double x) { return std::fabs(x) <= 0.5 ? 0 : x; }},
    {"softshrink", [](const Tensor& x) { return x.softshrink(); },
     [](double x) { return x - held(x, -0.5, 0.5); }},
    {"nan_to_num", [](const Tensor& x) { return x.nan_to_num(); }, [](double x) { return x; }},
    {"copysign", [](const Tensor& x) { return x.copysign(x); }, [](double x) { return x; }},
};

size_t evaluated_nodes(const Tensor& x) { return Toposort::evaluated(std::array{x.node()}).size(); }

/// Of memory that is written meanwhile, too: each call sees what was there when it was made.
TEST(Calls, OfSmallFunctionsAreTwoNodes) {
  for (const SmallFunction& f : kSmall) {
    SCOPED_TRACE(f.name);
    Tensor now = sample({5}, 7);
    for (int round = 0; round < 4; ++round) {
      const Tensor y = f.compute(now);
      EXPECT_LE(evaluated_nodes(y), evaluated_nodes(now) + 2);
      const std::vector<double> before = now.to_vector<double>();
      now.assign(now * 2 - 0.25);
      if (round % 2 == 1) now.realize();
      for (size_t i = 0; i < before.size(); ++i)
        EXPECT_EQ(y.to_vector<double>()[i], f.value(before[i]));
    }
  }
}

}  // namespace
}  // namespace weft
