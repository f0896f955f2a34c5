// Copies with zeros around them.
#include "tests/optimize/kernels.h"

namespace weft {
namespace {

using namespace test;

/// Rows of `n` with zeros around them.
Kernel padded_kernel(int64_t n, int64_t before, int64_t after) {
  const int64_t rows = 5, wide = n + before + after;
  KernelBuilder b;
  Graph& g = b.g;
  NodeRef i = b.range(rows, 0), j = b.range(wide, 1), at = g.sub(j, g.index(before));
  NodeRef inside = g.logical_and(g.le(g.index(0), at), g.lt(at, g.index(n)));
  NodeRef x = b.load(b.param(1, DType::F32, rows * n), g.add(g.mul(i, g.index(n)), at), inside);
  b.store(b.param(0, DType::F32, rows * wide), g.add(g.mul(i, g.index(wide)), j), x);
  return b.kernel();
}

TEST(Borders, rows_with_a_border_are_copied_without_masks) {
  for (int64_t before : {0, 1, 3})
    for (int64_t after : {0, 1, 2})
      for (int64_t n : {5, 8, 13, 16, 40}) {
        const Kernel k = padded_kernel(n, before, after);
        const Kernel better = expect_kept(k, buffers_for(k));
        if (n < 8) continue;
        for (NodeRef x : Toposort(better.sink))
          EXPECT_TRUE(x->op != Op::Load || x->nsrc == 2) << n << ", " << before << ", " << after;
      }
}

// What is copied and both borders have loops side by side, each with vectors of its own.
TEST(Borders, wide_borders_are_vectors_too) {
  for (int64_t n : {16, 40, 90}) {
    const Kernel k = padded_kernel(n, 40, 50);
    const Kernel better = expect_kept(k, buffers_for(k));
    int vectors = 0;
    for (NodeRef x : Toposort(better.sink)) {
      EXPECT_TRUE(x->op != Op::Load || x->nsrc == 2) << n;
      vectors += x->op == Op::Range && range_binding(x) == Binding::Vector;
    }
    EXPECT_EQ(vectors, 3) << n;
  }
}

}  // namespace
}  // namespace weft
