#include "tests/trust/planted_rules.h"
#include "weft/rewrite/driver.h"

// As planted_support.cpp does with the rules: a step of lowering that may be left out.
#define skip_masked compilers_skip_masked
#include "weft/lower/skip_masked.cpp"
#undef skip_masked

namespace weft {

namespace lower {
NodeRef skip_masked(Graph& g, Analysis& of) {
  return test::wild(g,
                    test::doubled(g, compilers_skip_masked(g, of), test::PlantedPass::SkipMasked));
}
}  // namespace lower

NodeRef test::doubled(Graph& g, NodeRef sink, PlantedPass by) {
  if (!is_planted(by)) return sink;
  NodeMap<NodeRef> images;
  for (NodeRef n : Toposort(sink)) {
    if (n->op != Op::Store) continue;
    std::vector<NodeRef> src(n->src().begin(), n->src().end());
    src[2] = g.alu(Op::Add, {src[2], src[2]});
    images[n] = g.with_sources(n, src);
  }
  return substitute(g, sink, images);
}

NodeRef test::wild(Graph& g, NodeRef sink) {
  if (!is_planted(PlantedPass::Wild)) return sink;
  NodeMap<NodeRef> images;
  for (NodeRef n : Toposort(sink)) {
    if (n->op != Op::Load) continue;
    std::vector<NodeRef> src(n->src().begin(), n->src().end());
    src[1] = g.add(src[1], g.index(int64_t{1} << 44));
    images[n] = g.with_sources(n, src);
  }
  return substitute(g, sink, images);
}

}  // namespace weft
