// Stores that no worker owns: done by the first one.
#include "weft/base/small_vector.h"
#include "weft/lower/steps.h"

namespace weft::lower {

NodeRef guard_core(Graph& g, Analysis& of) {
  const RangeDeps& deps = of.deps();
  NodeRef sink = of.sink();
  if (deps.ranges().empty() || range_binding(deps.ranges()[0]) != Binding::Core) return sink;
  NodeRef first = g.alu(Op::Eq, {deps.ranges()[0], g.index(0)});
  SmallVector<NodeRef, 16> roots;
  for (NodeRef store : sink->src()) {
    SmallVector<NodeRef, 4> src(store->src());
    if (!deps.of(store).contains(0)) {
      if (src.size() > 3)
        src[3] = g.logical_and(src[3], first);
      else
        src.push_back(first);
    }
    roots.push_back(g.with_sources(store, src));
  }
  return g.with_sources(sink, roots);
}

}  // namespace weft::lower
