// Random terms keep their value; random masked accesses keep theirs wherever the mask holds.
#include <gtest/gtest.h>

#include "tests/rules/instance_support.h"
#include "weft/graph/print.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

/// Random terms over a few leaves.
class Terms {
 public:
  explicit Terms(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) index_.push_back(g.range(2 + below(40), i));
    index_.push_back(g.variable("n", 1, 9));
  }

  NodeRef index(int depth) {
    if (depth == 0 || below(5) == 0) return pick(index_);
    NodeRef a = index(depth - 1);
    switch (below(8)) {
      case 0: return g.idiv(a, g.index(1 + below(12)));
      case 1: return g.mod(a, g.index(1 + below(12)));
      case 2: return g.mul(a, g.index(below(9) - 3));
      case 3: return g.add(a, g.index(below(20) - 10));
      case 4: {
        const Op op = below(2) ? Op::Max : Op::Min;
        return g.alu(op, {a, index(depth - 1)});
      }
      default: {
        NodeRef b = index(depth - 1);
        return g.add(a, g.mul(b, g.index(1 + below(8))));
      }
    }
  }

  NodeRef condition(int depth) {
    NodeRef a = index(depth), c = g.index(below(40) - 8);
    const int kind = below(8);
    return kind == 0 ? g.eq(a, c) : kind < 4 ? g.le(c, a) : g.lt(a, c);
  }
  NodeRef mask() {
    NodeRef all = condition(1);
    for (int i = below(4); i > 0; --i) all = g.logical_and(all, condition(2));
    return all;
  }

  NodeRef data(int depth, DType d) {
    if (depth == 0 || below(6) == 0) {
      if (below(4) == 0) return g.constant(Value::of(d, below(5) - 2));
      return g.param(below(3) + 10 * static_cast<int>(d), d, {});
    }
    const Op ops[] = {Op::Add, Op::Mul, Op::Max,  Op::Min, Op::And,
                      Op::Or,  Op::Xor, Op::IDiv, Op::Mod};
    NodeRef a = data(depth - 1, d), b = data(depth - 1, d);
    switch (below(5)) {
      case 0: return g.where(truth(depth - 1, d), a, b);
      case 1: return g.alu(d == DType::Bool ? Op::Not : Op::Neg, {a});
      case 2: return g.cast(data(depth - 1, below(2) ? DType::I8 : DType::F32), d);
      default: return g.alu(ops[below(is_float(d) ? 4 : d == DType::Bool ? 7 : 9)], {a, b});
    }
  }
  NodeRef truth(int depth, DType d) {
    const Op ops[] = {Op::Lt, Op::Le, Op::Eq, Op::Ne};
    const Op op = ops[below(4)];
    NodeRef t = g.alu(op, {data(depth, d), data(depth, d)});
    return below(3) ? t : g.alu(Op::Not, {t});
  }

  NodeMap<Value> binding(std::span<const NodeRef> roots) { return random_binding(roots, random_); }
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  Graph g;

 private:
  NodeRef pick(const std::vector<NodeRef>& from) { return from[random_() % from.size()]; }

  Random random_;
  std::vector<NodeRef> index_;
};

TEST(SimplifyRandom, DataKeepsItsValue) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Terms t(seed);
    const DType dtypes[] = {DType::I8, DType::U8, DType::I32, DType::F32, DType::Bool};
    NodeRef before = t.data(4, dtypes[t.below(5)]);
    NodeRef after = simplify(t.g, before);
    const NodeRef both[] = {before, after};
    for (int k = 0; k < 8; ++k) {
      const NodeMap<Value> leaves = t.binding(both);
      Value was, is;
      ASSERT_TRUE(evaluate(before, leaves, was) && evaluate(after, leaves, is));
      ASSERT_TRUE(same_value(before, was, is)) << "seed " << seed << "\n"
                                               << expression(before) << " = " << was.text() << "\n"
                                               << expression(after) << " = " << is.text();
    }
    EXPECT_EQ(simplify(t.g, after), after) << "seed " << seed;
  }
}

void check_access(Terms& t, uint64_t seed, int& held) {
  const GatedIndex was{t.index(3), t.mask()};
  const GatedIndex now = simplify_with_valid(t.g, was);
  const NodeRef all[] = {was.index, was.valid, now.index, now.valid};
  for (int k = 0; k < 20; ++k) {
    const NodeMap<Value> leaves = t.binding(all);
    Value v[4];
    for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(evaluate(all[i], leaves, v[i]));
    ASSERT_EQ(v[1].as_bool(), v[3].as_bool()) << "seed " << seed << "\n"
                                              << expression(was.valid) << "\n"
                                              << expression(now.valid);
    held += v[1].as_bool();
    ASSERT_TRUE(!v[1].as_bool() || v[0] == v[2])
        << "seed " << seed << "\n"
        << expression(was.index) << "\n"
        << expression(now.index) << "\nwhere " << expression(was.valid);
  }
}

TEST(SimplifyRandom, MaskedIndicesKeepTheirValueWhereTheMaskHolds) {
  int held = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Terms t(seed);
    check_access(t, seed, held);
  }
  EXPECT_GT(held, 10000);  // the masks are not mostly false
}

}  // namespace
}  // namespace weft
