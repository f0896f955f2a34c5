// A reduction of very many elements to very few has no parallel outer loop: it is done in two
// steps, the first over fixed chunks. The chunks depend on sizes alone, so the result does not
// depend on the number of threads.
#include <algorithm>

#include "weft/schedule/plan.h"

namespace weft {
namespace {

constexpr double kFewOutputs =
    32;  // as many outputs as this keep every core busy without splitting
constexpr double kManyElements =
    131072;  // per kernel; below it the second kernel costs more than it brings
constexpr int64_t kMaxChunks = 256;

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

/// The reduced axis that splits into most chunks, and how many.
struct Split {
  size_t axis = 0;
  int64_t chunks = 1;
};
Split best_split(NodeRef reduce) {
  Split best;
  for (int64_t a : reduce_axes(reduce)) {
    const auto axis = static_cast<size_t>(a);
    const int64_t chunks = largest_divisor(reduce->src(0)->dim(axis)->vmin, kMaxChunks);
    if (chunks > best.chunks) best = {axis, chunks};
  }
  return best;
}

NodeRef reduce_over(Graph& g, NodeRef x, Fold fold, std::vector<int64_t> axes) {
  axes.insert(axes.begin(), static_cast<int64_t>(fold));
  const NodeRef src[] = {x};
  return g.make({Op::Reduce, x->dtype, src, axes});
}

}  // namespace

NodeRef split_large_reduction(Graph& g, NodeRef n) {
  NodeRef x = n->src(0);
  if (!is_static(x) || largest_numel(n->shape->span()) >= kFewOutputs ||
      largest_numel(x->shape->span()) < kManyElements)
    return n;
  const Split split = best_split(n);
  if (split.chunks < 2) return n;
  // The chosen axis becomes (chunks, rest); the first reduction keeps the chunks.
  std::vector<NodeRef> src{x};
  std::vector<int64_t> first, second;
  size_t kept = 0;
  for (size_t a = 0; a < x->rank(); ++a) {
    const auto axes = reduce_axes(n);
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
    const auto shifted = static_cast<int64_t>(src.size()) - 1;
    if (a == split.axis) {
      second.push_back(static_cast<int64_t>(kept++));
      src.push_back(g.index(split.chunks));
      src.push_back(g.index(x->dim(a)->vmin / split.chunks));
      first.push_back(shifted + 1);
      continue;
    }
    src.push_back(x->dim(a));
    if (reduced)
      first.push_back(shifted);
    else
      ++kept;
  }
  NodeRef chunked = g.make({Op::Reshape, x->dtype, src});
  NodeRef partial = g.make(Op::Contiguous, x->dtype, {reduce_over(g, chunked, fold_of(n), first)});
  return reduce_over(g, partial, fold_of(n), second);
}

}  // namespace weft
