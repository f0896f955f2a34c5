// Masks of loads: what the rest of the mask already proves goes, and an index needs to be right
// only where it is used.
#include "weft/schedule/build.h"
#include "weft/simplify/simplify.h"

namespace weft {

NodeRef simplify_masks(Graph& g, NodeRef sink) {
  NodeMap<NodeRef> done;
  std::vector<NodeRef> src;
  for (NodeRef n : Toposort(sink)) {
    src.clear();
    for (NodeRef s : n->src()) src.push_back(done.at(s));
    const bool masked = (n->op == Op::Load && n->nsrc == 3) || (n->op == Op::Store && n->nsrc == 4);
    if (masked) {
      const GatedIndex gated = simplify_with_valid(g, {src[1], src.back()});
      src[1] = gated.index;
      src.back() = gated.valid;
      if (is_int_const(gated.valid, 1)) src.pop_back();
    }
    done[n] = g.with_sources(n, src);
  }
  return done.at(sink);
}

}  // namespace weft
