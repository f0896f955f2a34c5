// Kernels with every kind of loop, lowered and run.
#include "tests/lower/kernels.h"

#include <cmath>

namespace weft::test {
namespace {

TEST(LowerLoops, Elementwise) {
  KernelBuilder k;
  NodeRef i = k.range(6, 0), j = k.range(5, 1);
  NodeRef at = k.g.add(k.g.mul(i, k.index(5)), j);
  NodeRef a = k.param(0, DType::F32, 30), b = k.param(1, DType::F32, 30),
          out = k.param(2, DType::F32, 30);
  k.store(out, at, k.g.add(k.load(a, at), k.g.mul(k.load(b, at), k.f32(2))));
  const auto p = expect_same(
      k.kernel(), {numbers(DType::F32, 30), numbers(DType::F32, 30, 2), zeros(DType::F32, 30)});
  EXPECT_EQ(p.params.size(), 3u);
  EXPECT_TRUE(p.params[0].read && !p.params[0].written && p.params[2].written && !p.params[2].read);
  EXPECT_EQ(p.flops, 60);
  EXPECT_EQ(p.bytes, 360);
}

TEST(LowerLoops, InvariantLoadsAreHoisted) {
  KernelBuilder k;
  NodeRef i = k.range(4, 0), j = k.range(8, 1);
  NodeRef row = k.load(k.param(0, DType::F32, 4), i);
  NodeRef at = k.g.add(k.g.mul(i, k.index(8)), j);
  k.store(k.param(1, DType::F32, 32), at, k.g.mul(row, row));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 4), zeros(DType::F32, 32)});
  int depth = 0;
  for (NodeRef n : p.code) {
    depth += n->op == Op::Range;
    depth -= n->op == Op::EndRange;
    const bool invariant = n->op == Op::Load || (n->op == Op::Mul && is_float(n->dtype));
    EXPECT_TRUE(!invariant || depth == 1) << print_program(p);
  }
}

TEST(LowerLoops, OperandsOfAChainWaitForItsTurn) {
  // All of them at once would take a register each.
  KernelBuilder k;
  NodeRef i = k.range(4, 0), j = k.range(8, 1, Binding::Unroll);
  NodeRef at = k.g.add(k.g.mul(i, k.index(8)), j);
  NodeRef x = k.load(k.param(0, DType::F32, 32), at), y = k.load(k.param(1, DType::F32, 32), at);
  k.store(k.param(2, DType::F32, 4), i, k.reduce(Fold::Add, k.g.mul(x, y), {j}));
  const auto p = expect_same(
      k.kernel(), {numbers(DType::F32, 32), numbers(DType::F32, 32, 2), zeros(DType::F32, 4)});
  size_t loads = 0, products = 0;
  for (NodeRef n : p.code) {
    loads += n->op == Op::Load;
    products += n->op == Op::MulAcc || (n->op == Op::Mul && is_float(n->dtype));
    EXPECT_LE(loads, 2 * (products + 1)) << print_program(p);
  }
  EXPECT_EQ(products, 8u) << print_program(p);
}

TEST(LowerLoops, Sum) {
  KernelBuilder k;
  NodeRef i = k.range(3, 0), r = k.range(7, 1);
  NodeRef x = k.load(k.param(0, DType::I32, 21), k.g.add(k.g.mul(i, k.index(7)), r));
  k.store(k.param(1, DType::I32, 3), i, k.reduce(Fold::Add, x, {r}));
  expect_same(k.kernel(), {numbers(DType::I32, 21), zeros(DType::I32, 3)});
}

TEST(LowerLoops, EveryFold) {
  for (Fold fold : {Fold::Add, Fold::Mul, Fold::Max, Fold::Min}) {
    for (DType d : {DType::F32, DType::F64, DType::I8, DType::U16, DType::I64, DType::F16,
                    DType::BF16, DType::Bool}) {
      KernelBuilder k;
      NodeRef i = k.range(3, 0), r = k.range(5, 1);
      NodeRef x = k.load(k.param(0, d, 15), k.g.add(k.g.mul(i, k.index(5)), r));
      k.store(k.param(1, d, 3), i, k.reduce(fold, x, {r}));
      expect_same(k.kernel(), {numbers(d, 15), zeros(d, 3)});
    }
  }
}

/// Where the window hangs over the edge, the loop over channels runs no iterations, and what is in
/// it is loaded without a mask.
TEST(LowerLoops, MaskedSumsSkipLoops) {
  const auto p = expect_same(padded_window(), {numbers(DType::F32, 24), numbers(DType::F32, 12, 2),
                                               numbers(DType::F32, 6, 3), zeros(DType::F32, 6)});
  size_t masked = 0, skipped = 0;
  for (NodeRef n : p.code) {
    masked += n->op == Op::Load && n->nsrc == 3;
    skipped += n->op == Op::Range && n->src(0)->op == Op::Where;
  }
  EXPECT_EQ(masked, 1u) << print_program(p);
  EXPECT_EQ(skipped, 1u) << print_program(p);
}

/// The copies and lanes of a tile hang over the edge at different places.
TEST(LowerLoops, MasksThatDifferWithinATileSkipNothing) {
  for (Binding binding : {Binding::Vector, Binding::Unroll}) {
    KernelBuilder k;
    NodeRef y = k.range(4, 0, binding), c = k.range(4, 1);
    NodeRef at = k.g.add(k.g.mul(y, k.index(4)), c);
    NodeRef x = k.load(k.param(0, DType::F32, 16), at);
    NodeRef some = k.g.where(k.g.lt(y, k.index(3)), x, k.f32(0));
    k.store(k.param(1, DType::F32, 4), y, k.reduce(Fold::Add, some, {c}));
    expect_same(k.kernel(), {numbers(DType::F32, 16), zeros(DType::F32, 4)});
  }
}

/// The rest of a mask belongs to the loop that is left.
TEST(LowerLoops, SkippedLoopsKeepTheRestOfTheirMask) {
  KernelBuilder k;
  NodeRef y = k.range(6, 0), c = k.range(5, 1);
  NodeRef valid = k.g.logical_and(k.g.lt(y, k.index(4)), k.g.lt(c, k.index(3)));
  NodeRef x = k.load(k.param(0, DType::F32, 12), k.g.add(k.g.mul(y, k.index(3)), c), valid);
  k.store(k.param(1, DType::F32, 6), y,
          k.reduce(Fold::Add, k.g.where(valid, k.g.mul(x, x), k.f32(0)), {c}));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 12), zeros(DType::F32, 6)});
  EXPECT_EQ(count(p, Op::Range), 2u) << print_program(p);
}

/// One loop for two sums: it may not end early for the sake of one of them.
TEST(LowerLoops, SharedLoopsAreNotSkippedForOne) {
  KernelBuilder k;
  NodeRef y = k.range(6, 0), c = k.range(4, 1);
  NodeRef x = k.load(k.param(0, DType::F32, 24), k.g.add(k.g.mul(y, k.index(4)), c));
  NodeRef some = k.reduce(Fold::Max, k.g.where(k.g.lt(y, k.index(3)), x, k.f32(-INFINITY)), {c});
  k.store(k.param(1, DType::F32, 6), y, some);
  k.store(k.param(2, DType::F32, 6), y, k.reduce(Fold::Add, x, {c}));
  const auto p = expect_same(k.kernel(),
                             {numbers(DType::F32, 24), zeros(DType::F32, 6), zeros(DType::F32, 6)});
  for (NodeRef n : p.code)
    EXPECT_TRUE(n->op != Op::Range || n->src(0)->op != Op::Where) << print_program(p);
}

/// max, then the sum of the differences from it, then the differences over the sum: three loops in
/// one.
TEST(LowerLoops, SoftmaxShape) {
  KernelBuilder k;
  NodeRef i = k.range(4, 0), r1 = k.range(6, 1), r2 = k.range(6, 2), r3 = k.range(6, 3);
  NodeRef x = k.param(0, DType::F32, 24), row = k.g.mul(i, k.index(6));
  NodeRef top = k.reduce(Fold::Max, k.load(x, k.g.add(row, r1)), {r1});
  NodeRef sum = k.reduce(Fold::Add, k.g.sub(top, k.load(x, k.g.add(row, r2))), {r2});
  NodeRef d = k.g.sub(top, k.load(x, k.g.add(row, r3)));
  k.store(k.param(1, DType::F32, 24), k.g.add(row, r3),
          k.g.alu(Op::Div, {d, k.g.add(sum, k.f32(1))}));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 24), zeros(DType::F32, 24)});
  EXPECT_EQ(count(p, Op::Range), 4u);
}

/// The same with one range for all three: each pass gets a loop of its own.
TEST(LowerLoops, DependentReducesOverOneRange) {
  KernelBuilder k;
  NodeRef i = k.range(4, 0), r = k.range(6, 1);
  NodeRef x = k.load(k.param(0, DType::F32, 24), k.g.add(k.g.mul(i, k.index(6)), r));
  NodeRef top = k.reduce(Fold::Max, x, {r});
  NodeRef sum = k.reduce(Fold::Add, k.g.sub(x, top), {r});
  k.store(k.param(1, DType::F32, 4), i, k.g.add(top, sum));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 24), zeros(DType::F32, 4)});
  EXPECT_EQ(count(p, Op::Range), 3u);
}

TEST(LowerLoops, IndependentReducesShareALoop) {
  KernelBuilder k;
  NodeRef i = k.range(4, 0), r = k.range(6, 1);
  NodeRef x = k.load(k.param(0, DType::F32, 24), k.g.add(k.g.mul(i, k.index(6)), r));
  NodeRef lo = k.reduce(Fold::Min, x, {r}), hi = k.reduce(Fold::Max, x, {r});
  k.store(k.param(1, DType::F32, 4), i, k.g.add(lo, hi));
  const auto p = expect_same(k.kernel(), {numbers(DType::F32, 24), zeros(DType::F32, 4)});
  EXPECT_EQ(count(p, Op::Range), 2u);
  EXPECT_EQ(count(p, Op::Load), 1u);
}

/// a and b over r, c and d over s; c needs a, b needs d: merging both pairs would be a circle.
TEST(LowerLoops, CrosswiseReduces) {
  KernelBuilder k;
  NodeRef r = k.range(5, 1), s = k.range(6, 2);
  NodeRef x = k.load(k.param(0, DType::F32, 5), r), y = k.load(k.param(1, DType::F32, 6), s);
  NodeRef a = k.reduce(Fold::Add, x, {r}), d = k.reduce(Fold::Max, y, {s});
  NodeRef c = k.reduce(Fold::Add, k.g.mul(y, a), {s}), b = k.reduce(Fold::Min, k.g.add(x, d), {r});
  k.store(k.param(2, DType::F32, 1), k.index(0), k.g.add(b, c));
  expect_same(k.kernel(), {numbers(DType::F32, 5), numbers(DType::F32, 6), zeros(DType::F32, 1)});
}

TEST(LowerLoops, ReduceHoistedOutOfOuterLoops) {
  KernelBuilder k;
  NodeRef i = k.range(3, 0), j = k.range(4, 1), r = k.range(5, 2);
  NodeRef sum = k.reduce(Fold::Add, k.load(k.param(0, DType::F32, 5), r), {r});
  NodeRef row = k.reduce(
      Fold::Add, k.load(k.param(1, DType::F32, 15), k.g.add(k.g.mul(i, k.index(5)), r)), {r});
  k.store(k.param(2, DType::F32, 12), k.g.add(k.g.mul(i, k.index(4)), j), k.g.mul(sum, row));
  const auto p = expect_same(
      k.kernel(), {numbers(DType::F32, 5), numbers(DType::F32, 15), zeros(DType::F32, 12)});
  EXPECT_EQ(count(p, Op::Range), 4u) << print_program(p);
  EXPECT_EQ(p.code[0]->op == Op::Range, false);
}

TEST(LowerLoops, NestedReduces) {
  KernelBuilder k;
  NodeRef i = k.range(2, 0), r = k.range(3, 1), s = k.range(4, 2);
  NodeRef x = k.load(k.param(0, DType::I32, 24),
                     k.g.add(k.g.add(k.g.mul(i, k.index(12)), k.g.mul(r, k.index(4))), s));
  NodeRef inner = k.reduce(Fold::Max, x, {s});
  k.store(k.param(1, DType::I32, 2), i, k.reduce(Fold::Add, inner, {r}));
  expect_same(k.kernel(), {numbers(DType::I32, 24), zeros(DType::I32, 2)});
}

TEST(LowerLoops, StoresInDifferentNests) {
  KernelBuilder k;
  NodeRef i = k.range(3, 0), j = k.range(4, 1);
  NodeRef y = k.load(k.param(0, DType::F32, 4), j);
  k.store(k.param(1, DType::F32, 12), k.g.add(k.g.mul(i, k.index(4)), j), k.g.mul(y, y));
  k.store(k.param(2, DType::F32, 4), j, k.g.add(y, y));
  k.store(k.param(3, DType::F32, 1), k.index(0),
          k.reduce(Fold::Add, k.load(k.param(0, DType::F32, 4), k.range(4, 7)), {k.range(4, 7)}));
  expect_same(k.kernel(), {numbers(DType::F32, 4), zeros(DType::F32, 12), zeros(DType::F32, 4),
                           zeros(DType::F32, 1)});
}

TEST(LowerLoops, Scan) {
  KernelBuilder k;
  NodeRef i = k.range(3, 0), t = k.range(6, 1);
  NodeRef at = k.g.add(k.g.mul(i, k.index(6)), t);
  const NodeRef src[] = {k.load(k.param(0, DType::I32, 18), at), t};
  const int64_t ints[] = {static_cast<int64_t>(Fold::Add)};
  NodeRef running = k.g.make({Op::Scan, DType::I32, src, ints});
  k.store(k.param(1, DType::I32, 18), at, k.g.mul(running, running));
  expect_same(k.kernel(), {numbers(DType::I32, 18), zeros(DType::I32, 18)});
}

NodeRef argmax(KernelBuilder& k, NodeRef x, NodeRef position, NodeRef range, int64_t id) {
  const int64_t c0[] = {0, id}, c1[] = {1, id};
  NodeRef best = k.g.make({Op::Carry, DType::F32, {}, c0}),
          where = k.g.make({Op::Carry, DType::I32, {}, c1});
  NodeRef better = k.g.lt(best, x);
  const NodeRef src[] = {k.f32(-100), k.g.constant(Value::of(DType::I32, 0)),
                         k.g.where(better, x, best), k.g.where(better, position, where), range};
  const int64_t ints[] = {id, 0, 2, 0};
  NodeRef loop = k.g.make({Op::Loop, DType::Void, src, ints});
  return k.g.make(Op::Get, DType::I32, {loop}, {1});
}

TEST(LowerLoops, TupleArgmax) {
  KernelBuilder k;
  NodeRef i = k.range(4, 0), r = k.range(7, 1);
  NodeRef x = k.load(k.param(0, DType::F32, 28), k.g.add(k.g.mul(i, k.index(7)), r));
  k.store(k.param(1, DType::I32, 4), i, argmax(k, x, k.g.cast(r, DType::I32), r, 9));
  expect_same(k.kernel(), {numbers(DType::F32, 28), zeros(DType::I32, 4)});
}

TEST(LowerLoops, LoopThatKeepsEveryStep) {
  KernelBuilder k;
  NodeRef t = k.range(8, 0);
  NodeRef x = k.load(k.param(0, DType::I32, 8), t);
  const int64_t c0[] = {0, 5}, c1[] = {1, 5};
  NodeRef a = k.g.make({Op::Carry, DType::I32, {}, c0}),
          b = k.g.make({Op::Carry, DType::I32, {}, c1});
  NodeRef zero = k.g.constant(Value::of(DType::I32, 0)),
          one = k.g.constant(Value::of(DType::I32, 1));
  // A Fibonacci-like pair: both bodies read both old values.
  const NodeRef src[] = {zero, one, b, k.g.add(k.g.add(a, b), x), t};
  const int64_t ints[] = {5, 0, 2, 1};
  NodeRef loop = k.g.make({Op::Loop, DType::Void, src, ints});
  k.store(k.param(1, DType::I32, 8), t,
          k.g.add(k.g.make(Op::Get, DType::I32, {loop}, {0}),
                  k.g.mul(k.g.make(Op::Get, DType::I32, {loop}, {1}), one)));
  expect_same(k.kernel(), {numbers(DType::I32, 8), zeros(DType::I32, 8)});
}

TEST(LowerLoops, MaskedPad) {
  KernelBuilder k;
  NodeRef i = k.range(10, 0);
  NodeRef inside = k.g.logical_and(k.g.le(k.index(2), i), k.g.lt(i, k.index(8)));
  NodeRef x = k.load(k.param(0, DType::F32, 6), k.g.add(i, k.index(-2)), inside);
  k.store(k.param(1, DType::F32, 10), i, x);
  expect_same(k.kernel(), {numbers(DType::F32, 6), zeros(DType::F32, 10)});
}

TEST(LowerLoops, ScatterAdd) {
  for (DType d : {DType::F32, DType::I16, DType::F16}) {
    KernelBuilder k;
    NodeRef i = k.range(12, 0);
    NodeRef where = k.load(k.param(0, DType::I32, 12), i);
    NodeRef at = k.g.alu(Op::ToIndex, {where, k.index(5)});
    NodeRef ok = k.g.logical_and(k.g.le(k.g.constant(Value::of(DType::I32, 0)), where),
                                 k.g.lt(where, k.g.constant(Value::of(DType::I32, 5))));
    k.store(k.param(2, d, 5), at, k.load(k.param(1, d, 12), i), ok, Fold::Add, 0);
    expect_same(k.kernel(), {numbers(DType::I32, 12), numbers(d, 12, 3), numbers(d, 5)});
  }
}

TEST(LowerLoops, InPlaceUpdate) {
  KernelBuilder k;
  NodeRef i = k.range(8, 0);
  NodeRef p = k.param(0, DType::F32, 8), m = k.param(1, DType::F32, 8);
  NodeRef old = k.load(p, i), momentum = k.g.mul(k.g.add(k.load(m, i), old), k.f32(0.5));
  k.store(m, i, momentum);
  k.store(p, i, k.g.sub(old, momentum));
  expect_same(k.kernel(), {numbers(DType::F32, 8), numbers(DType::F32, 8, 4)});
}

TEST(LowerLoops, AddingTwiceToOnePlace) {
  KernelBuilder k;
  NodeRef i = k.range(6, 0);
  NodeRef sum = k.param(0, DType::I32, 1), x = k.load(k.param(1, DType::I32, 6), i);
  k.store(sum, k.index(0), x, nullptr, Fold::Add, 0);
  k.store(sum, k.index(0), k.g.mul(x, x), nullptr, Fold::Add, 0);
  expect_same(k.kernel(), {numbers(DType::I32, 1), numbers(DType::I32, 6)});
}

TEST(LowerLoops, SymbolicSizes) {
  KernelBuilder k;
  NodeRef n = k.g.variable("n", 1, 100), m = k.g.variable("m", 1, 50);
  NodeRef i = k.g.range(n, 0), r = k.g.range(m, 1);
  const NodeRef all[] = {k.g.mul(n, m)}, out[] = {n};
  NodeRef x = k.load(k.g.param(0, DType::F32, all), k.g.add(k.g.mul(i, m), r));
  k.store(k.g.param(1, DType::F32, out), i, k.reduce(Fold::Add, x, {r}));
  for (int64_t size : {1, 3, 7}) {
    const auto p = expect_same(k.kernel(), {numbers(DType::F32, size * 5), zeros(DType::F32, size)},
                               {{"n", size}, {"m", 5}});
    ASSERT_EQ(p.variables.size(), 2u);
    EXPECT_EQ(p.variables[0]->text(), "m");
  }
}

TEST(LowerLoops, TriangularRange) {
  KernelBuilder k;
  NodeRef i = k.range(6, 0), j = k.g.range(k.g.add(i, k.index(1)), 1);
  NodeRef x = k.load(k.param(0, DType::F32, 36), k.g.add(k.g.mul(i, k.index(6)), j));
  k.store(k.param(1, DType::F32, 6), i, k.reduce(Fold::Add, x, {j}));
  expect_same(k.kernel(), {numbers(DType::F32, 36), zeros(DType::F32, 6)});
}

TEST(LowerLoops, CoreRangeComesFirst) {
  KernelBuilder k;
  NodeRef n = k.g.variable("n", 1, 8), c = k.g.range(k.g.mul(n, k.index(2)), 3, Binding::Core),
          j = k.range(4, 0);
  NodeRef total =
      k.reduce(Fold::Add, k.load(k.param(0, DType::F32, 5), k.range(5, 9)), {k.range(5, 9)});
  NodeRef x = k.load(k.param(1, DType::F32, 64), k.g.add(k.g.mul(c, k.index(4)), j));
  k.store(k.param(2, DType::F32, 64), k.g.add(k.g.mul(c, k.index(4)), j), k.g.mul(x, total));
  k.store(k.param(3, DType::F32, 1), k.index(0), total, nullptr, Fold::Add);
  const Buffers buffers = {numbers(DType::F32, 5), numbers(DType::F32, 64), zeros(DType::F32, 64),
                           numbers(DType::F32, 1)};
  const Kernel kernel = k.kernel();
  const Buffers expected = run_kernel(kernel.sink, buffers, {{"n", 3}});
  const auto p = lowered(kernel);
  const Buffers first = run_program(p, buffers, {{"n", 3}}, 0, 2),
                got = run_program(p, first, {{"n", 3}}, 2, 6);
  EXPECT_EQ(got, expected) << print_program(p);
  for (NodeRef x2 : p.code) {
    if (group(x2->op) == OpGroup::Leaf && x2->op != Op::Range) continue;
    EXPECT_EQ(x2->op, Op::Range);
    EXPECT_EQ(range_binding(x2), Binding::Core);
    break;
  }
  ASSERT_TRUE(p.core_size);
  EXPECT_EQ(p.core_size->vmax, 16);
}

}  // namespace
}  // namespace weft::test
