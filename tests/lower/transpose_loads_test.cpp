// Gathers down the columns of rows become the rows, transposed, and mean the same.
#include "tests/lower/tile_kernel.h"
#include "weft/base/format.h"
#include "weft/optimize/optimize.h"

namespace weft::test {
namespace {

enum class Mask { None, OfColumns, OfRows };

/// out[i, j] = in[j, i] for i of `columns` and j of `rows`, whose elements lie `apart`: copies of
/// `unroll` columns, vectors of `lanes` rows. A mask leaves the last one out.
Kernel bound(DType dtype, int64_t unroll, int64_t lanes, int64_t apart = 1,
             Mask mask = Mask::None) {
  KernelBuilder k;
  const int64_t columns = 2 * unroll, rows = 3 * lanes;
  NodeRef i = k.g.add(k.g.mul(k.range(2, 0), k.index(unroll)), k.range(unroll, 1, Binding::Unroll));
  NodeRef j = k.g.add(k.g.mul(k.range(3, 2), k.index(lanes)), k.range(lanes, 3, Binding::Vector));
  NodeRef at = k.g.add(k.g.mul(j, k.index(columns * apart)), k.g.mul(i, k.index(apart)));
  NodeRef valid = mask == Mask::OfColumns ? k.g.lt(i, k.index(columns - 1))
                  : mask == Mask::OfRows  ? k.g.lt(j, k.index(rows - 1))
                                          : nullptr;
  NodeRef x = k.load(k.param(1, dtype, rows * columns * apart), at, valid);
  k.store(k.param(0, dtype, rows * columns), k.g.add(k.g.mul(i, k.index(rows)), j), x);
  return k.kernel();
}

Buffers buffers_of(const Kernel& kernel) {
  Buffers all(2);
  for (NodeRef n : Toposort(kernel.sink))
    if (n->op == Op::Param) {
      const auto slot = static_cast<size_t>(param_slot(n));
      for (int64_t i = 0; i < n->src(0)->vmax; ++i)
        all[slot].push_back(Value::of(n->dtype, slot == 0 ? 0 : i));
    }
  return all;
}

/// With the values of the kernel as it was, in so many steps and loads.
void expect_transposed(const Target& target, const Kernel& kernel, size_t steps, size_t loads) {
  const LinearProgram p = expect_same_on(target, kernel, buffers_of(kernel));
  EXPECT_EQ(count(p, Op::Trn), steps);
  EXPECT_EQ(count(p, Op::Load), loads);
}

TEST(TransposeLoads, OfAsManyColumnsAsLanes) {
  const Target target = target_with_tiles();
  for (const auto& [dtype, lanes] :
       {std::pair(DType::F32, 16), {DType::I32, 16}, {DType::F64, 8}, {DType::I64, 8}}) {
    SCOPED_TRACE(name(dtype));
    for (const int64_t times : {1, 2}) {
      const Kernel kernel = bound(dtype, lanes * times, lanes);
      const LinearProgram p = expect_same_on(target, kernel, buffers_of(kernel));
      const auto steps = static_cast<size_t>(dtype == DType::F32 || dtype == DType::I32 ? 64 : 24);
      EXPECT_EQ(count(p, Op::Trn), steps * static_cast<size_t>(times));
      EXPECT_EQ(count(p, Op::Load), static_cast<size_t>(lanes * times));
    }
  }
}

/// Vector i of a square of n words begins with a piece of row i: 16 / n pieces make one.
TEST(TransposeLoads, OfWordsEightOrFourAtATime) {
  const Target target = target_with_tiles();
  struct Case {
    int64_t words;
    size_t steps, loads;
  };
  for (const auto& [words, steps, loads] :
       {Case{4, 8, 16}, Case{8, 24, 16}, Case{12, 32, 32}, Case{16, 48, 32}, Case{3, 0, 48}}) {
    SCOPED_TRACE(words);
    expect_transposed(target, bound(DType::U32, words, 16), steps, loads);
  }
}

/// As many as make a register of four rows, or of two, are worth it too; what is left is gathered.
TEST(TransposeLoads, OfFewerColumnsInPieces) {
  const Target target = target_with_tiles();
  struct Case {
    DType dtype;
    int64_t columns, lanes;
    size_t steps, loads;
  };
  for (const auto& [dtype, columns, lanes, steps, loads] :
       {Case{DType::F32, 4, 16, 8, 16}, Case{DType::F32, 8, 16, 24, 16},
        Case{DType::F32, 9, 16, 24, 32}, Case{DType::I32, 12, 16, 32, 32},
        Case{DType::F32, 20, 16, 72, 32}, Case{DType::F64, 2, 8, 2, 8},
        Case{DType::I64, 4, 8, 8, 8}, Case{DType::F64, 6, 8, 10, 16}}) {
    SCOPED_TRACE(strformat("{} {}", name(dtype), columns));
    expect_transposed(target, bound(dtype, columns, lanes), steps, loads);
  }
}

/// Pieces of 128 bits at least; vectors may be parts of registers, beside wider numbers.
TEST(TransposeLoads, OfBytesAndHalves) {
  const Target target = target_with_tiles();
  struct Case {
    DType dtype;
    int64_t columns, lanes;
    size_t steps, loads;
  };
  for (const auto& [dtype, columns, lanes, steps, loads] :
       {Case{DType::U8, 16, 64, 64, 64}, Case{DType::Bool, 16, 64, 64, 64},
        Case{DType::I8, 16, 32, 64, 32}, Case{DType::U8, 32, 16, 128, 32},
        Case{DType::U8, 17, 64, 64, 128}, Case{DType::U8, 15, 64, 0, 960},
        Case{DType::U16, 16, 32, 64, 32}, Case{DType::I16, 8, 32, 24, 32},
        Case{DType::F16, 16, 16, 64, 16}, Case{DType::BF16, 8, 16, 24, 16},
        Case{DType::F16, 8, 8, 24, 8}, Case{DType::F16, 7, 16, 0, 112},
        Case{DType::U16, 8, 4, 0, 32}}) {
    SCOPED_TRACE(strformat("{} {} of {}", name(dtype), columns, lanes));
    expect_transposed(target, bound(dtype, columns, lanes), steps, loads);
  }
  CpuFeatures older = target.cpu;
  older.set(CpuFeature::Avx512vbmi, false);
  const Target without = make_target("x86", older, 2);
  EXPECT_EQ(count(lower_kernel(bound(DType::U8, 16, 64), without), Op::Trn), 0U);
  EXPECT_EQ(count(lower_kernel(bound(DType::U16, 16, 32), without), Op::Trn), 64U);
}

/// out[i, j] = value(in[j, i], in[j, i], ...) of as many params as there are operands, 16 columns
/// of vectors of as many lanes.
template <class Value>
Kernel computed(DType dtype, int64_t lanes, int64_t operands, Value value) {
  KernelBuilder k;
  constexpr int64_t kColumns = 32;
  const int64_t rows = 3 * lanes, size = rows * kColumns;
  NodeRef i = k.g.add(k.g.mul(k.range(2, 0), k.index(16)), k.range(16, 1, Binding::Unroll));
  NodeRef j = k.g.add(k.g.mul(k.range(3, 2), k.index(lanes)), k.range(lanes, 3, Binding::Vector));
  std::vector<NodeRef> loads;
  for (int64_t slot = 1; slot <= operands; ++slot)
    loads.push_back(k.load(k.param(slot, dtype, size), k.g.add(k.g.mul(j, k.index(kColumns)), i)));
  NodeRef made = value(k.g, loads);
  k.store(k.param(0, made->dtype, size), k.g.add(k.g.mul(i, k.index(rows)), j), made);
  return k.kernel();
}

Buffers numbers_of(const Kernel& kernel) {
  Buffers all(4);
  for (NodeRef n : Toposort(kernel.sink))
    if (n->op == Op::Param)
      all[static_cast<size_t>(param_slot(n))] =
          numbers(n->dtype, n->src(0)->vmax, param_slot(n) + 1);
  return all;
}

/// A sum of transposed matrices is transposed once; so is what else is computed of them, as long as
/// it is as wide, and each column is used once.
TEST(TransposeLoads, AfterWhatIsComputedOfThem) {
  const Target target = target_with_tiles();
  using Loads = std::vector<NodeRef>;
  const auto sum = [](Graph& g, const Loads& x) { return g.add(x[0], x[1]); };
  const auto scaled = [](Graph& g, const Loads& x) {
    NodeRef two = g.constant(Value::of(x[0]->dtype, 2));
    return g.add(g.add(g.mul(x[0], two), x[1]), x[2]);
  };
  const auto compared = [](Graph& g, const Loads& x) { return g.lt(x[0], x[1]); };
  const auto widened = [](Graph& g, const Loads& x) {
    return g.add(g.cast(x[0], DType::F64), g.cast(x[1], DType::F64));
  };
  const auto used_twice = [](Graph& g, const Loads& x) {
    return g.add(g.mul(x[0], x[0]), g.mul(x[0], x[1]));
  };
  for (const auto& [dtype, lanes] :
       {std::pair(DType::F32, 16), {DType::U8, 64}, {DType::I16, 32}, {DType::F16, 16}}) {
    SCOPED_TRACE(name(dtype));
    const auto steps = [&](int64_t operands, auto value) {
      const Kernel kernel = computed(dtype, lanes, operands, value);
      return count(expect_same_on(target, kernel, numbers_of(kernel)), Op::Trn);
    };
    EXPECT_EQ(steps(2, sum), 64U);
    EXPECT_EQ(steps(3, scaled), 64U);
    EXPECT_EQ(steps(2, compared), 128U);
    EXPECT_EQ(steps(2, used_twice), 128U);
  }
  const auto joined = [](Graph& g, const Loads& x) {
    return g.alu(Op::Xor, {g.logical_and(x[0], x[1]), x[2]});
  };
  const auto inverted = [](Graph& g, const Loads& x) {
    return g.logical_and(x[0], g.alu(Op::Not, {x[1]}));
  };
  const auto as_number = [](Graph& g, const Loads& x) { return g.cast(x[0], DType::I8); };
  const auto chosen = [](Graph& g, const Loads& x) {
    return g.where(x[0], g.cast(x[1], DType::I8), g.cast(x[2], DType::I8));
  };
  const auto steps = [&](int64_t operands, auto value) {
    const Kernel kernel = computed(DType::Bool, 64, operands, value);
    return count(expect_same_on(target, kernel, numbers_of(kernel)), Op::Trn);
  };
  EXPECT_EQ(steps(3, joined), 64U);
  EXPECT_EQ(steps(2, inverted), 128U);
  EXPECT_EQ(steps(1, as_number), 64U);
  EXPECT_EQ(steps(3, chosen), 192U);
  const Kernel wide = computed(DType::F32, 16, 2, widened);
  EXPECT_EQ(count(expect_same_on(target, wide, numbers_of(wide)), Op::Trn), 128U);
}

/// A row that data choose is in memory, whether it is to be taken or not.
TEST(TransposeLoads, WhereAllLanesShareAMask) {
  const Target target = target_with_tiles();
  expect_transposed(target, bound(DType::F32, 16, 16, 1, Mask::OfColumns), 64, 16);
  expect_transposed(target, bound(DType::U32, 8, 16, 1, Mask::OfColumns), 24, 16);
}

// Too few columns for a piece, elements of rows that do not lie side by side, masks of lanes, and
// half vectors stay what they were.
TEST(TransposeLoads, OfNothingElse) {
  const Target target = target_with_tiles();
  for (const Kernel& kernel : {bound(DType::F32, 3, 16), bound(DType::F32, 16, 16, 2),
                               bound(DType::F32, 16, 16, 1, Mask::OfRows), bound(DType::F32, 16, 8),
                               bound(DType::U8, 16, 8)})
    EXPECT_EQ(count(expect_same_on(target, kernel, buffers_of(kernel)), Op::Trn), 0U);
  const Kernel kernel = bound(DType::F32, 16, 16);
  CpuFeatures avx2;
  for (const CpuFeature f : {CpuFeature::Avx2, CpuFeature::Fma}) avx2.set(f, true);
  EXPECT_EQ(count(lower_kernel(kernel, make_target("x86", avx2, 2)), Op::Trn), 0U);
}

TEST(TransposeLoads, AreChosenForTranspositions) {
  const Target target = target_with_tiles();
  for (const auto& [rows, columns] : {std::pair(64, 64), {512, 512}, {48, 4096}, {100, 33}}) {
    KernelBuilder k;
    NodeRef i = k.range(columns, 0), j = k.range(rows, 1);
    NodeRef x =
        k.load(k.param(1, DType::F32, rows * columns), k.g.add(k.g.mul(j, k.index(columns)), i));
    k.store(k.param(0, DType::F32, rows * columns), k.g.add(k.g.mul(i, k.index(rows)), j), x);
    const Kernel plain = k.kernel(), better = optimize_kernel(plain, target, {});
    SCOPED_TRACE(rows);
    const LinearProgram p = rows < 512 && columns < 4096
                                ? expect_same_on(target, better, buffers_of(plain))
                                : lower_kernel(better, target);
    EXPECT_GE(count(p, Op::Trn), 64U);
  }
}

TEST(TransposeLoads, AreChosenForBytesAndHalves) {
  const Target target = target_with_tiles();
  for (const auto& [dtype, operands] : {std::pair(DType::U8, 1),
                                        {DType::U8, 2},
                                        {DType::I16, 2},
                                        {DType::F16, 1},
                                        {DType::BF16, 2}}) {
    SCOPED_TRACE(strformat("{} {}", name(dtype), operands));
    constexpr int64_t kRows = 200, kColumns = 103;
    KernelBuilder k;
    NodeRef i = k.range(kColumns, 0), j = k.range(kRows, 1), sum = nullptr;
    for (int64_t slot = 1; slot <= operands; ++slot) {
      NodeRef x =
          k.load(k.param(slot, dtype, kRows * kColumns), k.g.add(k.g.mul(j, k.index(kColumns)), i));
      sum = sum ? k.g.add(sum, x) : x;
    }
    k.store(k.param(0, dtype, kRows * kColumns), k.g.add(k.g.mul(i, k.index(kRows)), j), sum);
    const Kernel plain = k.kernel(), better = optimize_kernel(plain, target, {});
    EXPECT_EQ(count(expect_same_on(target, better, numbers_of(plain)), Op::Trn), 64U);
  }
}

/// out[o, i, c] = in[o, c, i]: the copy of weights that an image's gradient reads, whose rows are
/// the window's places.
TEST(TransposeLoads, AreChosenForRowsShorterThanVectors) {
  const Target target = target_with_tiles();
  for (const int64_t columns : {4, 8, 9, 15}) {
    SCOPED_TRACE(columns);
    constexpr int64_t kRows = 64, kBlocks = 6;
    const int64_t size = kBlocks * kRows * columns;
    KernelBuilder k;
    NodeRef o = k.g.mul(k.range(kBlocks, 0), k.index(kRows * columns));
    NodeRef i = k.range(columns, 1), c = k.range(kRows, 2);
    NodeRef x =
        k.load(k.param(1, DType::F32, size), k.g.add(o, k.g.add(k.g.mul(c, k.index(columns)), i)));
    k.store(k.param(0, DType::F32, size), k.g.add(o, k.g.add(k.g.mul(i, k.index(kRows)), c)), x);
    const Kernel plain = k.kernel(), better = optimize_kernel(plain, target, {});
    const LinearProgram p = expect_same_on(target, better, buffers_of(plain));
    EXPECT_GE(count(p, Op::Trn), 8U);
  }
}

}  // namespace
}  // namespace weft::test
