// The remainder of a reduction goes on with the accumulators that the main loop leaves. With sets
// of their own, both are alive at once: a product's tile that fills the registers would be spilled
// in every iteration.
#include <algorithm>

#include "weft/graph/fold.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/target/target.h"

namespace weft::lower {
namespace {

class FoldContinuer {
 public:
  FoldContinuer(Graph& g, const RangeDeps& deps, const Target& target)
      : g_(g), deps_(deps), target_(target), uses_(deps), done_(deps) {
    for (NodeRef n : deps.order()) {
      for (NodeRef s : n->src()) ++uses_[s];
      if (n->op == Op::Loop) next_loop_ = std::max(next_loop_, n->int_arg(0) + 1);
    }
  }

  NodeRef run() {
    for (NodeRef n : deps_.order()) done_[n] = is_folded_of_two(n) ? continued(n) : rebuilt(n);
    return done_[deps_.order().back()];
  }

 private:
  /// fold(reduce(x), reduce(y)) that nobody else reads, which run in the same loops.
  bool is_folded_of_two(NodeRef n) const {
    if (n->nsrc != 2 || !is_alu(n->op)) return false;
    NodeRef a = n->src(0), b = n->src(1);
    return a != b && folds_by(a, n) && folds_by(b, n) && deps_.of(a) == deps_.of(b) &&
           first_range(a) != first_range(b);
  }
  bool folds_by(NodeRef x, NodeRef n) const {
    return x->op == Op::Reduce && fold_op(fold_of(x)) == n->op && x->dtype == n->dtype &&
           x->lanes == n->lanes && uses_[x] == 1;
  }
  size_t first_range(NodeRef reduce) const { return deps_.position(loop_parts(reduce).ranges[0]); }

  /// The remainder's range comes last.
  NodeRef continued(NodeRef n) {
    NodeRef main = n->src(0), rest = n->src(1);
    if (first_range(rest) < first_range(main)) std::swap(main, rest);
    const LoopParts parts = loop_parts(rest);
    const int64_t id = next_loop_++, carry[] = {0, id}, loop[] = {id, 0, 1, 0};
    NodeRef sum = g_.intern({Op::Carry, n->dtype, {}, carry, {}, n->lanes});
    for (NodeRef v : parts.values) {
      NodeRef value = splat(g_, done_[v], n->lanes);
      const Fold fold = fold_of(rest);
      sum = fold_in(g_, fold, sum, value, may_contract(target_, fold, value));
    }
    SmallVector<NodeRef, 8> src{done_[main], sum};
    for (NodeRef r : parts.ranges) src.push_back(done_[r]);
    const NodeRef both[] = {g_.intern({Op::Loop, n->dtype, src, loop, {}, n->lanes})};
    const int64_t first[] = {0};
    return g_.intern({Op::Get, n->dtype, both, first, {}, n->lanes});
  }

  NodeRef rebuilt(NodeRef n) {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(done_[s]);
    return g_.with_sources(n, src);
  }

  Graph& g_;
  const RangeDeps& deps_;
  const Target& target_;
  PerNode<int> uses_;
  PerNode<NodeRef> done_;
  int64_t next_loop_ = 0;
};

bool is_peeled(NodeRef n) {
  return n->nsrc == 2 && is_alu(n->op) && n->src(0)->op == Op::Reduce &&
         n->src(1)->op == Op::Reduce;
}

}  // namespace

NodeRef continue_folds(Graph& g, Analysis& of, const Target& target) {
  // There nothing is peeled, and a sum of two sums keeps the order that is written.
  if (target.canonical) return of.sink();
  if (std::ranges::none_of(of.order().nodes(), is_peeled)) return of.sink();
  return FoldContinuer(g, of.deps(), target).run();
}

}  // namespace weft::lower
