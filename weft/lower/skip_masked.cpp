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
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/driver.h"
#include "weft/simplify/simplify.h"

namespace weft::lower {
namespace {

using Mask = std::vector<NodeRef>;  // conjuncts

/// A loop that runs only where `mask` holds.
struct Skip {
  NodeRef range;
  Mask mask;
};

class Skipper {
 public:
  Skipper(Graph& g, NodeRef sink) : g_(g), deps_(sink) {}

  NodeRef run() {
    masks_.resize(deps_.ranges().size());
    for (NodeRef n : deps_.order())
      if (is_loop_op(n->op)) consider(n);
    for (size_t r = 0; r < masks_.size(); ++r)
      if (masks_[r] && !masks_[r]->empty()) skips_.push_back({deps_.ranges()[r], *masks_[r]});
    std::vector<Skip> independent;
    std::copy_if(skips_.begin(), skips_.end(), std::back_inserter(independent),
                 [this](const Skip& s) { return !waits_for_another(s); });
    skips_ = std::move(independent);
    if (skips_.empty()) return deps_.order().back();
    for (const Skip& s : skips_) shorter_.set(s.range, shorter(s));
    return rebuild(deps_.order().back(),
                   [this](NodeRef n, std::span<const NodeRef> src) { return image(n, src); });
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

  NodeRef image(NodeRef n, std::span<const NodeRef> src) {
    if (const NodeRef* range = shorter_.find(n)) return *range;
    if (n->op == Op::Load && n->nsrc == 3) return relieved(n, src);
    if (n->op == Op::Reduce && is_masked(n)) return unmasked(n, src);
    return g_.with_sources(n, src);
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

  /// Loads in the loop happen only where it runs; those outside keep their whole mask.
  NodeRef relieved(NodeRef load, std::span<const NodeRef> src) {
    const Skip* s = skip_inside(deps_.of(load));
    if (!s) return g_.with_sources(load, src);
    NodeRef mask = without(load->src(2), *s);
    if (is_int_const(mask, 1)) return g_.make(Op::Load, load->dtype, {src[0], src[1]});
    return g_.make(Op::Load, load->dtype, {src[0], src[1], mask});
  }

  NodeRef unmasked(NodeRef reduce, std::span<const NodeRef> src) {
    const Skip* s = skip_inside(deps_.set_of(listed_ranges(reduce)));
    if (!s) return g_.with_sources(reduce, src);
    NodeRef mask = without(reduce->src(0)->src(0), *s), value = src[0];
    if (value->op != Op::Where) return g_.with_sources(reduce, src);
    std::vector<NodeRef> now(src.begin(), src.end());
    now[0] = g_.where(mask, value->src(1), value->src(2));
    return g_.with_sources(reduce, now);
  }

  Graph& g_;
  const RangeDeps deps_;
  std::vector<std::optional<Mask>> masks_;  // by range; empty where it has to run anyway
  std::vector<Skip> skips_;
  NodeMap<NodeRef> shorter_;  // by range: the one with no iterations where its mask does not hold
};

}  // namespace

NodeRef skip_masked(Graph& g, NodeRef sink) {
  // A loop in which items meet has to run equally often in all items of a group.
  const Toposort nodes(sink);
  const bool waits = std::any_of(nodes.begin(), nodes.end(), [](NodeRef n) {
    return n->op == Op::Barrier || n->op == Op::Shuffle;
  });
  return waits ? sink : Skipper(g, sink).run();
}

}  // namespace weft::lower
