// Unroll and vector ranges: what is replicated, what gets lanes, and that nothing else changes.
#include "tests/lower/kernels.h"

namespace weft::test {
namespace {

size_t vector_nodes(const LinearProgram& p, Op op, int lanes) {
  size_t n = 0;
  for (NodeRef x : p.code) n += x->op == op && x->lanes == lanes;
  return n;
}

/// out[i, j] = sum over r of a[i, r] * b[r, j] with a tile of 2 x (2 * 4) and the sum unrolled.
struct Matmul : KernelBuilder {
  Kernel build(int64_t m, int64_t n, int64_t depth, int64_t unroll) {
    NodeRef i0 = range(m / 2, 0, Binding::Core), j0 = range(n / 8, 1),
            i1 = range(2, 10, Binding::Unroll);
    NodeRef j1 = range(2, 11, Binding::Unroll), j2 = range(4, 12, Binding::Vector);
    NodeRef r0 = range(depth / unroll, 20), r1 = range(unroll, 21, Binding::Unroll);
    NodeRef i = g.add(g.mul(i0, index(2)), i1);
    NodeRef j = g.add(g.mul(j0, index(8)), g.add(g.mul(j1, index(4)), j2));
    NodeRef r = g.add(g.mul(r0, index(unroll)), r1);
    NodeRef a = load(param(0, DType::F32, m * depth), g.add(g.mul(i, index(depth)), r));
    NodeRef b = load(param(1, DType::F32, depth * n), g.add(g.mul(r, index(n)), j));
    NodeRef sum = reduce(Fold::Add, g.mul(a, b), {r0, r1});
    store(param(2, DType::F32, m * n), g.add(g.mul(i, index(n)), j), sum);
    return kernel();
  }
};

TEST(LowerVector, Matmul) {
  Matmul k;
  const auto p =
      expect_same(k.build(4, 16, 6, 3),
                  {numbers(DType::F32, 24), numbers(DType::F32, 96), zeros(DType::F32, 64)});
  EXPECT_EQ(count(p, Op::Acc), 4u) << print_program(p);
  EXPECT_EQ(vector_nodes(p, Op::Load, 4), 6u);
  EXPECT_EQ(vector_nodes(p, Op::Load, 1), 6u);
  EXPECT_EQ(vector_nodes(p, Op::Store, 4), 4u);
  EXPECT_EQ(count(p, Op::Range), 3u);
}

TEST(LowerVector, ElementwiseRow) {
  KernelBuilder k;
  NodeRef i = k.range(5, 0), v = k.range(8, 1, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(i, k.index(8)), v);
  NodeRef x = k.load(k.param(0, DType::F32, 40), at), row = k.load(k.param(1, DType::F32, 5), i);
  NodeRef column = k.load(k.param(2, DType::F32, 8), v);
  k.store(k.param(3, DType::F32, 40), at, k.g.add(k.g.mul(x, row), column));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 40), numbers(DType::F32, 5),
                                          numbers(DType::F32, 8), zeros(DType::F32, 40)});
  EXPECT_EQ(vector_nodes(p, Op::Load, 8), 2u);
  EXPECT_EQ(vector_nodes(p, Op::Load, 1), 1u);
  EXPECT_EQ(vector_nodes(p, Op::Splat, 8), 1u);
  EXPECT_EQ(count(p, Op::Lane), 0u);
}

TEST(LowerVector, PositionsOfLanesAreNarrow) {
  KernelBuilder k;
  NodeRef i = k.range(5, 0), v = k.range(8, 1, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(i, k.index(8)), v);
  k.store(k.param(0, DType::I32, 40), at, k.g.cast(at, DType::I32));
  const auto p = expect_same(k.kernel(), {zeros(DType::I32, 40)});
  for (NodeRef n : p.code) EXPECT_NE(n->dtype, DType::I64) << print_program(p);
}

TEST(LowerVector, StridesThatAreNotOne) {
  for (int64_t stride : {-1, 0, 2, 3}) {
    KernelBuilder k;
    NodeRef i = k.range(3, 0), v = k.range(4, 1, Binding::Vector);
    NodeRef from =
        k.g.add(k.g.add(k.g.mul(i, k.index(4)), k.index(4)), k.g.mul(v, k.index(stride)));
    NodeRef x = k.load(k.param(0, DType::I32, 32), from);
    k.store(k.param(1, DType::I32, 12), k.g.add(k.g.mul(i, k.index(4)), v), x);
    expect_same(k.kernel(), {numbers(DType::I32, 32), zeros(DType::I32, 12)});
  }
}

TEST(LowerVector, ScatteredStores) {
  KernelBuilder k;
  NodeRef i = k.range(3, 0), v = k.range(4, 1, Binding::Vector);
  NodeRef x = k.load(k.param(0, DType::I32, 12), k.g.add(k.g.mul(i, k.index(4)), v));
  k.store(k.param(1, DType::I32, 12), k.g.add(k.g.mul(v, k.index(3)), i), k.g.mul(x, x));
  const auto p = expect_same(k.kernel(), {numbers(DType::I32, 12), zeros(DType::I32, 12)});
  EXPECT_EQ(count(p, Op::Store), 4u);
}

TEST(LowerVector, MasksPerLane) {
  KernelBuilder k;
  NodeRef i = k.range(3, 0), v = k.range(4, 1, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(i, k.index(4)), v);
  NodeRef inside = k.g.logical_and(k.g.le(k.index(1), at), k.g.lt(at, k.index(10)));
  NodeRef x = k.load(k.param(0, DType::F32, 9), k.g.add(at, k.index(-1)), inside);
  k.store(k.param(1, DType::F32, 11), at, x, k.g.lt(at, k.index(11)));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 9), zeros(DType::F32, 11)});
  EXPECT_EQ(count(p, Op::Load), 4u);
}

TEST(LowerVector, UniformMaskStaysAVector) {
  KernelBuilder k;
  NodeRef i = k.range(5, 0), v = k.range(4, 1, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(i, k.index(4)), v);
  NodeRef x = k.load(k.param(0, DType::F32, 12), at, k.g.lt(at, k.index(12)));
  k.store(k.param(1, DType::F32, 20), at, x);
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 12), zeros(DType::F32, 20)});
  EXPECT_EQ(vector_nodes(p, Op::Load, 4), 1u) << print_program(p);
}

TEST(LowerVector, PositionsAsData) {
  KernelBuilder k;
  NodeRef i = k.range(5, 0), v = k.range(4, 1, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(i, k.index(4)), v);
  NodeRef mod = k.g.mod(at, k.index(3));
  NodeRef x = k.g.where(k.g.lt(at, k.index(7)), k.g.cast(k.g.cast(at, DType::I32), DType::F32),
                        k.g.cast(k.g.cast(mod, DType::I64), DType::F32));
  k.store(k.param(0, DType::F32, 20), at, x);
  expect_same(k.kernel(), {zeros(DType::F32, 20)});
}

TEST(LowerVector, GatherPerLane) {
  KernelBuilder k;
  NodeRef i = k.range(2, 0), v = k.range(4, 1, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(i, k.index(4)), v);
  NodeRef where = k.load(k.param(0, DType::I64, 8), at);
  NodeRef ok = k.g.logical_and(k.g.le(k.g.constant(Value::of(DType::I64, 0)), where),
                               k.g.lt(where, k.g.constant(Value::of(DType::I64, 3))));
  NodeRef x = k.load(k.param(1, DType::F32, 3), k.g.alu(Op::ToIndex, {where, k.index(3)}), ok);
  k.store(k.param(2, DType::F32, 8), at, x);
  expect_same(k.kernel(), {numbers(DType::I64, 8), numbers(DType::F32, 3), zeros(DType::F32, 8)});
}

/// What several lanes take alike is loaded as a vector of what there is, and computed on that.
TEST(LowerVector, FewElementsOfManyLanes) {
  for (const DType dtype : {DType::F32, DType::U8, DType::I16, DType::F64})
    for (const int64_t each : {2, 4, 8}) {
      const int64_t few = 16 / each;
      KernelBuilder k;
      NodeRef i = k.range(3, 0), v = k.range(16, 1, Binding::Vector);
      const auto rows = [&](int64_t size, NodeRef within) {
        return k.g.add(k.g.mul(i, k.index(size)), within);
      };
      NodeRef x = k.load(k.param(0, dtype, 3 * few), rows(few, k.g.idiv(v, k.index(each))));
      NodeRef y = k.load(k.param(1, dtype, 3 * few), rows(few, k.g.mod(v, k.index(few))));
      k.store(k.param(2, dtype, 48), rows(16, v), k.g.add(k.g.mul(x, x), y));
      const auto p =
          expect_same(k.kernel(), {numbers(dtype, static_cast<size_t>(3 * few)),
                                   numbers(dtype, static_cast<size_t>(3 * few)), zeros(dtype, 48)});
      EXPECT_EQ(count(p, Op::Load), 2u) << print_program(p);
      EXPECT_EQ(vector_nodes(p, Op::Mul, static_cast<int>(few)), 1u);
      EXPECT_EQ(vector_nodes(p, Op::Add, 16), 1u);
    }
}

TEST(LowerVector, ReductionOverAVector) {
  for (Fold fold : {Fold::Add, Fold::Max}) {
    KernelBuilder k;
    NodeRef i = k.range(3, 0), r0 = k.range(2, 1), r1 = k.range(3, 2, Binding::Unroll),
            r2 = k.range(4, 3, Binding::Vector);
    NodeRef r = k.g.add(k.g.mul(k.g.add(k.g.mul(r0, k.index(3)), r1), k.index(4)), r2);
    NodeRef x = k.load(k.param(0, DType::F32, 72), k.g.add(k.g.mul(i, k.index(24)), r));
    k.store(k.param(1, DType::F32, 3), i, k.reduce(fold, x, {r0, r1, r2}));
    const auto p = expect_same(k.kernel(), {numbers(DType::F32, 72), zeros(DType::F32, 3)});
    EXPECT_EQ(vector_nodes(p, Op::Acc, 4), 1u) << print_program(p);
  }
}

TEST(LowerVector, ReductionOverAVectorAlone) {
  KernelBuilder k;
  NodeRef i = k.range(3, 0), r = k.range(8, 1, Binding::Vector), v = k.range(8, 2, Binding::Vector);
  NodeRef row = k.g.mul(i, k.index(8));
  NodeRef sum = k.reduce(Fold::Add, k.load(k.param(0, DType::F32, 24), k.g.add(row, r)), {r});
  k.store(k.param(1, DType::F32, 24), k.g.add(row, v),
          k.g.sub(k.load(k.param(0, DType::F32, 24), k.g.add(row, v)), sum));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 24), zeros(DType::F32, 24)});
  EXPECT_EQ(count(p, Op::Acc), 0u);
  // Half of the lanes with the other half, in vectors while there are any.
  EXPECT_EQ(vector_nodes(p, Op::Add, 4), 1u) << print_program(p);
  EXPECT_EQ(vector_nodes(p, Op::Add, 2), 1u) << print_program(p);
}

/// Whether any lane needs more steps is asked of all of them at once, and not by halves.
TEST(LowerVector, ConditionsOfLanesAreTestedAtOnce) {
  KernelBuilder k;
  NodeRef v = k.range(16, 0, Binding::Vector);
  k.store(k.param(1, DType::F32, 16), v, k.g.alu(Op::Sin, {k.load(k.param(0, DType::F32, 16), v)}));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 16), zeros(DType::F32, 16)});
  EXPECT_GT(count(p, Op::Range), 0u) << print_program(p);
  for (NodeRef n : p.code)
    EXPECT_FALSE(is_bool(n->dtype) && is_alu(n->op) && n->lanes > 1 && n->lanes < 16)
        << print_program(p);
}

TEST(LowerVector, ScanInLanes) {
  KernelBuilder k;
  NodeRef t = k.range(6, 1), v = k.range(4, 0, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(t, k.index(4)), v);
  const NodeRef src[] = {k.load(k.param(0, DType::I32, 24), at), t};
  const int64_t ints[] = {static_cast<int64_t>(Fold::Add)};
  k.store(k.param(1, DType::I32, 24), at, k.g.make({Op::Scan, DType::I32, src, ints}));
  const auto p = expect_same(k.kernel(), {numbers(DType::I32, 24), zeros(DType::I32, 24)});
  EXPECT_EQ(vector_nodes(p, Op::Acc, 4), 1u);
}

NodeRef argmax(KernelBuilder& k, NodeRef x, NodeRef range) {
  const int64_t c0[] = {0, 3}, c1[] = {1, 3};
  NodeRef best = k.g.make({Op::Carry, DType::F32, {}, c0}),
          where = k.g.make({Op::Carry, DType::I32, {}, c1});
  NodeRef better = k.g.lt(best, x);
  const NodeRef src[] = {k.f32(-100), k.g.constant(Value::of(DType::I32, 0)),
                         k.g.where(better, x, best),
                         k.g.where(better, k.g.cast(range, DType::I32), where), range};
  const int64_t ints[] = {3, 0, 2, 0};
  return k.g.make(Op::Get, DType::I32, {k.g.make({Op::Loop, DType::Void, src, ints})}, {1});
}

TEST(LowerVector, TupleLoopInLanesAndCopies) {
  KernelBuilder k;
  NodeRef u = k.range(2, 0, Binding::Unroll), v = k.range(4, 1, Binding::Vector), r = k.range(7, 2);
  NodeRef i = k.g.add(k.g.mul(u, k.index(4)), v);
  NodeRef x = k.load(k.param(0, DType::F32, 56), k.g.add(k.g.mul(r, k.index(8)), i));
  k.store(k.param(1, DType::I32, 8), i, argmax(k, x, r));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 56), zeros(DType::I32, 8)});
  EXPECT_EQ(count(p, Op::Acc), 4u);
  EXPECT_EQ(count(p, Op::Range), 1u) << print_program(p);
}

/// Long lengths in vectors of one width, others in those of another.
TEST(LowerVector, StoresOfOtherVectors) {
  KernelBuilder k;
  NodeRef wide = k.g.add(k.g.mul(k.range(2, 0), k.index(8)), k.range(8, 2, Binding::Vector));
  NodeRef rest = k.g.add(k.range(4, 1, Binding::Vector), k.index(16));
  for (NodeRef at : {wide, rest}) {
    NodeRef x = k.load(k.param(0, DType::F32, 20), at);
    k.store(k.param(1, DType::F32, 20), at, k.g.mul(x, x));
  }
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 20), zeros(DType::F32, 20)});
  EXPECT_EQ(vector_nodes(p, Op::Store, 8), 1u) << print_program(p);
  EXPECT_EQ(vector_nodes(p, Op::Store, 4), 1u) << print_program(p);
}

TEST(LowerVector, UnrolledScatterAddKeepsItsOrder) {
  for (Binding b : {Binding::Unroll, Binding::Vector}) {
    KernelBuilder k;
    NodeRef i = k.range(3, 0), u = k.range(4, 1, b);
    NodeRef at = k.g.add(k.g.mul(i, k.index(4)), u);
    NodeRef to = k.g.alu(Op::ToIndex, {k.load(k.param(0, DType::U8, 12), at), k.index(4)});
    k.store(k.param(2, DType::F32, 4), to, k.load(k.param(1, DType::F32, 12), at), nullptr,
            Fold::Add, 0);
    k.store(k.param(3, DType::F32, 4), to, k.load(k.param(1, DType::F32, 12), at), nullptr,
            Fold::Set, 0);
    expect_same(k.kernel(), {numbers(DType::U8, 12), numbers(DType::F32, 12, 5),
                             numbers(DType::F32, 4), zeros(DType::F32, 4)});
  }
}

TEST(LowerVector, WideIndices) {
  KernelBuilder k;
  // 70000^2 needs 64 bits; the small index next to it does not.
  NodeRef i = k.range(70000, 0), j = k.range(70000, 1);
  NodeRef at = k.g.add(k.g.mul(i, k.index(70000)), j);
  k.store(k.param(1, DType::F32, 4900000000), at, k.load(k.param(0, DType::F32, 70000), j));
  const auto p = lowered(k.kernel());
  for (NodeRef n : p.code) {
    if (n->op == Op::Load) {
      EXPECT_EQ(n->src(1)->dtype, DType::I32);
    }
    if (n->op == Op::Store) {
      EXPECT_EQ(n->src(1)->dtype, DType::I64);
    }
    if (n->op == Op::Range) {
      EXPECT_EQ(n->dtype, DType::I32);
    }
  }
}

}  // namespace
}  // namespace weft::test
