#include "weft/optimize/loop_nest.h"

#include <functional>

#include "tests/optimize/kernels.h"
#include "weft/base/error.h"
#include "weft/optimize/loop_order.h"

namespace weft {
namespace {

using namespace optimize;
using namespace test;

/// Applies `steps` to a copy of the kernel and compares values; gives what was recorded.
std::vector<std::string> expect_same_after(const Kernel& kernel,
                                           const std::function<void(LoopNest&)>& steps) {
  Kernel changed{std::make_shared<Graph>(), nullptr, kernel.name};
  changed.sink = changed.graph->import(kernel.sink);
  const KernelInfo info(changed.sink);
  LoopNest nest(*changed.graph, info, true);
  steps(nest);
  changed.sink = nest.apply();
  verify_kernel(changed, "optimize");
  const Buffers buffers = buffers_for(kernel);
  const Buffers expected = run_kernel(kernel.sink, buffers),
                got = run_kernel(changed.sink, buffers);
  for (size_t slot = 0; slot < expected.size(); ++slot)
    for (size_t i = 0; i < expected[slot].size(); ++i)
      EXPECT_EQ(expected[slot][i].text(), got[slot][i].text()) << print_graph(changed.sink);
  return nest.applied();
}

Kernel product() { return matmul_kernel(10, 12, 8, false, false); }

TEST(LoopNest, SplitsThatDivide) {
  const auto notes = expect_same_after(product(), [](LoopNest& n) { n.split(2, 4, Tail::Exact); });
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0], "split r2 of 8 into 2 x 4 -> r3, r4");
}

TEST(LoopNest, TailsOverlapOrAreMasked) {
  for (Tail tail : {Tail::Overlap, Tail::Mask})
    for (int64_t factor : {3, 4, 7, 10})
      expect_same_after(product(), [&](LoopNest& n) { n.split(0, factor, tail); });
}

TEST(LoopNest, MaskedTailsInsideMaskedTails) {
  expect_same_after(product(), [](LoopNest& n) {
    const LoopNest::Parts p = n.split(0, 4, Tail::Mask);
    n.split(p.outer, 2, Tail::Mask);
    n.split(p.inner, 3, Tail::Mask);
    n.split(1, 5, Tail::Mask);
  });
}

/// 16 rows by as many columns as `count` says.
Kernel by_columns(const std::function<NodeRef(Graph&)>& count) {
  constexpr int64_t kRows = 16, kDepth = 8, kMost = 1000;
  KernelBuilder b;
  NodeRef i = b.range(kRows, 0), j = b.g.range(count(b.g), 1), k = b.range(kDepth, 2);
  NodeRef x =
      b.load(b.param(1, DType::F32, kRows * kDepth), b.g.add(b.g.mul(i, b.index(kDepth)), k));
  NodeRef y =
      b.load(b.param(2, DType::F32, kMost * kDepth), b.g.add(b.g.mul(j, b.index(kDepth)), k));
  b.store(b.param(0, DType::F32, kRows * kMost), b.g.add(b.g.mul(i, b.index(kMost)), j),
          b.reduce(Fold::Add, b.g.mul(x, y), {k}));
  return b.kernel();
}

/// Columns come in blocks that stay in a cache; the last one overlaps, where there is a whole one.
TEST(LoopNest, StreamsHaveBlocksWhereOneIsSurelyThere) {
  const auto blocked = [](const Kernel& kernel) {
    const KernelInfo info(kernel.sink);
    LoopNest nest(*kernel.graph, info, false);
    return block_stream(nest, info, 1, 1 << 10);
  };
  EXPECT_TRUE(blocked(by_columns([](Graph& g) { return g.index(1000); })));
  EXPECT_TRUE(blocked(by_columns([](Graph& g) { return g.variable("n", 500, 1000); })));
  EXPECT_FALSE(blocked(by_columns([](Graph& g) { return g.variable("n", 1, 1000); })));
}

/// Both operands in panels: what is left of a panel's row is taken before the next panel is.
TEST(LoopNest, PartsOfAPanelStayInsideOfPanels) {
  constexpr int64_t kPanels = 6, kRow = 16, kTiles = 5, kDepth = 32;
  KernelBuilder b;
  NodeRef panel = b.range(kPanels, 0), column = b.range(kRow, 1), tile = b.range(kTiles, 2),
          k = b.range(kDepth, 3);
  const auto at = [&](NodeRef outer, int64_t rows, NodeRef inner, int64_t row, NodeRef last) {
    return b.g.add(b.g.mul(b.g.add(b.g.mul(outer, b.index(rows)), inner), b.index(row)), last);
  };
  NodeRef x =
      b.load(b.param(1, DType::F32, kTiles * kDepth), b.g.add(b.g.mul(tile, b.index(kDepth)), k));
  NodeRef y =
      b.load(b.param(2, DType::F32, kPanels * kDepth * kRow), at(panel, kDepth, k, kRow, column));
  b.store(b.param(0, DType::F32, kPanels * kTiles * kRow), at(panel, kTiles, tile, kRow, column),
          b.reduce(Fold::Add, b.g.mul(x, y), {k}));
  const Kernel kernel = b.kernel();
  const KernelInfo info(kernel.sink);
  EXPECT_FALSE(info.in_a_line(0));
  EXPECT_TRUE(info.in_a_line(1));
  EXPECT_FALSE(info.in_a_line(2)) << "its steps are rows of x";
  const auto moves = expect_same_after(kernel, [&](LoopNest& nest) {
    nest.bind(nest.split(1, 4, Tail::Exact).inner, Binding::Unroll);
    order_loops(nest, KernelInfo(kernel.sink), 0);
  });
  ASSERT_EQ(moves.size(), 4U);
  EXPECT_EQ(moves[2], "move r0 inside r2");
  EXPECT_EQ(moves[3], "move r4 inside r0");
}

TEST(LoopNest, FusedLoopsRunOverAllPairs) {
  const auto notes =
      expect_same_after(product(), [](LoopNest& n) { n.bind(n.fuse(0, 1), Binding::Core); });
  EXPECT_EQ(notes, (std::vector<std::string>{"fuse r0, r1 -> r3", "bind r3 to core"}));
}

TEST(LoopNest, ReorderedTiles) {
  expect_same_after(product(), [](LoopNest& n) {
    const LoopNest::Parts rows = n.split(0, 3, Tail::Overlap);
    n.bind(rows.inner, Binding::Unroll);
    const LoopNest::Parts columns = n.vectorise(1, 4, Tail::Exact);
    n.move_before(columns.outer, rows.outer);
    n.move_after(2, rows.outer);
  });
}

TEST(LoopNest, WhatIsNotLegalIsRefused) {
  const Kernel k = product();
  const KernelInfo info(k.sink);
  LoopNest nest(*k.graph, info, false);
  EXPECT_THROW(nest.split(0, 3, Tail::Exact), InternalError);
  EXPECT_THROW(nest.split(2, 3, Tail::Mask), InternalError);
  EXPECT_THROW(nest.split(2, 3, Tail::Overlap), InternalError);
  EXPECT_THROW(nest.split(0, 11, Tail::Overlap), InternalError);
  EXPECT_THROW(nest.fuse(1, 1), InternalError);
}

TEST(LoopNest, RestsOfReductionsArePeeled) {
  for (int64_t size : {1, 3, 5, 8}) {
    const Kernel k = product();
    const KernelInfo info(k.sink);
    const Kernel peeled{k.graph, peel_reduction(*k.graph, info, 2, k.graph->index(8 / size * size)),
                        k.name};
    verify_kernel(peeled, "optimize");
    const Buffers buffers = buffers_for(k);
    EXPECT_EQ(run_kernel(k.sink, buffers)[0], run_kernel(peeled.sink, buffers)[0]);
  }
}

/// Folds over the first n of 100 elements of each row.
Kernel folds_of_any_length(Fold fold, int64_t least) {
  KernelBuilder b;
  NodeRef i = b.range(3, 0), k = b.g.range(b.g.variable("n", least, 100), 1);
  NodeRef x = b.load(b.param(1, DType::F32, 300), b.g.add(b.g.mul(i, b.index(100)), k));
  b.store(b.param(0, DType::F32, 3), i, b.reduce(fold, x, {k}));
  return b.kernel();
}

TEST(LoopNest, ReductionsEndInAVectorThatOverlaps) {
  for (const Fold fold : {Fold::Add, Fold::Max, Fold::Min})
    for (const int64_t size : {8, 16, 32}) {
      const Kernel k = folds_of_any_length(fold, 8);
      const KernelInfo info(k.sink);
      const Kernel peeled{k.graph, peel_vectors(*k.graph, info, 1, size, 8), k.name};
      verify_kernel(peeled, "optimize");
      EXPECT_EQ(KernelInfo(peeled.sink).ranges.size(), size == 8 ? 3u : 4u);
      const Buffers buffers = buffers_for(k);
      for (int64_t n = 8; n <= 100; ++n) {
        const Variables variables{{"n", n}};
        EXPECT_EQ(run_kernel(k.sink, buffers, variables)[0],
                  run_kernel(peeled.sink, buffers, variables)[0])
            << n << " by " << size;
      }
    }
}

}  // namespace
}  // namespace weft
