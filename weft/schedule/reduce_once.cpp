// Reductions of values that are the same all along an axis which the result keeps: reduced once.
// The gradient of a sum of a convolution, whose every output counts alike, is one.
#include <algorithm>

#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

/// Whether `x` only repeats itself along `axis`.
bool repeats_along(NodeRef x, size_t axis) {
  return x->rank() == 0 || (x->op == Op::Expand && x->src(0)->dim(axis) != x->dim(axis));
}

/// One of what `x` repeats along `axes`.
NodeRef one_of(Graph& g, NodeRef x, std::span<const size_t> axes) {
  if (x->rank() == 0) return x;
  std::vector<NodeRef> src(x->src().begin(), x->src().end());
  for (const size_t a : axes) src[1 + a] = g.index(1);
  return g.with_sources(x, src);
}

}  // namespace

NodeRef reduced_once(Graph& g, NodeRef reduce) {
  NodeRef x = reduce->src(0);
  const bool computes = is_alu(x->op);
  const std::span<const NodeRef> operands = computes ? x->src() : reduce->src().first(1);
  const auto reduced = reduce_axes(reduce);
  std::vector<size_t> axes;
  for (size_t a = 0; a < x->rank(); ++a)
    if (std::ranges::find(reduced, static_cast<int64_t>(a)) == reduced.end() &&
        std::ranges::all_of(operands, [a](NodeRef o) { return repeats_along(o, a); }))
      axes.push_back(a);
  if (axes.empty()) return reduce;
  std::vector<NodeRef> src;
  for (NodeRef o : operands) src.push_back(one_of(g, o, axes));
  const NodeRef once[] = {computes ? g.with_sources(x, src) : src[0]};
  return g.with_sources(reduce, once);
}

}  // namespace weft
