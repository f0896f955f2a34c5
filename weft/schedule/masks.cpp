// Masks of loads: what the rest of the mask already proves goes, and an index needs to be right
// only where it is used.
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"
#include "weft/simplify/simplify.h"

namespace weft {

NodeRef simplify_masks(Graph& g, NodeRef sink) {
  return rebuild(sink, [&](NodeRef n, std::span<const NodeRef> sources) {
    std::vector<NodeRef> src(sources.begin(), sources.end());
    const bool access = n->op == Op::Load || n->op == Op::Store;
    const size_t valid = n->op == Op::Load ? 2 : 3;
    if (access && src.size() > valid) {
      const GatedIndex gated = simplify_with_valid(g, {src[1], src[valid]});
      src[1] = gated.index;
      src[valid] = gated.valid;
      if (src.size() == valid + 1 && is_int_const(gated.valid, 1)) src.pop_back();
      // What is never read is 0, and its index may be anything.
      if (n->op == Op::Load && is_int_const(gated.valid, 0))
        return g.constant(Value::of(n->dtype, 0));
    }
    return g.with_sources(n, src);
  });
}

}  // namespace weft
