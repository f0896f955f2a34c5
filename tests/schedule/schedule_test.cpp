// The scheduler: what it produces computes what the oracle says, with as many kernels as it should
// need.
#include "weft/schedule/schedule.h"
#include "weft/schedule/axes.h"
#include "weft/target/target.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/schedule/schedule_test.h"
#include "weft/graph/print.h"

namespace weft {
namespace {

TEST_F(ScheduleTest, ElementwiseChainIsOneKernel) {
  NodeRef x = b_.param(0, {5, 7}), y = b_.param(1, {7});
  NodeRef z = g_.mul(g_.add(x, b_.broadcast(y, {1, 7}, {5, 7})), b_.constant(3));
  EXPECT_EQ(kernels({{z}}), 1u);
  check({{z}});
}

TEST_F(ScheduleTest, SoftmaxIsOneKernel) {
  NodeRef x = b_.param(0, {12, 9});
  NodeRef shifted = g_.sub(x, b_.broadcast(b_.reduce(x, Fold::Max, {1}), {12, 1}, {12, 9}));
  NodeRef e = g_.alu(Op::Exp2, {shifted});
  NodeRef soft = g_.alu(Op::Div, {e, b_.broadcast(b_.reduce(e, Fold::Add, {1}), {12, 1}, {12, 9})});
  EXPECT_EQ(kernels({{soft}}), 1u);
  check({{soft}}, 1e-5);
}

TEST_F(ScheduleTest, BiasAndActivationFinishAProduct) {
  NodeRef p = b_.matmul(b_.param(0, {6, 10}), b_.param(1, {10, 20}));
  NodeRef y = g_.alu(
      Op::Max, {g_.add(p, b_.broadcast(b_.param(2, {20}), {1, 20}, {6, 20})), b_.constant(0)});
  EXPECT_EQ(kernels({{y}}), 1u);
  check({{y}}, 1e-5);
}

/// What follows a product, and nothing else wants, is computed where the product is stored, not at
/// each of the nine places of a depthwise window that read it.
TEST_F(ScheduleTest, WhatFinishesAProductIsStoredInItsPlace) {
  const int64_t c = 8, h = 18;
  const GraphBuilder::Ints all{c, h - 2, h - 2, 3, 3};
  NodeRef product = b_.reshape(b_.matmul(b_.param(0, {c, 4}), b_.param(1, {4, h * h})), {c, h, h});
  const auto depthwise = [&](NodeRef x) {
    NodeRef windows = b_.window(b_.window(x, 1, 3), 2, 3);
    NodeRef w = b_.broadcast(b_.param(2, {c, 3, 3}), {c, 1, 1, 3, 3}, all);
    return b_.reduce(g_.mul(windows, w), Fold::Add, {3, 4});
  };
  const auto repeated = [&](const std::vector<ScheduleOutput>& outputs) {
    for (const Kernel& k : make_schedule(outputs, kTarget).kernels)
      for (NodeRef n : Toposort(k.sink))
        if (n->op == Op::Reduce && fold_of(n) == Fold::Add)
          for (NodeRef inside : Toposort(n->src(0)))
            if (inside->op == Op::Max) return true;
    return false;
  };
  NodeRef clipped = g_.alu(Op::Max, {product, b_.constant(0)});
  NodeRef y = depthwise(clipped);
  EXPECT_FALSE(repeated({{y}}));
  EXPECT_EQ(kernels({{y}}), 2u);
  check({{y}}, 1e-5);
  // Somebody wants the product, too: it is stored anyway.
  NodeRef also = b_.reduce(product, Fold::Max, {0});
  EXPECT_TRUE(repeated({{y}, {also}}));
  check({{y}, {also}}, 1e-5);
}

// Written to a flat buffer, a product keeps its two axes: flattened, its tiles would be lost.
TEST_F(ScheduleTest, AReshapedOutputIsComputedInItsOwnShape) {
  NodeRef p = b_.matmul(b_.param(0, {6, 10}), b_.param(1, {10, 20}));
  NodeRef flat = b_.reshape(p, {120});
  const Schedule schedule = make_schedule(std::vector<ScheduleOutput>{{flat}}, kTarget);
  ASSERT_EQ(schedule.kernels.size(), 1u);
  EXPECT_NE(schedule.kernels[0].name.find("6_20"), std::string::npos) << schedule.kernels[0].name;
  check({{flat}}, 1e-5);
}

TEST_F(ScheduleTest, ConvolutionAndItsGradients) {
  const int64_t n = 4, c = 3, o = 5, h = 6, k = 3, q = 4;
  const GraphBuilder::Ints all{n, o, c, q, q, k, k};
  NodeRef x = b_.param(0, {n, c, h, h}), w = b_.param(1, {o, c, k, k}),
          dy = b_.param(2, {n, o, q, q});
  NodeRef windows = b_.window(b_.window(x, 2, k), 3, k);
  NodeRef xs = b_.broadcast(windows, {n, 1, c, q, q, k, k}, all),
          ws = b_.broadcast(w, {1, o, c, 1, 1, k, k}, all);
  NodeRef dys = b_.broadcast(dy, {n, o, 1, q, q, 1, 1}, all);
  NodeRef y = b_.reduce(g_.mul(xs, ws), Fold::Add, {2, 5, 6});
  NodeRef dw = b_.reduce(g_.mul(xs, dys), Fold::Add, {0, 3, 4});
  NodeRef dwindows = b_.reduce(g_.mul(dys, ws), Fold::Add, {1});
  NodeRef dx =
      b_.reduce(b_.unwindow(b_.reduce(b_.unwindow(dwindows, h, 3, k), Fold::Add, {5}), h, 2, k),
                Fold::Add, {4});
  EXPECT_EQ(kernels({{dx}}), 1u);
  check({{y}, {dw}, {dx}}, 1e-5);
}

/// Operands that may change places lie in an order of hashes, which know what params are called.
TEST_F(ScheduleTest, NamesDoNotTellEqualKernelsApart) {
  std::vector<ScheduleOutput> outputs;
  NodeRef scale = b_.param(0, {1});
  for (int i = 0; i < 8; ++i) {
    NodeRef weight = b_.param(3 * i + 1, {64}), moment = b_.param(3 * i + 2, {64}),
            gradient = b_.param(3 * i + 3, {64});
    NodeRef step = g_.mul(b_.broadcast(scale, {1}, {64}), g_.mul(gradient, b_.constant(0.5)));
    outputs.push_back({g_.add(g_.mul(weight, moment), g_.add(step, weight))});
  }
  EXPECT_EQ(make_schedule(outputs, kTarget).kernels.size(), 1u);
  check(outputs, 1e-6);
}

TEST_F(ScheduleTest, BatchNormThenPool) {
  const int64_t n = 16, c = 8, h = 4;
  NodeRef x = g_.alu(Op::Max, {b_.param(0, {n, c, h, h}), b_.constant(0)});
  NodeRef share = b_.constant(1.0 / static_cast<double>(n * h * h));
  auto per_channel = [&](NodeRef v) { return b_.broadcast(v, {1, c, 1, 1}, {n, c, h, h}); };
  NodeRef mean = g_.mul(b_.reduce(x, Fold::Add, {0, 2, 3}), share);
  NodeRef centred = g_.sub(x, per_channel(mean));
  NodeRef variance = g_.mul(b_.reduce(g_.mul(centred, centred), Fold::Add, {0, 2, 3}), share);
  NodeRef scale =
      g_.alu(Op::Div, {b_.constant(1), g_.alu(Op::Sqrt, {g_.add(variance, b_.constant(1e-5))})});
  NodeRef pooled = b_.reduce(b_.reshape(g_.mul(centred, per_channel(scale)), {n, c, 2, 2, 2, 2}),
                             Fold::Max, {3, 5});
  NodeRef running =
      g_.add(g_.mul(b_.param(1, {c}), b_.constant(0.9)), g_.mul(mean, b_.constant(0.1)));
  check({{pooled}, {running, 1}}, 1e-4);
}

TEST_F(ScheduleTest, AnOptimizerStepIsOneKernelInPlace) {
  NodeRef p = b_.param(0, {6, 5}), m = b_.param(1, {6, 5}), v = b_.param(2, {6, 5});
  NodeRef grad = b_.matmul(b_.permute(b_.param(3, {8, 6}), {1, 0}), b_.param(4, {8, 5}));
  NodeRef new_m = g_.add(g_.mul(m, b_.constant(0.9)), g_.mul(grad, b_.constant(0.1)));
  NodeRef new_v =
      g_.add(g_.mul(v, b_.constant(0.99)), g_.mul(g_.mul(grad, grad), b_.constant(0.01)));
  NodeRef root =
      g_.add(g_.alu(Op::Sqrt, {g_.alu(Op::Max, {new_v, b_.constant(0)})}), b_.constant(0.5));
  NodeRef new_p = g_.sub(p, g_.alu(Op::Div, {new_m, root}));
  EXPECT_EQ(kernels({{new_m, 1}, {new_v, 2}, {new_p, 0}}), 1u);
  check({{new_m, 1}, {new_v, 2}, {new_p, 0}}, 1e-5);
}

TEST_F(ScheduleTest, GatherReadsOnlyWhatIsLookedUp) {
  NodeRef table = b_.param(0, {7, 4}), index = b_.param(1, {5}, DType::I32);
  NodeRef rows = b_.gather(table, b_.broadcast(index, {5, 1}, {5, 4}), 0);
  EXPECT_EQ(kernels({{rows}}), 1u);
  check({{rows}});
}

TEST_F(ScheduleTest, OneHotProductIsALookup) {
  NodeRef table = b_.param(0, {7, 4}), index = b_.param(1, {5}, DType::I32);
  NodeRef hot = g_.eq(b_.broadcast(index, {5, 1}, {5, 7}), b_.iota({5, 7}, 1));
  NodeRef picked = g_.where(b_.broadcast(hot, {5, 7, 1}, {5, 7, 4}),
                            b_.broadcast(table, {1, 7, 4}, {5, 7, 4}), b_.constant(0));
  for (NodeRef x : {picked, g_.alu(Op::Neg, {picked})}) {
    NodeRef rows = b_.reduce(x, Fold::Add, {1});
    const Schedule s = make_schedule(std::vector<ScheduleOutput>{{rows}}, kTarget);
    ASSERT_EQ(s.kernels.size(), 1u);
    for (NodeRef n : Toposort(s.kernels[0].sink))
      EXPECT_NE(n->op, Op::Reduce) << print_graph(s.kernels[0].sink);
    check({{rows}});
  }
}

TEST_F(ScheduleTest, ScatterFoldsInOrder) {
  NodeRef base = b_.param(0, {7, 4}), index = b_.param(1, {9}, DType::I32),
          src = b_.param(2, {9, 4});
  NodeRef at = b_.broadcast(index, {9, 1}, {9, 4});
  check({{b_.scatter(base, at, src, 0, Fold::Add)}, {b_.scatter(base, at, src, 0, Fold::Set)}});
}

TEST_F(ScheduleTest, RunningSums) {
  NodeRef x = b_.param(0, {3, 11});
  check({{g_.mul(b_.scan(x, Fold::Add, 1), b_.constant(2))}, {b_.scan(x, Fold::Max, 0)}});
}

TEST_F(ScheduleTest, AssignInPlaceAndBesideReadersOfTheOldValue) {
  NodeRef a = b_.param(0, {10}), next = g_.add(a, b_.constant(1));
  NodeRef updated = b_.assign(a, b_.shrink(a, {2}, {3}), b_.shrink(next, {0}, {3}));
  check({{updated, 0}, {next}});
  NodeRef only = b_.assign(a, b_.shrink(a, {1}, {4}, {2}), b_.param(1, {4}));
  EXPECT_EQ(kernels({{only, 0}}), 1u);
  check({{only, 0}});
}

TEST_F(ScheduleTest, SwappingTwoBuffers) {
  NodeRef a = b_.param(0, {10}), c = b_.param(1, {10});
  check({{a, 1}, {c, 0}});
  check({{b_.flip(a, {0}), 0}});
}

TEST_F(ScheduleTest, PaddingAndInteriorPadding) {
  NodeRef x = b_.param(0, {3, 4});
  NodeRef padded = b_.pad(x, {1, 2}, {0, 1}, {1, 0});
  check({{padded}, {b_.reduce(g_.alu(Op::Exp2, {padded}), Fold::Add, {0})}}, 1e-5);
}

TEST_F(ScheduleTest, EmptyTensors) {
  NodeRef x = b_.param(0, {0, 4});
  check({{g_.add(x, b_.constant(1))},
         {b_.reduce(x, Fold::Add, {0})},
         {b_.reduce(x, Fold::Max, {0})}});
}

TEST_F(ScheduleTest, LargeSumsSplit) {
  NodeRef x = b_.param(0, {512, 512});
  NodeRef total = b_.reduce(x, Fold::Add, {0, 1});
  EXPECT_EQ(kernels({{total}}), 2u);
  check({{total}}, 1e-4);
}

/// Channels lie innermost in the result, so vectors run along them; in the weights they do not.
TEST_F(ScheduleTest, OperandsOfProductsAreTurned) {
  const int64_t n = 8, c = 16, h = 8, k = 3, q = 6;
  const GraphBuilder::Ints all{n, c, c, q, q, k, k};
  NodeRef x = b_.param(0, {n, c, h, h}), w = b_.param(1, {c, c, k, k});
  NodeRef windows = b_.window(b_.window(x, 2, k), 3, k);
  NodeRef y = b_.reduce(g_.mul(b_.broadcast(windows, {n, 1, c, q, q, k, k}, all),
                               b_.broadcast(w, {1, c, c, 1, 1, k, k}, all)),
                        Fold::Add, {2, 5, 6});
  NodeRef most = b_.reduce(y, Fold::Max, {0, 2, 3});
  EXPECT_EQ(kernels({{most}}), 3u);
  ScheduleOptions options;
  options.layouts = false;
  EXPECT_EQ(make_schedule(std::vector<ScheduleOutput>{{most}}, kTarget, options).steps.size(), 2u);
  check({{most}}, 1e-5);
  // A product of matrices finds a vector axis as it is.
  EXPECT_EQ(kernels({{b_.matmul(b_.param(0, {128, 128}), b_.param(1, {128, 128}))}}), 1u);
}

/// x @ w^T, as in layers: both lie along the summed axis. With many outputs vectors run along them
/// all the same, and w is turned; a few are summed where they lie.
TEST_F(ScheduleTest, WeightsOfLayersAreTurnedForManyRows) {
  const auto layer = [&](int64_t rows, int64_t in, int64_t out) {
    return b_.matmul(b_.param(0, {rows, in}), b_.permute(b_.param(1, {out, in}), {1, 0}));
  };
  EXPECT_EQ(kernels({{layer(512, 64, 64)}}), 2u);
  EXPECT_EQ(kernels({{layer(64, 576, 10)}}), 1u);
  EXPECT_EQ(kernels({{layer(32, 128, 512)}}), 2u);  // the rows, of which there are fewer
  // Sums along rows that L1 does not hold wait for L2: 7.6 to 8.0 ms on one core, 7.4 to 7.6 so.
  EXPECT_EQ(kernels({{layer(256, 3072, 768)}}), 2u);
  EXPECT_EQ(kernels({{layer(1024, 1024, 4096)}}), 2u);
  EXPECT_EQ(kernels({{layer(16384, 64, 16384)}}), 2u);
  check({{layer(256, 24, 40)}}, 1e-5);
}

/// Where sums walk down the rows of a matrix that L2 does not hold, it is read from a copy in
/// panels of a vector, where each element is read often.
TEST_F(ScheduleTest, LargeProductsReadPanels) {
  const auto steps = [&](int64_t m, int64_t k, int64_t n) {
    return kernels({{b_.matmul(b_.param(0, {m, k}), b_.param(1, {k, n}))}});
  };
  EXPECT_EQ(steps(64, 64, 64), 1u);
  EXPECT_EQ(steps(384, 384, 384), 1u);  // L2 holds both
  EXPECT_EQ(steps(512, 512, 512), 2u);
  EXPECT_EQ(steps(256, 1024, 1024), 2u);
  EXPECT_EQ(steps(2000, 2000, 2000), 2u);
  EXPECT_EQ(steps(2000, 2000, 2001), 1u);  // rows that are no panels
  EXPECT_EQ(steps(64, 1024, 512), 2u);
  const int64_t many = 96;  // small matrices, however many there are
  EXPECT_EQ(kernels({{b_.matmul(b_.param(0, {many, 128, 64}), b_.param(1, {many, 64, 128}))}}), 1u);
}

/// Rows that a kernel sums and makes are vectors with a remainder, however many rows fill vectors:
/// none of these lengths is a multiple of lanes, 256 is.
TEST_F(ScheduleTest, RowsLieAsTheyCome) {
  for (const int64_t length : {47, 79, 100, 250, 1002}) {
    NodeRef x = b_.param(0, {256, length});
    const auto along = [&](NodeRef n, Fold fold) {
      return b_.broadcast(b_.reduce(n, fold, {1}), {256, 1}, {256, length});
    };
    NodeRef e = g_.alu(Op::Exp2, {g_.sub(x, along(x, Fold::Max))});
    NodeRef softmax = g_.alu(Op::Div, {e, along(e, Fold::Add)});
    const Schedule s = make_schedule(std::vector<ScheduleOutput>{{softmax}}, kTarget);
    const bool as_they_come =
        std::ranges::all_of(s.buffers, [](const BufferSpec& b) { return b.layout == "row-major"; });
    EXPECT_EQ(as_they_come, length > 3) << length;
  }
}

/// Of what L3 holds: two pipes of whole vectors compute an exponential in less time than it takes
/// to store and to load it, halves do not.
TEST_F(ScheduleTest, ExponentialsAreStoredWhereTheyCostMoreThanThat) {
  NodeRef x = b_.param(0, {256, 4096});
  const auto along = [&](NodeRef n, Fold fold) {
    return b_.broadcast(b_.reduce(n, fold, {1}), {256, 1}, {256, 4096});
  };
  NodeRef e = g_.alu(Op::Exp2, {g_.sub(x, along(x, Fold::Max))});
  NodeRef softmax = g_.alu(Op::Div, {e, along(e, Fold::Add)});
  for (const auto& [bits, native, steps] :
       {std::tuple(512, 512, 1u), {512, 256, 2u}, {256, 256, 2u}}) {
    Target target = kTarget;
    target.vector_bits = bits;
    target.machine.native_bits = native;
    const Schedule s = make_schedule(std::vector<ScheduleOutput>{{softmax}}, target);
    EXPECT_EQ(s.steps.size(), steps) << bits << " bits by " << native;
  }
}

/// Each operation of bf16 rounds, which takes longer than it does: of f32 the same is computed
/// again for each sum.
TEST_F(ScheduleTest, WhatIsRoundedIsStored) {
  for (const auto& [dtype, steps] : {std::pair(DType::F32, 2u), {DType::BF16, 3u}}) {
    NodeRef x = b_.param(0, {256, 1024}, dtype), y = b_.param(1, {256, 1024}, dtype);
    NodeRef z = g_.add(g_.mul(x, y), x);
    const ScheduleOutput sums[] = {{b_.reduce(z, Fold::Add, {0})}, {b_.reduce(z, Fold::Add, {1})}};
    EXPECT_EQ(make_schedule(sums, kTarget).steps.size(), steps) << bits(dtype);
  }
}

/// A loss takes one number of each row of its logits, their softmax all: they lie as that reads
/// them.
TEST_F(ScheduleTest, ALossThatGathersLeavesItsLogitsInRows) {
  constexpr int64_t kRows = 256, kClasses = 1024;
  NodeRef target = b_.param(2, {kRows, 1}, DType::I32);
  NodeRef logits = b_.matmul(b_.param(0, {kRows, 64}), b_.param(1, {64, kClasses}));
  const auto along = [&](NodeRef n, Fold fold) {
    return b_.broadcast(b_.reduce(n, fold, {1}), {kRows, 1}, {kRows, kClasses});
  };
  NodeRef e = g_.alu(Op::Exp2, {g_.sub(logits, along(logits, Fold::Max))});
  NodeRef softmax = g_.alu(Op::Div, {e, along(e, Fold::Add)});
  NodeRef wanted = b_.gather(logits, target, 1);
  const Schedule s = make_schedule(std::vector<ScheduleOutput>{{softmax}, {wanted}}, kTarget);
  for (const BufferSpec& b : s.buffers) EXPECT_EQ(b.layout, "row-major");
}

/// Running sums down columns, some of which are zeros around what is summed: the loop over columns
/// is around the state, and is not cut at the border.
TEST_F(ScheduleTest, RunningSumsOfPaddedColumns) {
  for (const int64_t columns : {10, 40}) {
    NodeRef y = padded(g_, b_.param(0, {9, columns}), 1, 2, 2);
    y = g_.mul(b_.param(1, {9, columns + 4}), y);
    const int64_t sum[] = {static_cast<int64_t>(Fold::Add), 0};
    check({{g_.make({Op::Scan, DType::F32, {&y, 1}, sum})}}, 1e-5);
  }
}

/// A copy of an input, or what a kernel writes anyway, lies in panels, in every dtype; the
/// rows of a left operand that is read very often have room between them.
TEST_F(ScheduleTest, PanelsAndRowsTakenApartKeepTheirValues) {
  Target small = kTarget;
  small.machine.caches[0] = {1 << 10, 4, 128};  // rows of 64 bytes and L2 of 256 count as large
  small.machine.caches[1] = {256, 4, 25};
  small.machine.caches[2] = {1 << 10, 4, 15};
  const auto lie = [&](const std::vector<ScheduleOutput>& outputs, const char* how) {
    const Schedule s = make_schedule(outputs, small);
    return std::ranges::count_if(
        s.buffers, [&](const BufferSpec& of) { return of.layout.find(how) != std::string::npos; });
  };
  for (const DType dtype : {DType::F16, DType::F32, DType::F64}) {
    for (const int64_t n : {32, 96}) {
      GraphBuilder b;
      NodeRef input = b.param(0, {9, n}, dtype);
      NodeRef made = b.matmul(b.param(1, {9, 7}, dtype), b.param(2, {7, n}, dtype));
      const std::vector<ScheduleOutput> outputs{{b.matmul(b.param(3, {517, 9}, dtype), input)},
                                                {b.matmul(b.param(4, {513, 9}, dtype), made)}};
      testing::RunOptions options;
      options.target = &small;
      EXPECT_EQ(lie(outputs, "panels"), 2);
      check(outputs, dtype == DType::F16 ? 2e-2 : 1e-5, options);
    }
    GraphBuilder b;
    const std::vector<ScheduleOutput> often{
        {b.matmul(b.param(0, {9, 32}, dtype), b.param(1, {32, 2100}, dtype))}};
    testing::RunOptions options;
    options.target = &small;
    EXPECT_EQ(lie(often, "rows apart"), 1);
    check(often, dtype == DType::F16 ? 2e-2 : 1e-5, options);
  }
}

/// Weights of attention lie as the softmax that makes them writes them: the product with the values
/// has vectors along these.
TEST_F(ScheduleTest, WhatAProductBroadcastsKeepsItsOrder) {
  NodeRef scores = b_.param(0, {64, 128}), values = b_.param(1, {128, 32});
  NodeRef sums = b_.broadcast(b_.reduce(scores, Fold::Add, {1}), {64, 1}, {64, 128});
  NodeRef weights = b_.graph().make(Op::Contiguous, DType::F32,
                                    {b_.graph().make(Op::Mul, DType::F32, {scores, sums})});
  NodeRef product = b_.matmul(weights, values);
  const Schedule s = make_schedule(std::vector<ScheduleOutput>{{product}}, kTarget);
  for (const BufferSpec& buffer : s.buffers) EXPECT_EQ(buffer.layout, "row-major");
  check({{product}}, 1e-5);
}

/// A matrix product with a long inner axis, as gradients of weights are: the operands of a part of
/// it stay in a cache.
TEST_F(ScheduleTest, LongProductsAreSummedInChunks) {
  constexpr int64_t kLong = 2048, kWide = 128;
  NodeRef a = b_.param(0, {kLong, kWide}), b = b_.param(1, {kLong, kWide});
  NodeRef product = b_.matmul(b_.permute(a, {1, 0}), b);
  EXPECT_EQ(kernels({{product}}), 2u);
  std::vector<Array> params{random(a), random(b)};
  for (Array& p : params)
    for (int64_t i = 0; i < p.count(); ++i)
      p.set(i, Value::of(DType::F32, std::trunc(p.at(i).as_double())));  // sums are exact
  std::vector<float> x, y;
  for (int64_t i = 0; i < kLong * kWide; ++i) {
    x.push_back(static_cast<float>(params[0].at(i).as_double()));
    y.push_back(static_cast<float>(params[1].at(i).as_double()));
  }
  testing::RunOptions options;
  options.device = "X86";
  const Array got =
      testing::run_graph(context_, std::vector<ScheduleOutput>{{product}}, params, {}, options)[0];
  for (int64_t i = 0; i < kWide; i += 9)
    for (int64_t j = 0; j < kWide; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < kLong; ++k)
        sum += x[static_cast<size_t>(k * kWide + i)] * y[static_cast<size_t>(k * kWide + j)];
      ASSERT_EQ(got.at(i * kWide + j).as_double(), sum) << i << ", " << j;
    }
}

/// A result of a few tiles has chunks where its elements are read less often, too: long sums of few
/// tiles would leave cores idle, and read more than a cache holds.
TEST_F(ScheduleTest, LongProductsOfFewTilesAreSummedInChunks) {
  const auto steps = [&](int64_t length, int64_t wide) {
    NodeRef a = b_.param(0, {length, wide});
    return kernels({{b_.matmul(b_.permute(a, {1, 0}), a)}});
  };
  const int64_t cached = kTarget.machine.l2().bytes / 4;  // elements
  EXPECT_EQ(steps(cached / 16, 32), 2u);
  EXPECT_EQ(steps(cached / 8, 16), 2u);
  EXPECT_EQ(steps(cached / 4, 8), 2u) << "rows of 8 numbers";
  EXPECT_EQ(steps(cached / 64, 32), 1u) << "in a cache";
}

/// Rows are summed to one in chunks: an item walks down some columns of all of them otherwise.
TEST_F(ScheduleTest, ManyRowsAreSummedInChunks) {
  const auto steps = [&](int64_t rows, int64_t columns, Fold fold = Fold::Add) {
    return kernels({{b_.reduce(b_.param(0, {rows, columns}), fold, {0})}});
  };
  const auto times = [&](int64_t rows, int64_t columns) {
    return kernels({{b_.matmul(b_.param(0, {1, rows}), b_.param(1, {rows, columns}))}});
  };
  EXPECT_EQ(steps(8192, 100), 2u);
  EXPECT_EQ(steps(8192, 100, Fold::Max), 2u);
  EXPECT_EQ(steps(8192, 100, Fold::Mul), 1u) << "through subnormal numbers";
  EXPECT_EQ(steps(8192, 1024), 2u);
  EXPECT_EQ(steps(1000, 1024), 1u) << "few rows";
  EXPECT_EQ(steps(1024, 100), 1u) << "few numbers";
  EXPECT_EQ(steps(8192, 8192), 1u) << "columns for all cores";
  EXPECT_EQ(times(8192, 100), 2u);
  EXPECT_EQ(times(2048, 300), 1u) << "products have columns enough";
  EXPECT_EQ(kernels({{b_.reduce(b_.param(0, {100, 8192}), Fold::Add, {1})}}), 1u) << "along rows";
  const auto powers = [&](NodeRef x, Fold fold) {
    return kernels({{b_.reduce(g_.alu(Op::Exp2, {x}), fold, {0})}});
  };
  EXPECT_EQ(powers(b_.param(0, {8192, 100}), Fold::Max), 2u);
  NodeRef made = b_.matmul(b_.param(0, {8192, 64}), b_.param(1, {64, 100}));
  EXPECT_EQ(powers(made, Fold::Max), powers(made, Fold::Mul))
      << "what a kernel makes lies as its readers wish";
  for (const Fold fold : {Fold::Add, Fold::Max})
    check({{b_.reduce(b_.param(0, {2500, 57}), fold, {0})}}, 1e-4);
}

/// Fewer chunks than of sums: each has its own way through subnormal numbers.
TEST_F(ScheduleTest, LongProductsOfNumbersHaveFewChunks) {
  const auto partial = [&](DType dtype, Fold fold) {
    NodeRef x = b_.param(0, {512, 512}, dtype);
    const Schedule s =
        make_schedule(std::vector<ScheduleOutput>{{b_.reduce(x, fold, {0, 1})}}, kTarget);
    int64_t most = 0;
    for (const BufferSpec& buffer : s.buffers)
      if (buffer.input < 0) most = std::max(most, buffer.numel->vmax);
    return most;
  };
  EXPECT_EQ(partial(DType::F32, Fold::Mul), 32);
  EXPECT_EQ(partial(DType::F64, Fold::Mul), 256);
  EXPECT_EQ(partial(DType::I32, Fold::Mul), 256);
  EXPECT_EQ(partial(DType::F32, Fold::Add), 256);
}

/// Between large matrices, one block of the inner axis after the other, each added to what the ones
/// before gave; the last kernel does what follows, too.
TEST_F(ScheduleTest, LongProductsOfLargeMatricesAreSummedBlockByBlock) {
  Target small = kTarget;
  small.vector_bits = 512;
  small.machine.caches[0] = {1 << 10, 4, 128};
  small.machine.caches[1] = {4096, 4, 25};  // blocks of 16 elements
  const auto product = [&](int64_t m, int64_t k, int64_t n) {
    NodeRef p = b_.matmul(b_.param(0, {m, k}), b_.param(1, {k, n}));
    NodeRef bias = b_.broadcast(b_.param(2, {n}), {1, n}, {m, n});
    return std::vector<ScheduleOutput>{{g_.alu(Op::Max, {g_.add(p, bias), b_.constant(0)})}};
  };
  const auto sums = [&](int64_t m, int64_t k, int64_t n) {
    const Schedule s = make_schedule(product(m, k, n), small);
    return std::ranges::count_if(
        s.kernels, [](const Kernel& kernel) { return kernel.name.starts_with("reduce"); });
  };
  EXPECT_EQ(sums(132, 8, 132), 1);     // no longer than two blocks
  EXPECT_EQ(sums(132, 50, 132), 4);    // the last one shorter
  EXPECT_EQ(sums(132, 480, 132), 15);  // at most 16
  EXPECT_EQ(sums(20, 50, 132), 1);     // too few rows to read a block again
  testing::RunOptions options;
  options.target = &small;
  check(product(132, 50, 132), 1e-5, options);
  small.vector_registers = 16;  // tiles are small, and blocks of 1024 elements at least
  EXPECT_EQ(sums(132, 2048, 132), 1);
  EXPECT_EQ(sums(132, 2500, 132), 3);
  check(product(132, 2500, 132), 1e-4, options);
  small.vector_registers = 32;
  small.vector_bits = 0;  // a GPU's
  EXPECT_EQ(sums(132, 50, 132), 1);
  small.canonical = true;  // sums as every machine takes them
  EXPECT_EQ(sums(132, 50, 132), 4);
}

TEST_F(ScheduleTest, EqualLayersShareTheirKernels) {
  NodeRef x = b_.param(0, {8, 8});
  for (int layer = 0; layer < 5; ++layer)
    x = g_.alu(Op::Max, {b_.matmul(x, b_.param(1 + layer, {8, 8})), b_.constant(0)});
  const Schedule s = make_schedule(std::vector<ScheduleOutput>{{x}}, kTarget);
  EXPECT_EQ(s.steps.size(), 5u);
  EXPECT_LE(s.kernels.size(), 3u);
  check({{x}}, 1e-4);
}

/// Gradients of pieces: each is written to its place, where adding all up would read each of them
/// at every place. A few, or small ones, or such as overlap are added in one kernel.
TEST_F(ScheduleTest, ManyDisjointPartsAreWrittenToTheirPlaces) {
  const auto sum_of_parts = [&](int64_t parts, int64_t rows, int64_t apart) {
    NodeRef sum = nullptr;
    for (int64_t i = 0; i < parts; ++i) {
      NodeRef part = g_.mul(b_.param(static_cast<int>(i), {rows, 64}), b_.constant(i - 1.5));
      const int64_t before = i * apart, after = (parts - i) * apart;
      NodeRef padded = b_.pad(part, {before, 0}, {after + 3, 0}, {0, 0});
      sum = sum ? g_.add(sum, padded) : padded;
    }
    return sum;
  };
  const size_t parts = 16;
  EXPECT_EQ(kernels({{sum_of_parts(parts, 32, 32)}}), parts + 1);
  EXPECT_EQ(kernels({{g_.mul(sum_of_parts(parts, 32, 32), b_.constant(3))}}), parts + 2);
  EXPECT_EQ(kernels({{sum_of_parts(3, 32, 32)}}), 1u);
  EXPECT_EQ(kernels({{sum_of_parts(parts, 2, 2)}}), 1u);
  EXPECT_EQ(kernels({{sum_of_parts(parts, 32, 31)}}), 1u);
  check({{sum_of_parts(parts, 32, 32)}, {sum_of_parts(parts, 32, 40)}});
  check({{g_.mul(sum_of_parts(parts, 32, 32), b_.constant(3))}});
}

/// Builds, schedules and frees a chain of `depth` operations on a thread with a stack of 256 KiB.
void schedule_deep_chain(int64_t depth) {
  auto body = [](void* argument) -> void* {
    const int64_t length = *static_cast<int64_t*>(argument);
    GraphBuilder b;
    Graph& g = b.graph();
    NodeRef x = b.param(0, {4});
    for (int64_t i = 0; i < length; ++i)
      x = g.add(g.mul(x, b.constant(0.5)), b.constant(static_cast<double>(i % 7)));
    const Schedule s = make_schedule(std::vector<ScheduleOutput>{{x}}, kTarget);
    EXPECT_GE(s.steps.size(), static_cast<size_t>(length / 2000));
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &depth), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST_F(ScheduleTest, DeepChainsNeedNoStack) { schedule_deep_chain(20'000); }
TEST_F(ScheduleTest, SlowMillionDeepChain) { schedule_deep_chain(500'000); }

}  // namespace
}  // namespace weft
