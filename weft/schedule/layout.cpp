// The memory order of intermediates. A buffer only kernels see may lie in any order; the axis along
// which most of its readers can run with unit stride goes innermost. For batched training that
// makes the batch axis innermost everywhere, so products, windows and pools all vectorise over it
// without gathers.
#include <algorithm>

#include "weft/schedule/plan.h"

namespace weft {
namespace {

constexpr int64_t kLanes = 16;  // an axis divisible by this many elements vectorises without a tail
constexpr double kWorthIt =
    1.3;  // how much better than a later axis an axis must be to move inwards

/// How well a reader that indexes an axis like this runs along it.
double stride_value(NodeRef index, const KernelPlan& reader) {
  if (index->op != Op::Range) return 0;
  const bool open = contains(reader.ranges, index);
  return open ? 1.0 : 0.7;
}

double divisibility(NodeRef dim) {
  if (dim->op != Op::Const || dim->vmin <= 0) return 0;
  return static_cast<double>(std::min(kLanes, dim->vmin & -dim->vmin));
}

/// The best innermost axis of a buffer, by its readers; the last axis when none is better.
size_t innermost_axis(Planner& plan, NodeRef n) {
  size_t best = n->rank() - 1;
  double best_score = -1;
  for (size_t a = n->rank(); a-- > 0;) {
    double score = 0;
    for (const Demand& d : plan.demands.at(n)) {
      if (!d.load) continue;
      score += stride_value(d.place.index[a], plan.kernels[static_cast<size_t>(d.kernel)]);
    }
    score *= divisibility(n->dim(a));
    if (score > best_score * kWorthIt) {
      best = a;
      best_score = score;
    }
  }
  return best;
}

}  // namespace

void choose_layouts(Planner& plan) {
  if (!plan.options.layouts) return;
  for (BufferPlan& b : plan.buffers) {
    NodeRef n = b.node;
    if (b.row_major || n->rank() < 2) continue;
    const size_t inner = innermost_axis(plan, n);
    if (inner == n->rank() - 1) continue;
    for (size_t a = 0; a < n->rank(); ++a)
      if (a != inner) b.order.push_back(a);
    b.order.push_back(inner);
  }
}

}  // namespace weft
