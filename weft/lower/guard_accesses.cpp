// Prove or mask: an access whose index is not proved to lie inside its param gets a mask.
#include "weft/lower/steps.h"
#include "weft/rewrite/driver.h"
#include "weft/simplify/inequality.h"

namespace weft::lower {
namespace {

/// Of the param, or of what a group shares.
NodeRef size_of(NodeRef memory) {
  while (memory->op == Op::Barrier) memory = memory->src(0);
  return memory->src(0);
}

NodeRef guarded(Graph& g, NodeRef access) {
  NodeRef index = access->src(1), size = size_of(access->src(0));
  if (index->vmin >= 0 && index->vmax < size->vmin) return access;
  const size_t mask_at = access->op == Op::Store ? 3 : 2;
  NodeRef mask = access->nsrc > mask_at ? access->src(mask_at) : g.boolean(true);
  if (is_int_const(mask, 0) || Inequality(g, mask).inside(index, size)) return access;
  std::vector<NodeRef> src(access->src().begin(), access->src().end());
  if (src.size() <= mask_at) src.resize(mask_at + 1);
  NodeRef inside = g.logical_and(g.lt(g.index(-1), index), g.lt(index, size));
  src[mask_at] = g.logical_and(mask, inside);
  return g.with_sources(access, src);
}

}  // namespace

NodeRef guard_accesses(Graph& g, NodeRef sink) {
  return rebuild(sink, [&g](NodeRef n, std::span<const NodeRef> src) {
    NodeRef now = g.with_sources(n, src);
    return now->op == Op::Load || now->op == Op::Store ? guarded(g, now) : now;
  });
}

}  // namespace weft::lower
