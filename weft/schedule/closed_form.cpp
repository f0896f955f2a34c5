// Closed forms of reductions: what need not be a loop.
#include <algorithm>

#include "weft/graph/fold.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"

namespace weft {
namespace {

bool depends_on_any(NodeRef n, std::span<const NodeRef> ranges) {
  for (NodeRef x : Toposort(n))
    if (x->op == Op::Range && contains(ranges, x)) return true;
  return false;
}

bool is_zero(NodeRef n) { return n->op == Op::Const && const_value(n).is_zero(); }

bool depends_on_all(NodeRef n, std::span<const NodeRef> ranges) {
  const Toposort nodes(n);
  return std::all_of(ranges.begin(), ranges.end(),
                     [&nodes](NodeRef r) { return contains(nodes.nodes(), r); });
}

/// sum of (valid ? sum of f : 0) is one sum of (valid ? f : 0). Where the inner sum is the same all
/// along a range of the outer, it would be computed again for each of its iterations.
NodeRef merge_sums(Graph& g, std::span<const NodeRef> src) {
  NodeRef value = src[0];
  NodeRef valid = nullptr;
  if (value->op == Op::Where && is_zero(value->src(2))) {
    valid = value->src(0);
    value = value->src(1);
  }
  if (value->op != Op::Reduce || fold_of(value) != Fold::Add) return nullptr;
  if (!depends_on_all(value, src.subspan(1))) return nullptr;
  const auto inner = value->src().subspan(1);
  std::vector<NodeRef> merged{valid ? g.where(valid, value->src(0), src[0]->src(2))
                                    : value->src(0)};
  merged.insert(merged.end(), src.begin() + 1, src.end());
  merged.insert(merged.end(), inner.begin(), inner.end());
  return build_reduce(g, Fold::Add, merged);
}

/// The value a comparison pins `range` to, as data of an integer dtype or as an index; null when it
/// does not.
NodeRef pinned(NodeRef condition, NodeRef range) {
  if (condition->op != Op::Eq) return nullptr;
  for (int side = 0; side < 2; ++side) {
    NodeRef a = condition->src(static_cast<size_t>(side)),
            b = condition->src(static_cast<size_t>(1 - side));
    const bool is_range = a == range || (a->op == Op::Cast && a->src(0) == range &&
                                         a->dtype != DType::Bool && !is_float(a->dtype));
    const NodeRef self[] = {range};
    if (is_range && !depends_on_any(b, self)) return b;
  }
  return nullptr;
}

/// Ands `valid` into every load below, so that a pinned index outside the range reads nothing.
NodeRef mask_loads(Graph& g, NodeRef n, NodeRef valid) {
  return rebuild(n, [&](NodeRef x, std::span<const NodeRef> sources) {
    std::vector<NodeRef> src(sources.begin(), sources.end());
    if (x->op == Op::Load && src.size() == 2)
      src.push_back(valid);
    else if (x->op == Op::Load)
      src[2] = g.logical_and(src[2], valid);
    return g.with_sources(x, src);
  });
}

/// -(c ? x : 0) as c ? -x : 0, which is the same to a sum: it begins with +0 and stays so.
NodeRef with_sign_inside(Graph& g, NodeRef value) {
  NodeRef x = value->op == Op::Neg ? value->src(0) : value;
  if (x == value || x->op != Op::Where || !is_zero(x->src(2))) return value;
  return g.where(x->src(0), g.alu(Op::Neg, {x->src(1)}), x->src(2));
}

/// sum over r of (r == e ? f(r) : 0)  ->  0 <= e < n ? f(e) : 0.
NodeRef select_one(Graph& g, std::span<const NodeRef> src) {
  NodeRef value = with_sign_inside(g, src[0]);
  if (value->op != Op::Where || !is_zero(value->src(2))) return nullptr;
  for (size_t i = 1; i < src.size(); ++i) {
    NodeRef range = src[i];
    NodeRef at = pinned(value->src(0), range);
    if (!at) continue;
    NodeRef index = at, in_range;
    if (at->dtype == DType::Index) {
      in_range = g.logical_and(g.le(g.index(0), at), g.lt(at, range->src(0)));
    } else {
      NodeRef wide = g.cast(at, DType::I64);
      in_range = g.logical_and(g.le(g.constant(Value::of(DType::I64, 0)), wide),
                               g.lt(wide, g.cast(range->src(0), DType::I64)));
      index = g.alu(Op::ToIndex, {at, range->src(0)});
    }
    NodeMap<NodeRef> at_range;
    at_range[range] = index;
    NodeRef chosen = mask_loads(g, substitute(g, value->src(1), at_range), in_range);
    std::vector<NodeRef> rest{g.where(in_range, chosen, value->src(2))};
    for (size_t j = 1; j < src.size(); ++j)
      if (j != i) rest.push_back(src[j]);
    return rest.size() == 1 ? folded_once(g, Fold::Add, rest[0]) : build_reduce(g, Fold::Add, rest);
  }
  return nullptr;
}

}  // namespace

NodeRef build_reduce(Graph& g, Fold fold, std::span<const NodeRef> src) {
  if (fold == Fold::Add) {
    if (NodeRef n = merge_sums(g, src)) return n;
    if (NodeRef n = select_one(g, src)) return n;
  }
  const int64_t ints[] = {static_cast<int64_t>(fold)};
  return g.make({Op::Reduce, src[0]->dtype, src, ints});
}

}  // namespace weft
