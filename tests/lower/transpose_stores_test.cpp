// Vectors whose lanes are stored one by one beside others become pieces of rows, and mean the same.
#include "tests/lower/tile_kernel.h"

namespace weft::test {
namespace {

/// out[j, i] = in[i, j] + 1 for i of `columns` and j of `lanes` rows, whose elements lie `apart`: a
/// vector of rows for each column. Rows overlap no others, and have a few elements `more`.
Kernel scattered(DType dtype, int64_t columns, int64_t lanes, int64_t apart = 1,
                 Fold combine = Fold::Set, bool masked = false, int64_t unique = 1,
                 int64_t more = 3) {
  KernelBuilder k;
  const int64_t row = columns * apart + more;
  NodeRef i = k.range(columns, 0, Binding::Unroll), j = k.range(lanes, 1, Binding::Vector);
  NodeRef x = k.load(k.param(1, dtype, columns * lanes), k.g.add(k.g.mul(i, k.index(lanes)), j));
  NodeRef at = k.g.add(k.g.mul(j, k.index(row)), k.g.mul(i, k.index(apart)));
  k.store(k.param(0, dtype, row * lanes), at,
          k.g.make({Op::Add, dtype, SmallVector<NodeRef, 2>{x, k.g.constant(Value::of(dtype, 1))}}),
          masked ? k.g.lt(i, k.index(columns - 1)) : nullptr, combine, unique);
  return k.kernel();
}

LinearProgram expect_same_stores(const Target& target, const Kernel& kernel) {
  Buffers buffers(2);
  for (NodeRef n : Toposort(kernel.sink))
    if (n->op == Op::Param)
      for (int64_t i = 0; i < n->src(0)->vmax; ++i)
        buffers[static_cast<size_t>(param_slot(n))].push_back(Value::of(n->dtype, i));
  const LinearProgram program = lower_kernel(kernel, target);
  verify_program(program, "lower");
  const Buffers want = run_kernel(kernel.sink, buffers), got = run_program(program, buffers);
  for (size_t i = 0; i < want[0].size(); ++i) EXPECT_TRUE(same_value(want[0][i], got[0][i])) << i;
  return program;
}

struct Shape {
  int64_t columns;
  size_t steps, stores;  // of 16 lanes
};

// As many columns as are a power of two together: 14 are 8, 4 and 2.
TEST(TransposeStores, OfColumnsSideBySide) {
  const Target target = target_with_tiles();
  for (const auto [columns, steps, stores] : {Shape{2, 2, 16},
                                              {3, 2, 32},
                                              {4, 8, 16},
                                              {8, 24, 16},
                                              {14, 34, 48},
                                              {16, 64, 16},
                                              {20, 72, 32}}) {
    SCOPED_TRACE(columns);
    const LinearProgram p = expect_same_stores(target, scattered(DType::F32, columns, 16));
    EXPECT_EQ(count(p, Op::Trn), steps);
    EXPECT_EQ(count(p, Op::Store), stores);
  }
  for (const DType dtype : {DType::F64, DType::I64})
    EXPECT_EQ(count(expect_same_stores(target, scattered(dtype, 8, 8)), Op::Trn), 24U);
}

// One column, elements of rows that do not lie side by side, sums, places that others may write,
// half vectors, bytes, and machines without the instruction.
TEST(TransposeStores, OfNothingElse) {
  const Target target = target_with_tiles();
  for (const Kernel& kernel : {scattered(DType::F32, 1, 16), scattered(DType::F32, 8, 16, 2),
                               scattered(DType::F32, 8, 16, 1, Fold::Add),
                               scattered(DType::F32, 8, 8), scattered(DType::U8, 16, 16)})
    EXPECT_EQ(count(expect_same_stores(target, kernel), Op::Trn), 0U);
  CpuFeatures avx2;
  for (const CpuFeature f : {CpuFeature::Avx2, CpuFeature::Fma}) avx2.set(f, true);
  EXPECT_EQ(count(lower_kernel(scattered(DType::F32, 16, 8), make_target("x86", avx2, 2)), Op::Trn),
            0U);
}

// A column that is not stored leaves the others.
TEST(TransposeStores, OfColumnsThatAreMasked) {
  const Kernel kernel = scattered(DType::F32, 9, 16, 1, Fold::Set, true);
  EXPECT_EQ(count(expect_same_stores(target_with_tiles(), kernel), Op::Trn), 24U);
}

/// Rows that lie side by side, without anything between them.
Kernel filled(DType dtype, int64_t columns, int64_t lanes, Fold combine = Fold::Set) {
  return scattered(dtype, columns, lanes, 1, combine, false, 1, 0);
}

// Of a few columns, as vectors go into memory, whatever lies in them; of more, as pieces of rows.
TEST(TransposeStores, OfRowsThatAreFilled) {
  const Target target = target_with_tiles();
  const auto stores = [&](const Kernel& kernel) {
    const LinearProgram p = expect_same_stores(target, kernel);
    return std::pair(count(p, Op::Store), count(p, Op::Trn));
  };
  for (const size_t columns : {2u, 3u, 4u})
    for (const auto& [dtype, lanes] : {std::pair(DType::F32, 16),
                                       {DType::F64, 8},
                                       {DType::F16, 16},
                                       {DType::U8, 64},
                                       {DType::I16, 8}})
      EXPECT_EQ(stores(filled(dtype, static_cast<int64_t>(columns), lanes)),
                std::pair(columns, size_t{0}))
          << columns << " of " << name(dtype);
  EXPECT_EQ(stores(filled(DType::F32, 8, 16)), std::pair(size_t{16}, size_t{24}));
  EXPECT_EQ(stores(filled(DType::U8, 5, 64)), std::pair(size_t{5 * 64}, size_t{0}));
  EXPECT_EQ(stores(filled(DType::F32, 2, 16, Fold::Add)), std::pair(size_t{32}, size_t{0}));
  EXPECT_EQ(stores(filled(DType::F32, 2, 8)), std::pair(size_t{16}, size_t{0}));
}

// As elements are repeated: out[2 j + i] = in[j].
TEST(TransposeStores, OfOneVectorTwice) {
  KernelBuilder k;
  NodeRef i = k.range(2, 0, Binding::Unroll), j = k.range(16, 1, Binding::Vector);
  NodeRef x = k.load(k.param(1, DType::F32, 16), j);
  k.store(k.param(0, DType::F32, 32), k.g.add(k.g.mul(j, k.index(2)), i), x);
  EXPECT_EQ(count(expect_same_stores(target_with_tiles(), k.kernel()), Op::Store), 2U);
}

}  // namespace
}  // namespace weft::test
