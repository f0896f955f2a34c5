// Sums that the scheduler computes in fewer places, or in kernels of their own.
#include "tests/schedule/schedule_test.h"
#include "tests/support/compiler/operation_counts.h"

namespace weft {
namespace {

/// Terms that are the same along an axis that stays: their sum is computed at one place of it.
TEST_F(ScheduleTest, WhatRepeatsIsReducedOnce) {
  const auto along = [&](NodeRef v) { return b_.broadcast(v, {8, 1, 40}, {8, 50, 40}); };
  NodeRef x = b_.param(0, {8, 1, 40}), w = b_.param(1, {8, 1, 40}),
          whole = b_.param(2, {8, 50, 40});
  const auto flops = [](NodeRef y) {
    return testing::count_work(std::vector<NodeRef>{y}, kTarget).executed();
  };
  NodeRef product = b_.reduce(g_.mul(along(x), along(w)), Fold::Add, {2});
  NodeRef differs = b_.reduce(g_.mul(along(x), whole), Fold::Add, {2});
  EXPECT_LT(flops(product), 4 * 8 * 40);
  EXPECT_GE(flops(differs), 2 * 8 * 49 * 40);
  check({{product}, {b_.reduce(along(x), Fold::Max, {0})}, {differs}}, 1e-5);
}

/// The gradient of what two layers read adds up their products before they are summed: large ones
/// are kernels of their own, with panels or tiles, small ones and what is no product of matrices
/// are one.
TEST_F(ScheduleTest, LargeProductsAreSummedApart) {
  const auto both = [&](int64_t rows, int64_t sum, bool spread) {
    const auto factor = [&](int slot, int64_t m, int64_t n) {
      NodeRef x = spread ? b_.param(slot, {m, sum, n}) : b_.param(slot, {rows, sum, rows});
      return b_.broadcast(x, {spread ? m : rows, sum, spread ? n : rows}, {rows, sum, rows});
    };
    NodeRef first = g_.mul(factor(0, rows, 1), factor(1, 1, rows)),
            second = g_.mul(factor(2, rows, 1), factor(3, 1, rows));
    return b_.reduce(g_.add(first, second), Fold::Add, {1});
  };
  const auto steps = [](NodeRef sum) {
    return make_schedule(std::vector<ScheduleOutput>{{sum}}, kTarget).steps.size();
  };
  EXPECT_EQ(steps(both(256, 64, true)), 2U);
  EXPECT_EQ(steps(both(16, 64, true)), 1U);
  EXPECT_EQ(steps(both(256, 64, false)), 1U);
  check({{both(132, 64, true)}}, 1e-5);
}

/// One reciprocal for each sum of exponentials. Other shares are quotients: x / x is 1.
TEST_F(ScheduleTest, SoftmaxDividesOnceForEachSum) {
  NodeRef x = b_.param(0, {12, 9});
  const auto share = [&](NodeRef n, NodeRef of, bool of_rows = true) {
    NodeRef sum = of_rows ? b_.broadcast(b_.reduce(of, Fold::Add, {1}), {12, 1}, {12, 9})
                          : b_.broadcast(b_.reduce(of, Fold::Add, {0}), {1, 9}, {12, 9});
    return g_.alu(Op::Div, {n, sum});
  };
  const auto only_inverts = [](NodeRef value) {
    for (const Kernel& k : make_schedule(std::vector<ScheduleOutput>{{value}}, kTarget).kernels)
      for (NodeRef n : Toposort(k.sink))
        if (n->op == Op::Div && n->src(0)->op != Op::Const) return false;
    return true;
  };
  const auto below_top = [&](NodeRef n, int64_t axis) {
    NodeRef top =
        b_.broadcast(b_.reduce(n, Fold::Max, {axis}), {axis ? 12 : 1, axis ? 1 : 9}, {12, 9});
    return g_.alu(Op::Exp2, {g_.mul(g_.sub(n, top), g_.constant(Value::of(DType::F32, 1.5)))});
  };
  NodeRef e = below_top(x, 1), across = below_top(x, 0);
  EXPECT_TRUE(only_inverts(share(e, e)));
  EXPECT_FALSE(only_inverts(share(x, x)));
  EXPECT_FALSE(only_inverts(share(e, x)));
  EXPECT_FALSE(only_inverts(share(across, across, false)));
  check({{share(e, e)}}, 1e-6);
  // Their sums may be subnormal, and the reciprocals of those infinite.
  NodeRef free = g_.alu(Op::Exp2, {x});
  EXPECT_FALSE(only_inverts(share(free, free)));
  EXPECT_FALSE(only_inverts(share(across, across)));
}

/// A second product whose result the first one's kernel would finish takes registers from it:
/// fused only where there is little to compute.
TEST_F(ScheduleTest, ProductsOfAKernelDoNotCrowdEachOther) {
  const auto sum_of_two = [&](int64_t n) {
    NodeRef left = b_.matmul(b_.param(0, {n, n}), b_.param(1, {n, n}));
    return g_.add(left, b_.matmul(b_.param(2, {n, n}), b_.param(3, {n, n})));
  };
  EXPECT_EQ(kernels({{sum_of_two(4)}}), 1u);
  EXPECT_EQ(kernels({{sum_of_two(128)}}), 2u);
  check({{sum_of_two(24)}}, 1e-5);
}

/// Matrices by a vector: memory gives one after the other faster than both at once.
TEST_F(ScheduleTest, SumsReadOneMatrixAfterTheOther) {
  const auto by_vector = [&](int64_t rows, int slot) {
    NodeRef x = b_.broadcast(b_.param(0, {1, 512}), {1, 512}, {rows, 512});
    return b_.reduce(g_.mul(x, b_.param(slot, {rows, 512})), Fold::Add, {1});
  };
  const auto product = [&](int64_t rows) { return g_.mul(by_vector(rows, 1), by_vector(rows, 2)); };
  EXPECT_EQ(kernels({{product(64)}}), 1u) << "both are in the caches";
  EXPECT_EQ(kernels({{product(8192)}}), 2u);
  NodeRef x = b_.param(1, {8192, 512});
  NodeRef squares = b_.reduce(g_.mul(x, x), Fold::Add, {1});
  EXPECT_EQ(kernels({{g_.mul(squares, b_.reduce(x, Fold::Add, {1}))}}), 1u) << "it is read once";
  check({{product(24)}}, 1e-5);
}

/// Gates of channels: sums of a few products, and many elements for each.
TEST_F(ScheduleTest, SmallReductionsLeaveTheLoopsOfLargeValuesAlone) {
  const auto gated = [&](int64_t pixels) {
    NodeRef x = b_.param(0, {16, pixels}), w = b_.param(1, {16, 8});
    NodeRef sums = g_.make(Op::Reduce, DType::F32, {w}, {static_cast<int64_t>(Fold::Add), 1});
    return g_.mul(x, b_.expand(b_.reshape(sums, {16, 1}), {16, pixels}));
  };
  const auto steps = [&](NodeRef value) {
    return make_schedule(std::vector<ScheduleOutput>{{value}}, kTarget).steps.size();
  };
  EXPECT_EQ(steps(gated(64)), 1U);
  EXPECT_EQ(steps(gated(4096)), 2U);
  check({{gated(4096)}}, 1e-6);
}

}  // namespace
}  // namespace weft
