#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/tensor/near.h"
#include "weft/base/context.h"
#include "weft/eval/evaluate.h"
#include "weft/graph/tuple.h"
#include "weft/run/stats.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/transforms.h"

namespace weft {
namespace {

/// A layer: carried x (3, 4), weights (4, 4) and (4); also gives a number.
ScanResult layer(const Tensors& carried, const Tensors& slices) {
  const Tensor y = (carried[0].matmul(slices[0]) + slices[1]).tanh();
  return {{y}, {(y * y).sum()}};
}

/// The same without a Repeat.
ScanResult unrolled(const ScanFunction& f, Tensors carried, const Tensors& xs, bool reversed) {
  const int64_t count = xs[0].dim(0).max();
  std::vector<Tensors> outs(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = reversed ? count - 1 - i : i;
    Tensors slices;
    for (const Tensor& x : xs) slices.push_back(x[place]);
    ScanResult made = f(carried, slices);
    carried = made.carried;
    outs[static_cast<size_t>(place)] = made.stacked;
  }
  ScanResult result{carried, {}};
  for (size_t k = 0; k < outs[0].size(); ++k) {
    Tensors column;
    for (const Tensors& row : outs) column.push_back(row[k]);
    result.stacked.push_back(Tensor::stack(column));
  }
  return result;
}

struct Layers {
  explicit Layers(int64_t count)
      : x(sample({3, 4}, 1)), w(sample({count, 4, 4}, 2)), b(sample({count, 4}, 3)) {}
  Tensor x, w, b;
  Tensors xs() const { return {w, b}; }
};

TEST(Scan, IsTheLoopWrittenOut) {
  for (const int64_t count : {1, 2, 3, 7})
    for (const bool reversed : {false, true}) {
      const Layers l(count);
      const ScanResult got = scan(layer, {l.x}, l.xs(), {.reversed = reversed});
      const ScanResult want = unrolled(layer, {l.x}, l.xs(), reversed);
      const std::string what = "count " + std::to_string(count);
      expect_near(got.carried[0], want.carried[0], what);
      expect_near(got.stacked[0], want.stacked[0], what);
    }
}

TEST(Scan, HasTheGradientsOfTheLoop) {
  for (const int64_t count : {1, 2, 5}) {
    const Layers l(count);
    const auto loss = [&](const ScanResult& r) {
      return (r.carried[0] * r.carried[0]).sum() + (r.stacked[0] * 0.3).sum();
    };
    const Tensors got = loss(scan(layer, {l.x}, l.xs())).gradient({l.x, l.w, l.b});
    const Tensors want = loss(unrolled(layer, {l.x}, l.xs(), false)).gradient({l.x, l.w, l.b});
    for (size_t i = 0; i < 3; ++i)
      expect_near(got[i], want[i], "input " + std::to_string(i) + " of " + std::to_string(count));
  }
}

TEST(Scan, WhatItReadsFromAroundGetsGradients) {
  const Layers l(4);
  const Tensor shared = sample({4}, 9);
  const ScanFunction f = [&](const Tensors& carried, const Tensors& slices) {
    const Tensor y = carried[0].matmul(slices[0]) * shared.exp() + slices[1];
    return ScanResult{{y}, {}};
  };
  const Tensors got = scan(f, {l.x}, l.xs()).carried[0].sum().gradient({shared, l.w});
  const Tensors want = unrolled(f, {l.x}, l.xs(), false).carried[0].sum().gradient({shared, l.w});
  expect_near(got[0], want[0], "shared");
  expect_near(got[1], want[1], "weights");
}

TEST(Scan, HasSecondDerivatives) {
  const Layers l(3);
  const auto second = [&](const ScanResult& r) {
    const Tensor g = r.carried[0].sum().gradient({l.w})[0];
    return (g * g).sum().gradient({l.x, l.w});
  };
  const Tensors got = second(scan(layer, {l.x}, l.xs()));
  const Tensors want = second(unrolled(layer, {l.x}, l.xs(), false));
  expect_near(got[0], want[0], "x");
  expect_near(got[1], want[1], "w");
}

TEST(Scan, IsBatched) {
  const Layers l(3);
  const Tensor xs = sample({5, 3, 4}, 6), ws = sample({5, 3, 4, 4}, 7);
  const TensorFunction f = [&](const Tensors& in) {
    const ScanResult r = scan(layer, {in[0]}, {in[1], l.b});
    return Tensors{r.carried[0], r.stacked[0]};
  };
  const Tensors got = vmap(f, {xs, ws});
  for (int64_t i = 0; i < 5; ++i) {
    const Tensors want = f({xs[i], ws[i]});
    expect_near(got[0][i], want[0], "carried");
    expect_near(got[1][i], want[1], "stacked");
  }
  const Tensors shared = vmap(f, {xs, l.w}, {0, std::nullopt});
  expect_near(shared[0][2], f({xs[2], l.w})[0], "weights that all slices share");
}

TEST(Scan, Nests) {
  const Layers l(3);
  const ScanFunction outer = [&](const Tensors& carried, const Tensors& slices) {
    const ScanFunction inner = [&](const Tensors& c, const Tensors& s) {
      const Tensor y = (c[0] * s[0] + slices[0].sum()).sin();
      return ScanResult{{y}, {y.sum()}};
    };
    const ScanResult r = scan(inner, carried, {slices[1]});
    return ScanResult{r.carried, r.stacked};
  };
  const Tensor s = sample({3, 2, 4}, 8);
  const auto run = [&](bool as_scan) {
    return as_scan ? scan(outer, {l.x}, {l.b, s}) : unrolled(outer, {l.x}, {l.b, s}, false);
  };
  expect_near(run(true).carried[0], run(false).carried[0], "carried");
  expect_near(run(true).stacked[0], run(false).stacked[0], "stacked");
  const Tensors got = run(true).carried[0].sum().gradient({l.x, l.b, s});
  const Tensors want = run(false).carried[0].sum().gradient({l.x, l.b, s});
  for (size_t i = 0; i < 3; ++i) expect_near(got[i], want[i], "gradient " + std::to_string(i));
}

/// What depends on an inner round alone is in one place for all inner rounds: it is made again in
/// every outer one.
TEST(Scan, NestsWithWhatDependsOnTheInnerRoundAlone) {
  const Tensor x = sample({2, 3}, 1), ys = sample({4, 3}, 2), zs = sample({5, 3}, 3);
  const ScanFunction outer = [&](const Tensors& carried, const Tensors& slices) {
    const ScanFunction inner = [&](const Tensors& state, const Tensors& own) {
      const Tensor alone = (own[0] * 3).contiguous();
      return ScanResult{{(state[0] * 0.5F + alone.sum() * slices[0] + alone).contiguous()}, {}};
    };
    return ScanResult{scan(inner, carried, {zs}).carried, {carried[0] * 2}};
  };
  const ScanResult got = scan(outer, {x}, {ys});
  Tensor want = x;
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t k = 0; k < 5; ++k) {
      const Tensor alone = zs[k] * 3;
      want = want * 0.5F + alone.sum() * ys[i] + alone;
    }
  expect_near(got.carried[0], want, "carried");
}

TEST(Scan, CarriesIntegersBesideFloats) {
  const Tensor x = sample({6}, 1);
  const ScanFunction f = [](const Tensors& c, const Tensors& s) {
    const Tensor n = c[1] + 1;
    return ScanResult{{c[0] + s[0] * n.cast(DType::F64), n}, {n}};
  };
  const Tensors begin{Tensor::zeros({}, DType::F64), Tensor::zeros({}, DType::I32)};
  const ScanResult r = scan(f, begin, {x});
  const Tensor weights = Tensor::arange(6, DType::F64) + 1;
  expect_near(r.carried[0].gradient({x})[0], weights, "gradient");
  expect_near(r.carried[0], (x * weights).sum(), "weighted sum");
  EXPECT_EQ(r.stacked[0].to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

TEST(Scan, WithoutSlicesRepeats) {
  const ScanFunction doubled = [](const Tensors& c, const Tensors&) {
    return ScanResult{{c[0] * 2}, {}};
  };
  EXPECT_EQ(
      scan(doubled, {Tensor::of({1.0F, 3.0F})}, {}, {.count = 10}).carried[0].to_vector<float>(),
      (std::vector<float>{1024, 3072}));
}

TEST(Scan, OfNothingKeepsWhatIsCarried) {
  const Layers l(2);
  const ScanResult r =
      scan(layer, {l.x}, {Tensor::zeros({0, 4, 4}, DType::F64), Tensor::zeros({0, 4}, DType::F64)});
  expect_near(r.carried[0], l.x, "carried");
  EXPECT_EQ(r.stacked[0].shape(), std::vector<int64_t>{0});
}

TEST(Scan, CompilesOneBodyForAllLayers) {
  Context context;
  const ContextScope scope(context);
  const Layers l(100);
  realize({l.x, l.w, l.b});
  const int64_t before = run_stats(context).kernel_cache.entries;
  scan(layer, {l.x}, l.xs()).carried[0].realize();
  EXPECT_LE(run_stats(context).kernel_cache.entries - before, 4);
}

TEST(Scan, IsWhatTheOracleSays) {
  const Layers l(3);
  realize({l.x, l.w, l.b});
  const ScanResult r = scan(layer, {l.x}, l.xs());
  const Tensor g = r.carried[0].sum().gradient({l.w})[0];
  eval::Inputs inputs;
  for (const Tensor& t : {l.x, l.w, l.b}) {
    const auto v = t.to_vector<double>();
    inputs.buffers[buffer_id(t.node())] = eval::Array::of(DType::F64, t.shape(), v);
  }
  for (const Tensor& t : {r.carried[0], r.stacked[0], g}) {
    const auto want = eval::evaluate(t.node(), inputs).doubles(), got = t.to_vector<double>();
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i], got[i], 1e-12);
  }
}

TEST(Scan, InACapturedFunction) {
  Layers l(4);
  realize({l.w, l.b});
  Jit step([&](const Tensor& x) { return scan(layer, {x}, l.xs()).carried[0]; }, "step");
  for (uint64_t i = 0; i < 4; ++i) {
    const Tensor x = sample({3, 4}, i + 10);
    expect_near(step(x), unrolled(layer, {x}, l.xs(), false).carried[0], "call");
  }
}

TEST(Scan, SaysWhatIsWrong) {
  const Layers l(2);
  const auto body = [&](const ScanFunction& f) { scan(f, {l.x}, {l.w}); };
  EXPECT_ERROR(scan(layer, {l.x}, {l.w, sample({3, 4}, 1)}),
               "xs 1 of shape (3, 4) has 3 slices, xs 0 2");
  EXPECT_ERROR(body([](auto& c, auto&) { return ScanResult{{c[0].sum()}, {}}; }),
               "carried tensor 0 begins as f64 (3, 4) and becomes f64 (): its shape and dtype");
  const ScanFunction grow = [](const Tensors& c, const Tensors&) {
    return ScanResult{{c[0] + 1}, {}};
  };
  EXPECT_ERROR(scan(grow, {l.x}, {}, {.count = (1 << 24) + 1}), "at most 16777216");
  EXPECT_ERROR(scan(grow, {l.x}, {}, {.count = 1 << 23}).carried[0].realize(),
               "8388608 slices of 1 kernels each are more than 4194304");
  EXPECT_ERROR(scan(layer, {}, {}), "needs something to carry or to go over");
  EXPECT_ERROR(body([](auto& c, auto&) {
                 return ScanResult{{c[0] * c[0].sum().template item<double>()}, {}};
               }),
               "being traced");
}

// ---- checkpoint

TEST(Checkpoint, ChangesNoValueAndNoGradient) {
  const Tensor x = sample({3, 4}, 1), w = sample({4, 4}, 2);
  const TensorFunction f = [&](const Tensors& in) {
    return Tensors{in[0].matmul(w).tanh().matmul(w).exp(), in[0].sum()};
  };
  const Tensors a = f({x}), b = checkpoint(f, {x});
  const Tensors got = (b[0].sum() * b[1]).gradient({x, w});
  const Tensors want = (a[0].sum() * a[1]).gradient({x, w});
  for (size_t i = 0; i < 2; ++i) expect_near(got[i], want[i], "gradient");
  for (size_t k = 0; k < 2; ++k) expect_near(b[k], a[k], "value");
}

TEST(Checkpoint, KeepsLess) {
  const auto peak_of = [&](bool kept) {
    Context context;
    const ContextScope scope(context);
    const Tensor x = sample({128, 128}, 1).realize();
    const TensorFunction f = of_one([](const Tensor& t) {
      Tensor y = t;
      for (int j = 0; j < 6; ++j) y = (y.matmul(t) * 0.01).tanh();
      return y;
    });
    Tensor h = x;
    for (int i = 0; i < 6; ++i) h = kept ? f({h})[0] : checkpoint(f, {h})[0];
    h.sum().gradient({x})[0].realize();
    return run_stats(context).memory_peak;
  };
  EXPECT_LT(peak_of(false) * 2, peak_of(true));
}

/// A function's gradients have placeholders of their own, which are none of the body's: what it
/// gave is an input, and is not computed again in every body that reads it.
TEST(Scan, ComputesOnceWhatAFunctionGaveAroundIt) {
  const Tensor places = Tensor::arange(8, DType::I32).reshape({4, 2}).realize();
  const auto twice = [](const Tensors& x) { return Tensors{x[0] * 2}; };
  const auto same = [](const Tensors&, const Tensors&, const Tensors& up) { return up; };
  const auto kernels_of = [&](int64_t layers) {
    Tensor x = Tensor::full({8, 4}, 0.5F).realize();
    for (int64_t i = 0; i < layers; ++i) {
      const Tensor made = with_gradient(twice, same, {x})[0];
      const Tensor which = (places + (made.sum() * 0).cast(DType::I32)).contiguous();
      const auto body = [&](const Tensors&, const Tensors& slices) {
        const Tensor rows = made.index({slices[0]});
        return ScanResult{{}, {rows * rows}};
      };
      const Tensor all = scan(body, {}, {which}, {.apart = true}).stacked[0];
      x = (x + all.reshape({8, 4})) * 0.5F;
    }
    const int64_t before = run_stats(Context::current()).kernels;
    x.realize();
    return run_stats(Context::current()).kernels - before;
  };
  EXPECT_LE(kernels_of(6), 8 * kernels_of(1));
}

/// A weight that every row is multiplied with comes in as it is, not once for each row.
TEST(Scan, ViewsOfWhatIsAroundStayInside) {
  const Tensor w = sample({5, 4}, 1), xs = sample({3, 6, 4}, 2);
  const ScanFunction f = [&](const Tensors& carried, const Tensors& slices) {
    const Tensor y = (carried[0] + slices[0]).linear(w.T());
    return ScanResult{{carried[0] + y.sum(-1, true)}, {y}};
  };
  const Tensor stacked = scan(f, {Tensor::zeros({6, 4}, DType::F64)}, {xs}).stacked[0];
  const RepeatParts parts(stacked.node()->src(0));
  ASSERT_EQ(parts.whole.size(), 1u);
  EXPECT_EQ(parts.whole[0], w.node());
  expect_near(stacked[0], xs[0].linear(w.T()), "the first step");
}

/// As halves, which a machine's units multiply: it is not widened around the loop.
TEST(Scan, HalvesOfWhatIsAroundStayHalves) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const Tensor w = sample({5, 4}, 1).cast(dtype).realize(), xs = sample({3, 6, 4}, 2).cast(dtype);
    const ScanFunction f = [&](const Tensors&, const Tensors& slices) {
      return ScanResult{{}, {slices[0].linear(w.T())}};
    };
    const Tensor stacked = scan(f, {}, {xs}).stacked[0];
    const RepeatParts parts(stacked.node()->src(0));
    ASSERT_EQ(parts.whole.size(), 1u);
    EXPECT_EQ(parts.whole[0], w.node());
    expect_near(stacked.cast(DType::F64), xs.linear(w.T()).cast(DType::F64), "all rows at once");
  }
}

}  // namespace
}  // namespace weft
