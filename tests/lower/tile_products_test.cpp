// Sums of products of words over tile ranges: products of tiles where the target has them, loops
// where not.
#include <algorithm>

#include "tests/lower/tile_kernel.h"
#include "weft/optimize/optimize.h"

namespace weft::test {
namespace {

size_t count(const LinearProgram& p, Op op) {
  return static_cast<size_t>(
      std::count_if(p.code.begin(), p.code.end(), [op](NodeRef n) { return n->op == op; }));
}

Buffers words_for(const TileKernel& k) {
  Buffers b(3);
  uint32_t state = 5;
  for (const size_t slot : {size_t{1}, size_t{2}})
    for (int64_t i = 0; i < k.words(slot); ++i) {
      state = state * 1664525 + 1013904223;
      b[slot].push_back(Value::of(DType::U32, int64_t{state >> 3}));
    }
  b[0].assign(static_cast<size_t>(k.m * k.n), Value::of(DType::I32, 0));
  return b;
}

TEST(TileProducts, AreOfTilesWhereTheTargetHasThem) {
  const TileKernel k{16, 16, 32};
  for (const bool swapped : {false, true}) {
    const LinearProgram p = lower_kernel(k.bound(swapped), target_with_tiles());
    EXPECT_EQ(count(p, swapped ? Op::TileDot4Signed : Op::TileDot4), 1U);
    EXPECT_EQ(count(p, Op::TileLoad), 2U);
    EXPECT_EQ(count(p, Op::Dot4), 0U);
    EXPECT_EQ(p.flops, 2 * 4 * 16 * 16 * 32);
    for (size_t slot = 0; slot < 3; ++slot) {
      EXPECT_EQ(p.params[slot].read, slot > 0);
      EXPECT_EQ(p.params[slot].written, slot == 0);
    }
  }
}

TEST(TileProducts, AreLoopsElsewhere) {
  const TileKernel k{16, 16, 32};
  for (const bool swapped : {false, true}) {
    const Kernel kernel = k.bound(swapped);
    const Buffers in = words_for(k);
    const LinearProgram p = lower_kernel(kernel, make_target("interp", CpuFeatures{}, 1));
    EXPECT_EQ(count(p, Op::TileLoad), 0U);
    const Buffers want = run_kernel(kernel.sink, in), got = run_program(p, in);
    for (size_t i = 0; i < want[0].size(); ++i) ASSERT_EQ(want[0][i].text(), got[0][i].text());
  }
}

// Of each word four products and as many additions, whatever computes them.
TEST(TileProducts, CountAsWork) {
  CpuFeatures cpu = target_with_tiles().cpu;
  for (CpuFeature f : {CpuFeature::AmxTile, CpuFeature::AmxInt8}) cpu.set(f, false);
  const Target target = make_target("x86", cpu, 2);
  const Kernel better = optimize_kernel(TileKernel{16, 16, 32}.plain(false), target, {});
  const LinearProgram p = lower_kernel(better, target);
  EXPECT_GT(count(p, Op::Dot4), 0U);
  EXPECT_EQ(p.flops, 2 * 4 * 16 * 16 * 32);
}

// Whatever is no whole tiles, or lies otherwise, is computed as before.
TEST(TileProducts, AreChosenForWholeTiles) {
  const auto bound = [](const Kernel& kernel) {
    const Kernel better = optimize_kernel(kernel, target_with_tiles(), {});
    size_t n = 0;
    for (NodeRef x : Toposort(better.sink))
      n += x->op == Op::Range && range_binding(x) == Binding::Tile;
    return n;
  };
  for (const bool swapped : {false, true}) {
    EXPECT_EQ(bound(TileKernel{64, 48, 32}.plain(swapped)), 2U);
    EXPECT_EQ(bound(TileKernel{37, 19, 16}.plain(swapped)), 2U);  // tiles overlap
    EXPECT_EQ(bound(TileKernel{64, 48, 33}.plain(swapped)), 0U);
    EXPECT_EQ(bound(TileKernel{15, 48, 32}.plain(swapped)), 0U);
    EXPECT_EQ(bound(TileKernel{64, 15, 32}.plain(swapped)), 0U);
  }
}

}  // namespace
}  // namespace weft::test
