// Reductions in two steps, the first over fixed chunks that become an outer loop:
// - of very many elements to very few, which would have no parallel outer loop;
// - of products whose operands are read again for every tile of the result and do not fit a cache:
//   weight gradients, whose chunks of the batch do.
// The chunks depend on sizes alone, so the result does not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "weft/schedule/plan.h"

namespace weft {
namespace {

constexpr double kFewOutputs =
    32;  // as many outputs as this keep every core busy without splitting
constexpr double kManyElements =
    131072;  // per kernel; below it the second kernel costs more than it brings
constexpr int64_t kMaxChunks = 256;

constexpr double kCachedBytes = 768 << 10;  // of a chunk's operands: most of a second cache
constexpr double kReuse = 64;  // multiplications per element that make reading again the cost

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
Split best_split(NodeRef reduce, int64_t most) {
  Split best;
  for (int64_t a : reduce_axes(reduce)) {
    const auto axis = static_cast<size_t>(a);
    const int64_t chunks = largest_divisor(reduce->src(0)->dim(axis)->vmin, most);
    if (chunks > best.chunks) best = {axis, chunks};
  }
  return best;
}

double bytes(NodeRef n) { return largest_numel(n->shape->span()) * bits(n->dtype) / 8; }

/// What is read for a value: what its movement ops move.
NodeRef moved(NodeRef n) {
  while (is_movement(n->op) && n->op != Op::Gather) n = n->src(0);
  return n;
}

/// As many chunks as it takes for the operands of one to stay in a cache; 1 where they do anyway
/// or reading them is not what takes the time.
int64_t chunks_for_cache(NodeRef reduce) {
  NodeRef x = moved(reduce->src(0));
  if (fold_of(reduce) != Fold::Add || x->op != Op::Mul) return 1;
  NodeRef a = moved(x->src(0)), b = moved(x->src(1));
  const double operands = bytes(a) + bytes(b);
  const double products = largest_numel(x->shape->span());
  if (operands <= 2 * kCachedBytes || products * bits(x->dtype) / 8 < kReuse * operands) return 1;
  const double chunks = std::ceil(operands / kCachedBytes);
  // The sums of all chunks are written and read once; that has to be little beside the operands.
  if (bytes(reduce) * chunks > operands / 2) return 1;
  return static_cast<int64_t>(chunks);
}

int64_t chunks_for_cores(NodeRef reduce) {
  const bool few = largest_numel(reduce->shape->span()) < kFewOutputs;
  return few && largest_numel(reduce->src(0)->shape->span()) >= kManyElements ? kMaxChunks : 1;
}

NodeRef reduce_over(Graph& g, NodeRef x, Fold fold, std::vector<int64_t> axes) {
  axes.insert(axes.begin(), static_cast<int64_t>(fold));
  const NodeRef src[] = {x};
  return g.make({Op::Reduce, x->dtype, src, axes});
}

}  // namespace

NodeRef split_large_reduction(Graph& g, NodeRef n) {
  NodeRef x = n->src(0);
  if (!is_static(x)) return n;
  const Split split = best_split(n, std::max(chunks_for_cores(n), chunks_for_cache(n)));
  if (split.chunks < 2) return n;
  // The chosen axis becomes (chunks, rest), and the chunks the first axis: the first reduction
  // keeps them.
  std::vector<NodeRef> shape{x};
  std::vector<int64_t> order, first;
  for (size_t a = 0; a < x->rank(); ++a) {
    if (a == split.axis) {
      order.insert(order.begin(), static_cast<int64_t>(shape.size()) - 1);
      shape.push_back(g.index(split.chunks));
      shape.push_back(g.index(x->dim(a)->vmin / split.chunks));
    } else {
      shape.push_back(x->dim(a));
    }
    order.push_back(static_cast<int64_t>(shape.size()) - 2);
  }
  for (int64_t a : reduce_axes(n)) first.push_back(a + 1);
  const NodeRef chunked[] = {g.make({Op::Reshape, x->dtype, shape})};
  NodeRef outermost = g.make({Op::Permute, x->dtype, chunked, order});
  NodeRef partial =
      g.make(Op::Contiguous, x->dtype, {reduce_over(g, outermost, fold_of(n), first)});
  return reduce_over(g, partial, fold_of(n), {0});
}

}  // namespace weft
