// What the cost model says about masks, windows and loops that carry state, and the tiles that
// follow from it.
#include "weft/optimize/tiling.h"
#include "tests/optimize/kernels.h"

namespace weft {
namespace {

using namespace test;

/// Sums of `taps` neighbours of 64 weights each, which are left out beyond a border or a diagonal.
double cycles_of_masked(bool border) {
  KernelBuilder b;
  NodeRef row = b.range(64, 0), i = b.range(64, 1), tap = b.range(3, 2);
  NodeRef moved = b.g.sub(b.g.add(i, tap), b.index(1));
  NodeRef inside = border ? b.g.logical_and(b.g.lt(b.index(-1), moved), b.g.lt(moved, b.index(64)))
                          : b.g.lt(i, row);
  NodeRef at = b.g.add(b.g.mul(row, b.index(3)), tap);
  NodeRef w = b.g.make(Op::Load, DType::F32, {b.param(1, DType::F32, 192), at, inside});
  b.store(b.param(0, DType::F32, 64 * 64), b.g.add(b.g.mul(row, b.index(64)), i),
          b.reduce(Fold::Add, w, {tap}));
  const Kernel kernel = b.kernel();
  const optimize::KernelInfo info(kernel.sink);
  const Target target = target_with_bits(512);
  optimize::Tiling tiling;
  tiling.ranges.resize(3, {});
  tiling.set(1, 16, 2);
  return optimize::CostModel(info, target).total(tiling);
}

TEST(Tiling, masks_are_tested_where_they_may_fail) {
  EXPECT_LT(3 * cycles_of_masked(true), cycles_of_masked(false));
}

optimize::Tiling chosen(const Kernel& kernel) {
  const optimize::KernelInfo info(kernel.sink);
  const Target target = target_with_bits(512);
  return optimize::choose_tiling(info, optimize::CostModel(info, target), target);
}

TEST(Tiling, windows_that_are_summed_share_what_they_cover) {
  KernelBuilder b;
  NodeRef c = b.range(16, 0), up = b.range(3, 1), i = b.range(16, 2), j = b.range(32, 3);
  NodeRef at =
      b.g.add(b.g.add(b.g.mul(c, b.index(18 * 32)), b.g.mul(b.g.add(i, up), b.index(32))), j);
  b.store(b.param(0, DType::F32, 48), b.g.add(b.g.mul(c, b.index(3)), up),
          b.reduce(Fold::Add, b.load(b.param(1, DType::F32, 16 * 18 * 32), at), {i, j}));
  const Kernel kernel = b.kernel();
  EXPECT_EQ(chosen(kernel).ranges[1].unroll, 3);
  expect_kept(kernel, buffers_for(kernel));
}

/// A loop that carries state goes from line to line where it runs down columns: wide pieces of each
/// row are worth more than many.
TEST(Tiling, scans_down_columns_take_several_vectors) {
  for (const bool down : {false, true}) {
    KernelBuilder b;
    const int64_t columns = 4096, rows = 256;
    NodeRef i = b.range(columns, 0), j = b.range(rows, 1);
    NodeRef at =
        down ? b.g.add(b.g.mul(j, b.index(columns)), i) : b.g.add(b.g.mul(i, b.index(rows)), j);
    NodeRef x = b.load(b.param(1, DType::F32, columns * rows), at);
    NodeRef sum = b.g.make(Op::Scan, DType::F32, {x, j}, {static_cast<int64_t>(Fold::Add)});
    b.store(b.param(0, DType::F32, columns * rows), at, sum);
    EXPECT_EQ(chosen(b.kernel()).ranges[0].unroll > 1, down);
  }
}

}  // namespace
}  // namespace weft
