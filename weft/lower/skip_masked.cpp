// Reductions of values that a mask makes the identity: where the mask is the same for whole inner
// loops, those loops run zero times instead of folding nothing. A padded convolution is then a
// plain product at every position of its window that lies inside.
//
// reduce.add(where(c, a * b, 0), k, i) with c independent of i becomes
// reduce.add(a * b, k, i') with i' = range(where(c, size, 0)). Bit for bit the same: a sum that
// starts with +0 never becomes -0, and adding +0 to anything else changes nothing.
#include <algorithm>
#include <iterator>
#include <optional>

#include "weft/graph/fold.h"
#include "weft/lower/range_deps.h"
#include "weft/lower/steps.h"
#include "weft/rewrite/driver.h"
#include "weft/rewrite/op_rules.h"
#include "weft/simplify/simplify.h"

namespace weft::lower {
namespace {

using Mask = std::vector<NodeRef>;  // conjuncts

/// A loop that runs only where `mask` holds.
struct Skip {
  NodeRef range;
  Mask mask;
};

class Skipper : public OpStep {
 public:
  Skipper(Graph& g, const RangeDeps& deps)
      : OpStep(g, deps.numbers()), deps_(deps), masks_(deps.ranges().size()) {}

  /// Whether there are such loops.
  bool find() {
    for (NodeRef n : deps_.order())
      if (is_loop_op(n->op)) consider(n);
    for (size_t r = 0; r < masks_.size(); ++r)
      if (masks_[r] && !masks_[r]->empty()) skips_.push_back({deps_.ranges()[r], *masks_[r]});
    std::vector<Skip> independent;
    std::copy_if(skips_.begin(), skips_.end(), std::back_inserter(independent),
                 [this](const Skip& s) { return !waits_for_another(s); });
    skips_ = std::move(independent);
    for (const Skip& s : skips_) shorter_.set(s.range, shorter(s));
    return !skips_.empty();
  }

  using Make = NodeRef (Skipper::*)(NodeRef);
  NodeRef make_other(NodeRef n) { return kept(n); }
  NodeRef make_range(NodeRef n) {
    const NodeRef* range = shorter_.find(n);
    return range ? *range : kept(n);
  }

  /// Loads in the loop happen only where it runs; those outside keep their whole mask.
  NodeRef make_load(NodeRef load) {
    const Skip* s = load->nsrc == 3 ? skip_inside(deps_.of(load)) : nullptr;
    if (!s) return kept(load);
    SmallVector<NodeRef, 8> src = sources(load);
    src[2] = without(load->src(2), *s);
    if (is_int_const(src[2], 1)) src.pop_back();
    return g_.make({Op::Load, load->dtype, src});
  }

  NodeRef make_reduce(NodeRef reduce) {
    const Skip* s = is_masked(reduce) ? skip_inside(deps_.set_of(listed_ranges(reduce))) : nullptr;
    SmallVector<NodeRef, 8> src = sources(reduce);
    if (s && src[0]->op == Op::Where)
      src[0] = g_.where(without(reduce->src(0)->src(0), *s), src[0]->src(1), src[0]->src(2));
    return g_.with_sources(reduce, src);
  }

 private:
  static bool is_masked(NodeRef reduce) {
    NodeRef v = reduce->op == Op::Reduce ? reduce->src(0) : nullptr;
    return v && v->op == Op::Where && v->src(2)->op == Op::Const &&
           const_value(v->src(2)) == fold_identity(fold_of(reduce), reduce->dtype);
  }

  /// One loop serves all that list its range: it ends early for all or for none.
  void consider(NodeRef n) {
    const LoopParts parts = loop_parts(n);
    const Skip skip = is_masked(n) ? best_skip(n, parts) : Skip{nullptr, {}};
    for (NodeRef r : parts.ranges) {
      const Mask mine = r == skip.range ? skip.mask : Mask();
      std::optional<Mask>& known = masks_[deps_.position(r)];
      known = !known || *known == mine ? mine : Mask();
    }
  }

  bool waits_for_another(const Skip& s) const {
    return std::any_of(skips_.begin(), skips_.end(), [&](const Skip& other) {
      return std::any_of(s.mask.begin(), s.mask.end(), [&](NodeRef c) {
        return deps_.of(c).contains(deps_.position(other.range));
      });
    });
  }

  /// Lanes and copies that share a loop may differ in the rest of the mask, not in this.
  bool is_one_value(NodeRef mask) const {
    const RangeSet& deps = deps_.of(mask);
    return (deps & deps_.bound_to(Binding::Vector)).empty() &&
           (deps & deps_.bound_to(Binding::Unroll)).empty();
  }

  /// The outermost loop inside all that most of the mask depends on.
  Skip best_skip(NodeRef n, const LoopParts& parts) const {
    const Mask mask = conjuncts(n->src(0)->src(0));
    const RangeSet own = deps_.set_of(parts.ranges);
    Skip best{nullptr, {}};
    own.each([&](size_t position) {
      NodeRef r = deps_.ranges()[position];
      if (range_binding(r) != Binding::Loop) return;
      Skip skip{r, {}};
      for (NodeRef c : mask)
        if (is_one_value(c) && (deps_.of(c) & own).last() < static_cast<int>(position))
          skip.mask.push_back(c);
      if (skip.mask.size() > best.mask.size()) best = std::move(skip);
    });
    return best;
  }

  NodeRef shorter(const Skip& s) {
    NodeRef size = g_.where(conjunction(g_, s.mask), s.range->src(0), g_.index(0));
    const NodeRef src[] = {size};
    return g_.make({Op::Range, s.range->dtype, src, s.range->ints()});
  }

  const Skip* skip_inside(const RangeSet& ranges) const {
    for (const Skip& s : skips_)
      if (ranges.contains(deps_.position(s.range))) return &s;
    return nullptr;
  }

  NodeRef without(NodeRef mask, const Skip& s) {
    Mask rest = conjuncts(mask);
    std::erase_if(rest, [&s](NodeRef c) { return contains(s.mask, c); });
    return substitute(g_, conjunction(g_, rest), shorter_);
  }

  const RangeDeps& deps_;
  std::vector<std::optional<Mask>> masks_;  // by range; empty where it has to run anyway
  std::vector<Skip> skips_;
  NodeMap<NodeRef> shorter_;  // by range: the one with no iterations where its mask does not hold
};

constexpr OpRule<Skipper::Make> kRules[] = {
    on(Op::Range, "range.skipped", &Skipper::make_range),
    on(Op::Load, "load.skipped", &Skipper::make_load),
    on(Op::Reduce, "reduce.skipped", &Skipper::make_reduce),
    otherwise("any.skipped", &Skipper::make_other),
};
constexpr OpRules kSkipRules("skip masked",
                             "Lowering: loops that only fold a mask's zeros run no iterations.",
                             kRules);

}  // namespace

NodeRef skip_masked(Graph& g, Analysis& of) {
  // A loop in which items meet has to run equally often in all items of a group.
  const RangeDeps& deps = of.deps();
  const bool waits = std::ranges::any_of(
      deps.order(), [](NodeRef n) { return n->op == Op::Barrier || n->op == Op::Shuffle; });
  if (waits) return of.sink();
  Skipper step(g, deps);
  return step.find() ? step.run(kSkipRules) : of.sink();
}

RuleSetRow skip_rules() { return kSkipRules.row(); }

}  // namespace weft::lower
