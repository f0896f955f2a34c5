// Stores that no worker owns: done by the first one.
#include "weft/base/small_vector.h"
#include "weft/lower/steps.h"
#include "weft/rewrite/driver.h"

namespace weft::lower {

namespace {

/// The outermost loop around `store` that is around none of the stores that workers own; null where
/// there is none.
NodeRef own_loop(NodeRef store, const RangeDeps& deps, const RangeSet& of_workers) {
  for (size_t r = 1; r < deps.ranges().size(); ++r)
    if (deps.of(store).contains(r) && !of_workers.contains(r) &&
        range_binding(deps.ranges()[r]) == Binding::Loop)
      return deps.ranges()[r];
  return nullptr;
}

}  // namespace

/// The others do not even run its loops, such as the remainder of one that they share.
NodeRef guard_core(Graph& g, Analysis& of) {
  const RangeDeps& deps = of.deps();
  NodeRef sink = of.sink();
  if (deps.ranges().empty() || range_binding(deps.ranges()[0]) != Binding::Core) return sink;
  NodeRef first = g.alu(Op::Eq, {deps.ranges()[0], g.index(0)});
  RangeSet of_workers;
  for (NodeRef store : sink->src())
    if (deps.of(store).contains(0)) of_workers |= deps.of(store);
  SmallVector<NodeRef, 16> roots;
  for (NodeRef store : sink->src()) {
    if (deps.of(store).contains(0)) {
      roots.push_back(store);
    } else if (NodeRef loop = own_loop(store, deps, of_workers)) {
      NodeMap<NodeRef> shorter;
      shorter[loop] = g.range(g.where(first, loop->src(0), g.index(0)), range_id(loop));
      roots.push_back(substitute(g, store, shorter));
    } else {
      SmallVector<NodeRef, 4> src(store->src());
      if (src.size() > 3)
        src[3] = g.logical_and(src[3], first);
      else
        src.push_back(first);
      roots.push_back(g.with_sources(store, src));
    }
  }
  return g.with_sources(sink, roots);
}

}  // namespace weft::lower
