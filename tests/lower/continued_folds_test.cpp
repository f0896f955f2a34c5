// Reductions whose remainder has a loop of its own: one set of accumulators for both loops.
#include "tests/lower/kernels.h"

namespace weft::test {
namespace {

/// out[j] = fold of x[i, j] over 11 rows: eight of them two by two, then the others; with `more`,
/// something else reads the main loop's result, too.
struct Peeled : KernelBuilder {
  Kernel build(Fold fold, DType dtype, Binding columns, bool product, bool more = false) {
    NodeRef j = range(4, 0, columns), pair = range(4, 1), one = range(2, 2, Binding::Unroll),
            left = range(3, 3);
    const auto at = [&](NodeRef row) {
      NodeRef x = load(param(0, dtype, 44), g.add(g.mul(row, index(4)), j));
      return product ? g.mul(x, load(param(1, dtype, 11), row)) : x;
    };
    NodeRef main = reduce(fold, at(g.add(g.mul(pair, index(2)), one)), {pair, one});
    NodeRef rest = reduce(fold, at(g.add(index(8), left)), {left});
    store(param(2, dtype, 4), j, g.alu(fold_op(fold), {main, rest}));
    if (more) store(param(3, dtype, 4), j, main);
    return kernel();
  }
};

size_t continued(const LinearProgram& p) {
  size_t n = 0;
  for (NodeRef x : p.code) n += x->op == Op::Acc && x->src(0)->op == Op::GetAcc;
  return n;
}

Buffers buffers_of(DType dtype) {
  return {numbers(dtype, 44), numbers(dtype, 11, 3), zeros(dtype, 4), zeros(dtype, 4)};
}

TEST(ContinuedFolds, RemaindersGoOnWithTheAccumulators) {
  for (Fold fold : {Fold::Add, Fold::Mul, Fold::Max, Fold::Min})
    for (DType dtype : {DType::F32, DType::I32, DType::U8})
      for (Binding columns : {Binding::Loop, Binding::Vector, Binding::Unroll}) {
        Peeled k;
        const auto p = expect_same(k.build(fold, dtype, columns, false), buffers_of(dtype));
        const size_t sums = columns == Binding::Unroll ? 4 : 1;
        EXPECT_EQ(count(p, Op::Acc), 2 * sums) << print_program(p);
        EXPECT_EQ(continued(p), sums) << print_program(p);
      }
}

TEST(ContinuedFolds, ProductsStayFused) {
  Peeled k;
  const auto p =
      expect_same(k.build(Fold::Add, DType::F32, Binding::Vector, true), buffers_of(DType::F32));
  EXPECT_EQ(continued(p), 1u) << print_program(p);
  size_t sums = 0;
  for (NodeRef x : p.code) sums += x->op == Op::Add && is_float(x->dtype);
  EXPECT_EQ(sums, 1u) << "of the two copies in the main loop alone\n" << print_program(p);
  EXPECT_EQ(count(p, Op::MulAcc), 2u) << print_program(p);
}

TEST(ContinuedFolds, WhatOthersReadStays) {
  Peeled k;
  const auto p = expect_same(k.build(Fold::Add, DType::F32, Binding::Loop, false, true),
                             buffers_of(DType::F32));
  EXPECT_EQ(continued(p), 0u) << print_program(p);
}

TEST(ContinuedFolds, SumsOfOtherLoopsStay) {
  // A sum over columns and one over rows run in different loops.
  KernelBuilder k;
  NodeRef i = k.range(5, 0), j = k.range(5, 1), a = k.range(3, 2), b = k.range(4, 3);
  NodeRef rows = k.load(k.param(0, DType::F32, 15), k.g.add(k.g.mul(i, k.index(3)), a));
  NodeRef columns = k.load(k.param(1, DType::F32, 20), k.g.add(k.g.mul(j, k.index(4)), b));
  NodeRef sum = k.g.add(k.reduce(Fold::Add, rows, {a}), k.reduce(Fold::Add, columns, {b}));
  k.store(k.param(2, DType::F32, 25), k.g.add(k.g.mul(i, k.index(5)), j), sum);
  const auto p = expect_same(
      k.kernel(), {numbers(DType::F32, 15), numbers(DType::F32, 20), zeros(DType::F32, 25)});
  EXPECT_EQ(continued(p), 0u) << print_program(p);
}

}  // namespace
}  // namespace weft::test
