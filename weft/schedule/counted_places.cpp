// A counting sort's pass in one loop: what counting finds is the place where an element goes, and
// nobody else asks. (Knuth, The Art of Computer Programming 3, 5.2, algorithm D, whose step D6
// looks a place up, moves the record there and counts.)
#include "weft/graph/index_algebra.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"

namespace weft {

namespace {

/// The CumCount that `places` is made of, element by element.
NodeRef counted_in(NodeRef places) {
  NodeRef n = places;
  while (n->op == Op::Reshape || n->op == Op::Detach || is_alu(n->op)) {
    NodeRef next = nullptr;
    for (NodeRef s : n->src()) {
      if (s->op == Op::Const || s->dtype == DType::Index || s->rank() == 0) continue;
      if (next) return nullptr;
      next = s;
    }
    if (!next) return nullptr;
    n = next;
  }
  return n->op == Op::CumCount ? n : nullptr;
}

}  // namespace

/// The CumCount by which a Scatter may place elements as it counts them.
NodeRef Planner::counted_places(NodeRef scatter) const {
  // Items of a grid would each go through a whole row, where they place single elements otherwise.
  if (scatter->op != Op::Scatter || target.groups.exist() || !options.fuse) return nullptr;
  // Beyond the caches stores wait for memory, and counts would wait behind them in one queue (2^22
  // of u64, Zen 4, two cores: 41 ms for three passes, 38 by two kernels each).
  const double bytes = largest_numel(scatter->shape->span()) * bits(scatter->dtype) / 8;
  if (2 * bytes > static_cast<double>(target.machine.l3().bytes)) return nullptr;
  const bool distinct = scatter->int_arg(2) != 0;
  NodeRef counted = distinct ? counted_in(scatter->src(1)) : nullptr;
  return counted && is_static(counted) && is_static(scatter->src(1)) ? counted : nullptr;
}

/// Where the elements that a Scatter places are, in the loops of its kernel.
Access Planner::placed_access(NodeRef scatter, const KernelPlan& kernel) {
  const Access at{kernel.ranges, g.boolean(true)};
  NodeRef counted = counted_places(scatter);
  if (!counted || counted->shape == scatter->src(1)->shape) return at;
  return map_access(g, reshaped(g, scatter->src(1), counted->shape->span()), at);
}

/// Whether a kernel that wants `counted` goes through it once, in order, to place something: it may
/// count on the way.
bool Planner::counts_on_the_way(NodeRef counted, const std::vector<Use>& wanted) const {
  if (wanted.size() != 1 || demands_.whole.contains(counted)) return false;
  const Use& d = wanted[0];
  const KernelPlan& k = kernels[static_cast<size_t>(d.kernel)];
  return counted_places(k.root) == counted && is_int_const(d.access.valid, 1) &&
         d.access.index == k.ranges && !in_reduce(d);
}

}  // namespace weft
