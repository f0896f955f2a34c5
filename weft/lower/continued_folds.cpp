// The remainder of a reduction goes on with the accumulators that the main loop leaves. With sets
// of their own, both are alive at once: a product's tile that fills the registers would be spilled
// in every iteration.
#include <algorithm>

#include "weft/graph/fold.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/op_rules.h"
#include "weft/target/target.h"

namespace weft::lower {
namespace {

class FoldContinuer : public OpStep {
 public:
  FoldContinuer(Graph& g, const RangeDeps& deps, const Target& target)
      : OpStep(g, deps.numbers()), deps_(deps), target_(target), uses_(deps) {
    for (NodeRef n : deps.order()) {
      for (NodeRef s : n->src()) ++uses_[s];
      if (n->op == Op::Loop) next_loop_ = std::max(next_loop_, n->int_arg(0) + 1);
    }
  }

  using Make = NodeRef (FoldContinuer::*)(NodeRef);
  NodeRef make_fold(NodeRef n) { return is_folded_of_two(n) ? continued(n) : kept(n); }
  NodeRef make_other(NodeRef n) { return kept(n); }

 private:
  /// fold(reduce(x), reduce(y)) that nobody else reads, which run in the same loops.
  bool is_folded_of_two(NodeRef n) const {
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
      NodeRef value = splat(g_, image(v), n->lanes);
      const Fold fold = fold_of(rest);
      sum = fold_in(g_, fold, sum, value, may_contract(target_, fold, value));
    }
    SmallVector<NodeRef, 8> src{image(main), sum};
    for (NodeRef r : parts.ranges) src.push_back(image(r));
    const NodeRef both[] = {g_.intern({Op::Loop, n->dtype, src, loop, {}, n->lanes})};
    const int64_t first[] = {0};
    return g_.intern({Op::Get, n->dtype, both, first, {}, n->lanes});
  }

  const RangeDeps& deps_;
  const Target& target_;
  PerNode<int> uses_;
  int64_t next_loop_ = 0;
};

constexpr OpRule<FoldContinuer::Make> kRules[] = {
    on(Op::Add, "add.continued", &FoldContinuer::make_fold),
    on(Op::Mul, "mul.continued", &FoldContinuer::make_fold),
    on(Op::Max, "max.continued", &FoldContinuer::make_fold),
    on(Op::Min, "min.continued", &FoldContinuer::make_fold),
    on(Op::And, "and.continued", &FoldContinuer::make_fold),
    on(Op::Or, "or.continued", &FoldContinuer::make_fold),
    otherwise("any.continued", &FoldContinuer::make_other),
};
constexpr OpRules kContinueRules(
    "continue folds",
    "Lowering: a second reduction that is folded with a first one goes "
    "on with its accumulators.",
    kRules);

bool is_peeled(NodeRef n) {
  return n->nsrc == 2 && is_alu(n->op) && n->src(0)->op == Op::Reduce &&
         n->src(1)->op == Op::Reduce;
}

}  // namespace

NodeRef continue_folds(Graph& g, Analysis& of, const Target& target) {
  // There nothing is peeled, and a sum of two sums keeps the order that is written.
  if (target.canonical) return of.sink();
  if (std::ranges::none_of(of.order().nodes(), is_peeled)) return of.sink();
  return FoldContinuer(g, of.deps(), target).run(kContinueRules);
}

RuleSetRow continue_rules() { return kContinueRules.row(); }

}  // namespace weft::lower
