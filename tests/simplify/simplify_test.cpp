#include "weft/simplify/simplify.h"

#include <gtest/gtest.h>

#include "weft/base/context.h"
#include "weft/graph/print.h"
#include "weft/rewrite/print.h"

namespace weft {
namespace {

class Simplify : public ::testing::Test {
 protected:
  NodeRef var(const char* name, int64_t lo, int64_t hi) { return g.variable(name, lo, hi); }
  NodeRef num(int64_t v) { return g.index(v); }
  NodeRef below(NodeRef a, int64_t c) { return g.lt(a, num(c)); }
  NodeRef at_least(NodeRef a, int64_t c) { return g.le(num(c), a); }
  Graph g;
};

TEST_F(Simplify, DataIdentities) {
  NodeRef a = g.param(0, DType::F32, {}), zero = g.constant(Value::of(DType::F32, 0.0));
  NodeRef one = g.constant(Value::of(DType::F32, 1.0)), p = g.param(1, DType::Bool, {});
  EXPECT_EQ(simplify(g, g.mul(a, one)), a);
  EXPECT_EQ(simplify(g, g.add(a, zero)), g.add(a, zero));  // -0.0 + 0.0 is 0.0
  EXPECT_EQ(simplify(g, g.where(g.alu(Op::Not, {p}), a, one)), g.where(p, one, a));
  EXPECT_EQ(simplify(g, g.cast(g.cast(p, DType::I32), DType::F32)), g.cast(p, DType::F32));
  NodeRef half = g.constant(Value::of(DType::F32, 0.5)),
          two = g.constant(Value::of(DType::F32, 2.0));
  EXPECT_EQ(simplify(g, g.alu(Op::Div, {a, two})), g.mul(a, half));
}

TEST_F(Simplify, IndexBeyondNormalForms) {
  NodeRef n = var("n", 0, 1000);
  EXPECT_EQ(simplify(g, below(g.idiv(n, num(7)), 3)), below(n, 21));
  EXPECT_EQ(simplify(g, g.logical_and(below(n, 5), below(n, 9))), below(n, 5));
  EXPECT_EQ(simplify(g, g.logical_and(at_least(n, 9), below(n, 9))), g.boolean(false));
}

TEST_F(Simplify, MasksNarrowRanges) {
  NodeRef r = g.range(100, 0), s = g.range(8, 1);
  // (r % 16) where r < 16 is r.
  GatedIndex out = simplify_with_valid(g, {g.mod(r, num(16)), below(r, 16)});
  EXPECT_EQ(out.index, r) << expression(out.index);
  EXPECT_EQ(out.valid, below(r, 16));
  // Padding: (r + s - 3) / 100 where 3 <= r + s < 103 is 0.
  NodeRef sum = g.add(g.add(r, s), num(-3));
  NodeRef valid = g.logical_and(at_least(sum, 0), below(sum, 100));
  out = simplify_with_valid(g, {g.idiv(sum, num(100)), valid});
  EXPECT_EQ(out.index, num(0)) << expression(out.index);
  // The same sum inside a larger index.
  out = simplify_with_valid(g, {g.add(g.mul(s, num(1000)), g.mod(sum, num(100))), valid});
  EXPECT_EQ(out.index, g.add(g.mul(s, num(1000)), sum)) << expression(out.index);
}

TEST_F(Simplify, MasksThatLeaveOneValueDoNotTouchEqualConstants) {
  // r1 is 2 there; the size of r0, which is 2 as well, is not r1.
  NodeRef r0 = g.range(2, 0), r1 = g.range(3, 1);
  NodeRef index = g.add(g.mul(r0, num(4)), g.mul(g.sub(r1, num(2)), num(4)));
  const GatedIndex out = simplify_with_valid(g, {index, at_least(r1, 2)});
  EXPECT_EQ(out.index, g.mul(r0, num(4))) << expression(out.index);
}

TEST_F(Simplify, MasksThatFollowAreDropped) {
  NodeRef r = g.range(100, 0), s = g.range(8, 1);
  NodeRef twice = g.logical_and(below(r, 5), below(g.add(g.mul(r, num(8)), s), 40));
  GatedIndex out = simplify_with_valid(g, {r, twice});
  EXPECT_EQ(out.valid, below(r, 5)) << expression(out.valid);
  NodeRef never = g.logical_and(below(r, 5), at_least(g.add(r, s), 50));
  out = simplify_with_valid(g, {r, never});
  EXPECT_EQ(out.valid, g.boolean(false)) << expression(out.valid);
}

TEST_F(Simplify, MasksOfBothEndsStay) {
  NodeRef r = g.range(100, 0);
  NodeRef valid = g.logical_and(at_least(r, 2), below(r, 50));
  const GatedIndex out = simplify_with_valid(g, {g.sub(r, num(2)), valid});
  EXPECT_EQ(out.index, g.sub(r, num(2)));
  EXPECT_EQ(out.valid, valid);
}

TEST_F(Simplify, EqualityIsAFactAsWell) {
  NodeRef r = g.range(100, 0), s = g.range(8, 1);
  const GatedIndex out = simplify_with_valid(g, {g.add(g.mul(r, num(8)), s), g.eq(r, num(3))});
  EXPECT_EQ(out.index, g.add(s, num(24))) << expression(out.index);
}

TEST_F(Simplify, GatedLoadsAndStores) {
  const NodeRef size[] = {num(100)};
  NodeRef param = g.param(0, DType::F32, size), r = g.range(16, 0);
  NodeRef sure = g.make(Op::Load, DType::F32, {param, r, below(g.idiv(r, num(16)), 1)});
  EXPECT_EQ(simplify(g, sure), g.make(Op::Load, DType::F32, {param, r}));
  NodeRef wide = g.range(200, 1);
  NodeRef valid = g.logical_and(below(wide, 4), at_least(wide, 4));
  NodeRef never = g.make(Op::Load, DType::F32, {param, wide, valid});
  EXPECT_EQ(simplify(g, never), g.constant(Value::of(DType::F32, 0)));
  NodeRef masked =
      g.make(Op::Store, DType::Void, {param, g.mod(wide, num(100)), sure, below(wide, 50)}, {0, 1});
  NodeRef out = simplify(g, masked);
  EXPECT_EQ(out->op, Op::Store);
  EXPECT_EQ(out->src(1), wide);
  EXPECT_EQ(out->ints().size(), 2u);
}

TEST_F(Simplify, RulesOfTheContextAreSwitchedOff) {
  Options options;
  options.rules = "-mul.one";
  Context context(options);
  const ContextScope scope(context);
  NodeRef a = g.mul(g.param(0, DType::F32, {}), g.constant(Value::of(DType::F32, 1)));
  EXPECT_EQ(simplify(g, a), a);
}

TEST_F(Simplify, ShapesOfTensorGraphsStay) {
  const NodeRef dims[] = {num(4), g.variable("n", 1, 9)};
  NodeRef a = g.param(0, DType::I32, dims);
  NodeRef zero = g.mul(a, g.constant(Value::of(DType::I32, 0)));
  NodeRef out = simplify_data(g, zero);
  EXPECT_EQ(out->shape, a->shape);
  EXPECT_EQ(out->op, Op::Expand);
}

}  // namespace
}  // namespace weft
