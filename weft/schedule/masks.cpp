// Masks of loads: what the rest of the mask already proves goes, and an index needs to be right
// only where it is used.
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"
#include "weft/simplify/simplify.h"

namespace weft {

NodeRef simplify_masks(Graph& g, NodeRef sink) {
  return rebuild(sink, [&](NodeRef n, std::span<const NodeRef> sources) {
    std::vector<NodeRef> src(sources.begin(), sources.end());
    const bool masked = (n->op == Op::Load && n->nsrc == 3) || (n->op == Op::Store && n->nsrc == 4);
    if (masked) {
      const GatedIndex gated = simplify_with_valid(g, {src[1], src.back()});
      src[1] = gated.index;
      src.back() = gated.valid;
      if (is_int_const(gated.valid, 1)) src.pop_back();
      // What is never read is 0, and its index may be anything.
      if (n->op == Op::Load && is_int_const(gated.valid, 0))
        return g.constant(Value::of(n->dtype, 0));
    }
    return g.with_sources(n, src);
  });
}

}  // namespace weft
