// What Inequality proves holds at every point; what kernels need is among it.
#include "weft/simplify/inequality.h"

#include <gtest/gtest.h>

#include "tests/support/index_expression.h"
#include "weft/graph/print.h"

namespace weft {
namespace {

class Inequalities : public ::testing::Test {
 protected:
  NodeRef num(int64_t v) { return g.index(v); }
  NodeRef times(NodeRef a, int64_t c) { return g.mul(a, num(c)); }
  NodeRef both(NodeRef a, NodeRef b) { return g.logical_and(a, b); }
  bool inside(NodeRef index, NodeRef size, NodeRef valid) {
    return Inequality(g, valid).inside(index, size);
  }
  Graph g;
  NodeRef always = g.boolean(true);
};

TEST_F(Inequalities, SizesThatAreSymbols) {
  NodeRef n = g.variable("n", 1, 1000), m = g.variable("m", 1, 1000);
  NodeRef i = g.range(n, 0), k = g.range(m, 1), four = g.range(4, 2);
  EXPECT_TRUE(inside(g.add(times(i, 4), four), times(n, 4), always));
  EXPECT_TRUE(inside(g.add(g.mul(i, m), k), g.mul(n, m), always));
  EXPECT_FALSE(inside(g.add(g.mul(i, m), k), g.mul(n, n), always));
  EXPECT_FALSE(inside(g.add(i, num(1)), n, always));
  NodeRef found = g.alu(Op::ToIndex, {g.param(0, DType::I32, {}), n});
  EXPECT_TRUE(inside(g.add(times(found, 4), four), times(n, 4), always));
}

TEST_F(Inequalities, MasksOfSeveralSums) {
  // A transposed convolution: both 0 <= y - a < 6 and 0 <= x - b < 6 are needed.
  NodeRef core = g.range(64, 0), a = g.range(3, 1), b = g.range(3, 2);
  NodeRef y = g.sub(g.idiv(core, num(8)), a), x = g.sub(g.mod(core, num(8)), b);
  NodeRef valid =
      both(both(g.le(num(0), y), g.lt(y, num(6))), both(g.le(num(0), x), g.lt(x, num(6))));
  NodeRef index = g.add(times(y, 6), x);
  EXPECT_TRUE(inside(index, num(36), valid));
  EXPECT_FALSE(inside(index, num(35), valid));
  EXPECT_FALSE(inside(index, num(36), both(g.le(num(0), y), g.lt(y, num(6)))));
}

TEST_F(Inequalities, QuotientsRoundDown) {
  NodeRef r = g.range(7, 0), half = g.idiv(g.add(r, num(1)), num(2));
  EXPECT_TRUE(inside(g.sub(half, num(1)), num(3), g.le(num(1), r)));
  EXPECT_FALSE(inside(g.sub(half, num(1)), num(2), g.le(num(1), r)));
  EXPECT_FALSE(inside(g.sub(half, num(1)), num(3), always));
}

/// Loops over all pairs of 8 numbers and n others.
TEST_F(Inequalities, QuotientsBySymbols) {
  NodeRef n = g.variable("n", 1, 1000), both = g.range(g.mul(num(8), n), 0);
  NodeRef outer = g.idiv(both, n), inner = g.mod(both, n);
  EXPECT_TRUE(inside(outer, num(8), always));
  EXPECT_FALSE(inside(outer, num(7), always));
  EXPECT_TRUE(inside(g.add(times(outer, 1000), inner), num(8000), always));
  EXPECT_TRUE(inside(g.add(times(inner, 8), outer), times(n, 8), always));
  EXPECT_FALSE(inside(g.add(times(inner, 7), outer), times(n, 7), always));
}

/// A division that would be another node if it were made today, as one of an older graph may be.
TEST_F(Inequalities, DivisionsInNoNormalForm) {
  NodeRef n = g.variable("n", 1, 3);
  const NodeRef src[] = {num(-1), n};
  NodeRef quotient = g.intern({Op::IDiv, DType::Index, src});  // -1
  EXPECT_TRUE(inside(g.add(quotient, n), n, always));
  EXPECT_FALSE(inside(quotient, n, always));
}

TEST_F(Inequalities, TailsThatOverlap) {
  NodeRef n = g.variable("n", 16, 1000), tile = g.range(g.idiv(g.add(n, num(15)), num(16)), 0);
  NodeRef lane = g.range(16, 1);
  NodeRef begin = g.alu(Op::Min, {times(tile, 16), g.sub(n, num(16))});
  EXPECT_TRUE(inside(g.add(begin, lane), n, always));
  EXPECT_FALSE(inside(g.add(times(tile, 16), lane), n, always));
  EXPECT_TRUE(inside(g.add(times(tile, 16), lane), n, g.lt(g.add(times(tile, 16), lane), n)));
}

/// Loops of no iteration unless there are as many as a tile has, and those that run where not.
TEST_F(Inequalities, LoopsThatRunOnlyWhereSizesAreLarge) {
  NodeRef n = g.variable("n", 1, 1000), row = g.range(8, 0), lane = g.range(16, 1);
  NodeRef shorter = g.lt(n, num(16)), tiles = g.idiv(g.add(n, num(15)), num(16));
  NodeRef start = g.alu(Op::Min, {times(g.range(g.where(shorter, num(0), tiles), 2), 16),
                                  g.sub(g.alu(Op::Max, {n, num(16)}), num(16))});
  NodeRef column = g.add(start, lane);
  EXPECT_TRUE(inside(g.add(g.mul(row, n), column), times(n, 8), always));
  EXPECT_TRUE(inside(g.add(times(column, 8), row), times(n, 8), always));
  EXPECT_FALSE(inside(g.add(column, num(1)), n, always));
  NodeRef one = g.range(g.where(shorter, g.alu(Op::Min, {n, num(15)}), num(0)), 3);
  EXPECT_TRUE(inside(g.add(g.mul(row, n), one), times(n, 8), always));
  NodeRef unknown = g.range(g.where(shorter, n, tiles), 4);
  EXPECT_FALSE(inside(times(unknown, 16), n, always));
}

/// Of the lengths below a larger tile, those that have a smaller one.
TEST_F(Inequalities, LoopsOfPartOfTheLengths) {
  NodeRef n = g.variable("n", 1, 1000), row = g.range(8, 0), lane = g.range(16, 1);
  NodeRef some = g.where(g.lt(n, num(32)), g.alu(Op::Min, {n, num(31)}), num(0));
  const auto column = [&](int64_t least) {
    NodeRef tiles = g.idiv(g.add(some, num(15)), num(16));
    NodeRef tile = g.range(g.where(g.lt(some, num(least)), num(0), tiles), 2);
    NodeRef last = g.sub(g.alu(Op::Max, {some, num(least)}), num(16));
    return g.add(g.alu(Op::Min, {times(tile, 16), last}), lane);
  };
  EXPECT_TRUE(inside(g.add(g.mul(row, n), column(16)), times(n, 8), always));
  EXPECT_FALSE(inside(g.add(g.mul(row, n), g.add(column(16), num(1))), times(n, 8), always));
  EXPECT_FALSE(inside(column(0), n, always)) << "it runs where there is nothing, too";
}

TEST_F(Inequalities, BoundsBeyondSixtyFourBitsProveNothing) {
  NodeRef huge = g.variable("huge", 0, INT64_MAX);
  EXPECT_FALSE(inside(g.add(huge, huge), num(INT64_MAX), always));
  EXPECT_FALSE(inside(times(huge, INT64_MAX / 2), huge, always));
}

TEST(RandomInequality, WhatIsProvedHoldsAtEveryPoint) {
  int proved = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Graph g;
    RandomIndex expressions(g, seed);
    for (int i = 0; i < 12; ++i) expressions.grow();
    for (size_t mask = 0; mask < expressions.size(); ++mask) {
      if (!expressions.is_bool(mask)) continue;
      Inequality facts(g, expressions.node(mask));
      for (size_t e = 0; e < expressions.size(); ++e) {
        if (expressions.is_bool(e) || !facts.never_positive(expressions.node(e))) continue;
        ++proved;
        for (const LeafValues& point : expressions.points()) {
          if (expressions.value(mask, point) == 0) continue;
          ASSERT_LE(expressions.value(e, point), 0)
              << "seed " << seed << ": " << expressions.text(e) << " where "
              << expressions.text(mask);
        }
      }
    }
  }
  EXPECT_GT(proved, 1000);
}

}  // namespace
}  // namespace weft
