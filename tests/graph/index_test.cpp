// The normal form of index arithmetic keeps every value, and bounds hold.
#include <gtest/gtest.h>

#include "tests/support/index_expression.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/print.h"

namespace weft {
namespace {

TEST(IndexNormalForm, RandomExpressionsKeepTheirValues) {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Graph g;
    RandomIndex expressions(g, seed);
    for (int i = 0; i < 8; ++i) expressions.grow();
    for (size_t i = 4; i < expressions.size(); ++i) {
      NodeRef n = expressions.node(i);
      for (const LeafValues& point : expressions.points()) {
        const int64_t before = expressions.value(i, point), after = index_value(n, point);
        ASSERT_EQ(before, after) << "seed " << seed << ": " << expressions.text(i) << " became "
                                 << expression(n);
        ASSERT_TRUE(n->vmin <= after && after <= n->vmax)
            << "seed " << seed << ": " << expressions.text(i) << " is " << after << ", not in ["
            << n->vmin << ", " << n->vmax << "]";
      }
    }
  }
}

TEST(IndexNormalForm, IsAFixedPoint) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Graph g;
    RandomIndex expressions(g, seed);
    for (int i = 0; i < 8; ++i) expressions.grow();
    NodeRef n = expressions.node(expressions.size() - 1);
    NodeRef again = g.make({n->op, n->dtype, n->src(), n->ints(), n->text()});
    EXPECT_EQ(expression(again), expression(n))
        << seed << " " << expressions.text(expressions.size() - 1);
  }
}

TEST(IndexNormalForm, DivisorDividesEveryValue) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Graph g;
    RandomIndex expressions(g, seed);
    for (int i = 0; i < 6; ++i) expressions.grow();
    for (size_t i = 0; i < expressions.size(); ++i) {
      if (expressions.is_bool(i)) continue;
      const int64_t d = divisor_of(expressions.node(i));
      for (const LeafValues& point : expressions.points()) {
        const int64_t v = index_value(expressions.node(i), point);
        ASSERT_TRUE(d == 0 ? v == 0 : v % d == 0)
            << d << " does not divide " << v << " = " << expression(expressions.node(i));
      }
    }
  }
}

TEST(IndexNormalForm, SplitStrideIsExact) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Graph g;
    RandomIndex expressions(g, seed);
    for (int i = 0; i < 6; ++i) expressions.grow();
    NodeRef range = expressions.node(1);
    for (size_t i = 0; i < expressions.size(); ++i) {
      Stride stride;
      if (expressions.is_bool(i) || !split_stride(g, expressions.node(i), range, stride)) continue;
      for (const LeafValues& point : expressions.points())
        ASSERT_EQ(index_value(expressions.node(i), point),
                  index_value(stride.base, point) + stride.coefficient * point.at(range));
    }
  }
}

class IndexForms : public testing::Test {
 protected:
  Graph g;
  NodeRef r0 = g.range(16, 0), r1 = g.range(8, 1), r2 = g.range(4, 2);
  NodeRef n = g.variable("n", 1, 1024);
  NodeRef i(int64_t v) { return g.index(v); }
};

TEST_F(IndexForms, SumsOfAnyOrderAreOneNode) {
  NodeRef a = g.add(g.add(g.mul(r0, i(8)), r1), g.add(i(3), n));
  NodeRef b = g.add(n, g.add(g.add(i(3), r1), g.mul(i(8), r0)));
  EXPECT_EQ(a, b);
  EXPECT_EQ(g.sub(a, b), i(0));
  EXPECT_EQ(g.mul(g.add(r0, r1), n), g.add(g.mul(n, r1), g.mul(r0, n)));
}

TEST_F(IndexForms, FlattenedIndicesComeApart) {
  NodeRef flat = g.add(g.mul(g.add(g.mul(r0, i(8)), r1), i(4)), r2);
  EXPECT_EQ(g.idiv(flat, i(32)), r0);
  EXPECT_EQ(g.mod(g.idiv(flat, i(4)), i(8)), r1);
  EXPECT_EQ(g.mod(flat, i(4)), r2);
  EXPECT_EQ(g.add(g.mul(g.idiv(flat, i(7)), i(7)), g.mod(flat, i(7))), flat);
}

TEST_F(IndexForms, SymbolicSizesComeApartToo) {
  NodeRef inner = g.range(n, 5);
  NodeRef flat = g.add(g.mul(r0, n), inner);
  EXPECT_EQ(g.idiv(flat, n), r0);
  EXPECT_EQ(g.mod(flat, n), inner);
  EXPECT_EQ(g.lt(inner, n), g.boolean(true));
}

TEST_F(IndexForms, ComparisonsAreDecidedByBounds) {
  EXPECT_EQ(g.lt(r0, i(16)), g.boolean(true));
  EXPECT_EQ(g.lt(g.mul(r0, i(2)), i(7)), g.lt(r0, i(4)));
  const auto digits = g.add(g.mul(r1, i(16)), r0);
  EXPECT_EQ(g.lt(digits, i(64)), g.lt(r1, i(4)));
  EXPECT_EQ(g.le(i(64), digits), g.le(i(4), r1));
  EXPECT_EQ(g.eq(g.mul(r0, i(2)), i(7)), g.boolean(false));
  EXPECT_EQ(g.eq(r0, r1), g.eq(r1, r0));
  EXPECT_EQ(g.le(r0, i(3)), g.lt(r0, i(4)));
}

// Places of a diagonal: every fifth element behind another, of rows of four.
TEST_F(IndexForms, DivisibleSumsAreEquations) {
  NodeRef row = g.range(4, 3), flat = g.add(g.mul(row, i(4)), r2);
  EXPECT_EQ(g.lt(g.mod(flat, i(5)), i(1)), g.eq(row, r2));
  EXPECT_EQ(g.eq(g.mod(g.add(flat, i(4)), i(5)), i(0)), g.eq(r2, g.add(row, i(1))));
  EXPECT_EQ(g.lt(g.mod(g.add(r2, i(1)), i(5)), i(1)), g.boolean(false));
  EXPECT_EQ(g.lt(g.mod(r0, i(5)), i(1))->op, Op::Lt);  // one of several multiples
}

TEST_F(IndexForms, DivisibleSumsKeepTheirValues) {
  for (const int64_t by : {2, 3, 5, 8, 9})
    for (int64_t a = -9; a <= 9; ++a)
      for (int64_t constant = -10; constant <= 10; ++constant) {
        NodeRef x = g.add(g.add(g.mul(r1, i(a)), r2), i(constant));
        NodeRef equal = g.eq(g.mod(x, i(by)), i(0)), less = g.lt(g.mod(x, i(by)), i(1)),
                differs = g.alu(Op::Ne, {g.mod(x, i(by)), i(0)});
        for (int64_t u = 0; u < 8; ++u)
          for (int64_t v = 0; v < 4; ++v) {
            const LeafValues at{{r1, u}, {r2, v}};
            const int64_t divisible = (u * a + v + constant) % by == 0;
            ASSERT_EQ(index_value(equal, at), divisible) << by << ' ' << a << ' ' << constant;
            ASSERT_EQ(index_value(less, at), divisible) << by << ' ' << a << ' ' << constant;
            ASSERT_EQ(index_value(differs, at), 1 - divisible) << by << ' ' << a << ' ' << constant;
          }
      }
}

TEST_F(IndexForms, LongSumsStayLinear) {
  // 2000 different terms are past what is normalised; building them must not be quadratic or worse.
  NodeRef sum = i(0);
  for (int k = 0; k < 2000; ++k) sum = g.add(sum, g.range(4, 100 + k));
  EXPECT_EQ(sum->vmax, 6000);
  EXPECT_EQ(sum->vmin, 0);
}

TEST_F(IndexForms, BoundVariablesStaySymbolic) {
  NodeRef v = g.variable("v", 2, 64, 4);
  NodeRef bound = g.make(Op::Bind, DType::Index, {v, i(8)});
  EXPECT_EQ(bound->vmin, 2);
  EXPECT_EQ(bound->vmax, 64);
  EXPECT_NE(g.add(bound, i(1))->op, Op::Const);
  EXPECT_EQ(g.sub(bound, bound), i(0));
}

TEST_F(IndexForms, DivisionOfHugeSumsIsNotGuessed) {
  NodeRef huge = g.mul(n, i(INT64_MAX / 2));
  EXPECT_NE(g.idiv(g.add(huge, huge), i(2)), nullptr);
}

TEST(NeverMeet, RowsColumnsAndPartsOfThem) {
  Graph g;
  NodeRef row = g.range(32, 0), column = g.range(128, 1);
  const auto at = [&](int64_t begin, int64_t step = 512) {
    return g.add(g.add(g.mul(row, g.index(step)), column), g.index(begin));
  };
  EXPECT_TRUE(never_meet(at(0), at(128)));
  EXPECT_TRUE(never_meet(at(384), at(0)));
  EXPECT_FALSE(never_meet(at(0), at(127)));
  EXPECT_FALSE(never_meet(at(0), at(385)));
  EXPECT_FALSE(never_meet(at(0), at(512)));
  EXPECT_FALSE(never_meet(at(0, 200), at(128, 200)));
  EXPECT_TRUE(never_meet(at(0), at(32 * 512)));
  NodeRef twice = g.mul(column, g.index(2));
  EXPECT_TRUE(never_meet(twice, g.add(twice, g.index(1))));
  EXPECT_FALSE(never_meet(twice, g.add(twice, g.index(2))));
  EXPECT_FALSE(never_meet(row, column));
}

// Comparisons lose the constants of sums and common factors.
TEST(AtLeastUnless, KnowsSumsByTheirComparisons) {
  Graph g;
  NodeRef n = g.variable("n", 1, 100), m = g.variable("m", 1, 100);
  const NodeRef sums[] = {n,
                          g.add(n, g.index(1)),
                          g.mul(n, g.index(2)),
                          g.sub(g.index(200), n),
                          g.add(g.mul(n, g.index(3)), m),
                          g.idiv(g.add(n, g.index(3)), g.index(4))};
  for (NodeRef sum : sums)
    for (const int64_t least : {2, 5, 8, 16}) {
      NodeRef less = g.lt(sum, g.index(least));
      if (less->op != Op::Lt) continue;
      EXPECT_TRUE(at_least_unless(less, sum, least)) << print_graph(less);
      EXPECT_FALSE(at_least_unless(less, sum, 2 * least + 1)) << print_graph(less);
    }
  EXPECT_FALSE(at_least_unless(g.lt(m, g.index(8)), n, 8));
}

}  // namespace
}  // namespace weft
