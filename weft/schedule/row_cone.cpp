#include "weft/schedule/row_cone.h"

#include <algorithm>
#include <cmath>

#include "weft/graph/fold.h"
#include "weft/graph/index_algebra.h"
#include "weft/schedule/estimate.h"

namespace weft {
namespace {

using Deps = RowCone::Deps;

constexpr size_t kMostRanges = 32;  // of an access's mask of ranges

constexpr Deps bit(size_t i) { return Deps{1} << i; }

bool is_moved(NodeRef n) { return is_movement(n->op) && n->op != Op::Gather; }

NodeRef below_views(NodeRef n) {
  while (is_moved(n) || n->op == Op::Cast || n->op == Op::Detach) n = n->src(0);
  return n;
}

class ConeFinder {
 public:
  ConeFinder(Graph& g, const GraphUses& uses) : g_(g), uses_(uses) {}

  std::optional<RowCone> run(size_t position) {
    if (!is_softmax_product(uses_.order[position]) || !start(uses_.order[position])) return {};
    for (size_t i = position; i-- > 0 && fits_;)
      if (c_.index.contains(uses_.order[i])) visit(uses_.order[i]);
    if (!fits_) return {};
    std::ranges::reverse(c_.computed);
    note_deps();
    if (!scored_.contains(exponential()) || !is_private()) return {};
    find_conditions();
    if (!keep_sums()) c_.conditions.clear();
    return std::move(c_);
  }

 private:
  // ---- the product

  /// sum(softmax * values, keys), with the softmax as a quotient of exponentials.
  bool is_softmax_product(NodeRef n) {
    if (!is_sum(n) || !is_static(n) || reduce_axes(n).size() != 1) return false;
    NodeRef x = n->src(0);
    if (x->op != Op::Mul || !is_static(x)) return false;
    for (size_t side : {0, 1}) {
      NodeRef quotient = below_views(x->src(side));
      if (quotient->op != Op::Div || quotient->src(0)->op != Op::Exp2) continue;
      c_.product = n;
      c_.weights = x->src(side);
      c_.values = x->src(1 - side);
      return true;
    }
    return false;
  }

  /// Ranges for the axes of the product; which of them are rows.
  bool start(NodeRef n) {
    NodeRef x = n->src(0);
    std::vector<NodeRef> at, whole;
    for (NodeRef d : n->shape->span()) at.push_back(add_range(d));
    c_.key = c_.ranges.size();
    const auto along = static_cast<size_t>(reduce_axes(n)[0]);
    size_t next = 0;
    for (size_t a = 0; a < x->rank(); ++a)
      whole.push_back(a == along ? add_range(x->dim(a)) : at[next++]);
    if (whole[along]->op != Op::Range) return false;
    const Deps left = deps_below(c_.weights, whole), right = deps_below(c_.values, whole);
    c_.row = n->rank();
    for (size_t a = 0; a < n->rank(); ++a)
      if ((left & ~right & bit(a)) != 0) c_.row = a;
    // What lies before the rows are other heads: none of it is an axis of the values alone.
    if (c_.row == n->rank() || (right & ~left & (bit(c_.row) - 1)) != 0) return false;
    if ((left & (bit(c_.key) - 1)) >> (c_.row + 1) != 0) return false;
    push(c_.weights, whole);
    push(c_.values, whole);
    return fits_;
  }

  Deps deps_below(NodeRef n, std::vector<NodeRef> index) {
    Access at{std::move(index), g_.boolean(true)};
    for (; is_moved(n); n = n->src(0)) at = map_access(g_, n, at);
    return deps_of(at.index);
  }

  NodeRef add_range(NodeRef size) {
    const bool one = is_int_const(size, 1);
    c_.ranges.push_back(one ? g_.index(0) : g_.range(size, static_cast<int64_t>(c_.ranges.size())));
    return c_.ranges.back();
  }

  Deps deps_of(std::span<const NodeRef> index) const {
    Deps found = 0;
    for (NodeRef n : Toposort(index))
      for (size_t r = 0; r < c_.ranges.size() && n->op == Op::Range; ++r)
        if (c_.ranges[r] == n) found |= bit(r);
    return found;
  }

  // ---- from the product down to what is read

  void push(NodeRef n, std::vector<NodeRef> index) {
    if (n->rank() == 0) index.clear();
    if (n->op == Op::Const) return;
    if (const auto* known = c_.index.find(n))
      fits_ = fits_ && *known == index;
    else
      c_.index.set(n, std::move(index));
  }

  void visit(NodeRef n) {
    const std::vector<NodeRef> at = c_.index.at(n);
    if (is_read(n, deps_of(at))) {
      c_.leaves.set(n, smallest_below(n, at));
      return;
    }
    c_.computed.push_back(n);
    if (n->op == Op::Reduce) return visit_reduce(n, at);
    if (n->op == Op::Iota) return;
    if (is_moved(n)) {
      Access source = map_access(g_, n, {at, g_.boolean(true)});
      fits_ = fits_ && is_int_const(source.valid, 1);
      return push(n->src(0), std::move(source.index));
    }
    for (NodeRef s : n->src()) push(s, at);
  }

  /// What is the same for all rows, or for all keys without being made of the scores, is computed
  /// once for all blocks.
  bool is_read(NodeRef n, Deps deps) const {
    if (n->op == Op::Iota) return false;
    const bool follows = is_moved(n) || is_alu(n->op) || n->op == Op::Reduce || n->op == Op::Detach;
    const bool by_row = (deps & bit(c_.row)) != 0, by_key = (deps & bit(c_.key)) != 0;
    if (!follows || n->dtype == DType::Index) return true;
    if (by_row && by_key) return false;
    const Deps others = deps & ~bit(c_.row) & ~bit(c_.key) & ~(bit(c_.row) - 1);
    return !by_row || others != 0;
  }

  /// The least that it is a view of.
  RowCone::Leaf smallest_below(NodeRef n, const std::vector<NodeRef>& at) {
    RowCone::Leaf best{n, at};
    Access access{at, g_.boolean(true)};
    for (; is_moved(n);) {
      access = map_access(g_, n, access);
      if (!is_int_const(access.valid, 1)) break;
      n = n->src(0);
      if (largest_numel(n->shape->span()) <= largest_numel(best.node->shape->span()) &&
          std::ranges::all_of(access.index, [&](NodeRef i) { return walks_one(i); }))
        best = {n, access.index};
    }
    return best;
  }

  /// Whether an index walks along one range at most within a head.
  bool walks_one(NodeRef index) const {
    int walked = 0;
    for (size_t r = c_.row; r < c_.ranges.size(); ++r) {
      Stride stride{};
      if (c_.ranges[r]->op != Op::Range) continue;
      if (!split_stride(g_, index, c_.ranges[r], stride)) return false;
      walked += stride.coefficient != 0;
    }
    return walked <= 1;
  }

  /// The axes it closes are those that others see its source along, or have ranges of their own.
  void visit_reduce(NodeRef n, std::span<const NodeRef> at) {
    NodeRef x = n->src(0);
    const std::vector<NodeRef>* known = c_.index.find(x);
    std::vector<NodeRef> index;
    size_t next = 0;
    const auto axes = reduce_axes(n);
    for (size_t a = 0; a < x->rank(); ++a) {
      const bool closed = std::ranges::find(axes, static_cast<int64_t>(a)) != axes.end();
      if (closed && !known && c_.ranges.size() == kMostRanges) fits_ = false;
      if (!fits_) return;
      index.push_back(!closed ? at[next++] : known ? (*known)[a] : add_range(x->dim(a)));
    }
    push(x, std::move(index));
  }

  // ---- what was found

  void note_deps() {
    for (NodeRef n : uses_.order)
      if (const RowCone::Leaf* leaf = c_.leaves.find(n)) c_.deps.set(n, deps_of(leaf->index));
    for (NodeRef n : c_.computed) {
      Deps deps = n->op == Op::Iota ? deps_of(c_.index.at(n)) : 0;
      bool scored = false;
      for (NodeRef s : n->src()) {
        if (const Deps* of = c_.deps.find(s)) deps |= *of;
        scored |= scored_.contains(s);
      }
      if (n->op == Op::Reduce) {
        const Deps closed = deps & ~deps_of(c_.index.at(n));
        scored |= closed != 0 && is_sum(n) && n->src(0)->op == Op::Mul && scores_at(deps & ~closed);
        deps &= ~closed;
      }
      if (scored) scored_.set(n, true);
      c_.deps.set(n, deps);
    }
  }
  bool scores_at(Deps deps) const { return (deps & bit(c_.row)) != 0 && (deps & bit(c_.key)) != 0; }

  /// Nobody else reads what is made of the scores: it will not be there.
  bool is_private() {
    NodeMap<int> inside;
    for (NodeRef n : c_.computed)
      for (NodeRef s : n->src()) ++inside[s];
    NodeRef x = c_.product->src(0);
    for (NodeRef s : {c_.weights, c_.values}) ++inside[s];
    if (uses_.count.at(x) != 1) return false;
    return std::ranges::all_of(c_.computed, [&](NodeRef n) {
      return !scored_.contains(n) || uses_.count.at(n) == inside[n];
    });
  }

  // ---- masks

  /// The integers among the computed values as index expressions.
  NodeMap<NodeRef> as_indices() {
    NodeMap<NodeRef> known;
    const auto source = [&](NodeRef s) -> NodeRef {
      if (s->op == Op::Const && is_int(s->dtype)) return g_.index(s->vmin);
      NodeRef* found = known.find(s);
      return found ? *found : nullptr;
    };
    for (NodeRef n : c_.computed) {
      if (!is_int(n->dtype)) continue;
      NodeRef made = nullptr, x = n->nsrc > 0 ? source(n->src(0)) : nullptr;
      if (n->op == Op::Iota) made = c_.index.at(n)[static_cast<size_t>(n->int_arg(0))];
      if (is_moved(n) || n->op == Op::Cast) made = x;
      if (n->op == Op::Neg && x) made = g_.mul(x, g_.index(-1));
      if (n->op == Op::Add && x && source(n->src(1))) made = g_.add(x, source(n->src(1)));
      if (made) known.set(n, made);
    }
    for (NodeRef n : c_.computed)
      for (NodeRef s : n->src())
        if (s->op == Op::Const && is_int(s->dtype)) known.set(s, g_.index(s->vmin));
    return known;
  }

  NodeRef exponential() const { return below_views(c_.weights)->src(0); }

  /// From the exponential down to the scores, as long as -inf makes it 0.
  void find_conditions() {
    const NodeMap<NodeRef> indices = as_indices();
    NodeRef n = exponential()->src(0);
    while (c_.deps.contains(n)) {
      if (c_.conditions.empty()) masked_.set(n, true);
      if (n->op == Op::Where && is_minus_infinity(n->src(2)))
        add_condition(n->src(0), indices), n = n->src(1);
      else if (is_moved(n) || n->op == Op::Detach || (n->op == Op::Cast && is_float(n->dtype)))
        n = n->src(0);
      else if (n->op == Op::Mul && n->src(1)->op == Op::Const && n->src(1)->dtype == n->dtype &&
               const_value(n->src(1)).as_double() > 0)
        n = n->src(0);
      else if (n->op == Op::Add && varies_along_keys(n->src(0)) != varies_along_keys(n->src(1)))
        n = n->src(varies_along_keys(n->src(0)) ? 0 : 1);
      else
        return;
    }
  }

  /// Whether what is folded over the keys is the same without those whose weight is 0.
  bool keep_sums() const {
    return std::ranges::all_of(c_.computed, [&](NodeRef n) {
      if (n->op != Op::Reduce || !varies_along_keys(n->src(0)) || varies_along_keys(n)) return true;
      return is_sum(n) ? n->src(0) == exponential()
                       : fold_of(n) == Fold::Max && masked_.contains(n->src(0));
    });
  }

  bool varies_along_keys(NodeRef n) const {
    const Deps* deps = c_.deps.find(n);
    return deps && (*deps & bit(c_.key)) != 0;
  }

  static bool is_minus_infinity(NodeRef n) {
    n = below_views(n);
    return n->op == Op::Const && is_float(n->dtype) && const_value(n).as_double() == -INFINITY;
  }

  void add_condition(NodeRef mask, const NodeMap<NodeRef>& indices) {
    while (is_moved(mask) || (mask->op == Op::Where && is_int_const(mask->src(1), 1) &&
                              is_int_const(mask->src(2), 0)))
      mask = mask->src(0);
    if (mask->op != Op::Le && mask->op != Op::Lt) return;
    const NodeRef *a = indices.find(mask->src(0)), *b = indices.find(mask->src(1));
    if (!a || !b) return;
    c_.conditions.push_back(g_.sub(g_.sub(*b, *a), g_.index(mask->op == Op::Lt ? 1 : 0)));
  }

  Graph& g_;
  const GraphUses& uses_;
  RowCone c_;
  NodeMap<bool> scored_;  // made of the scores
  NodeMap<bool> masked_;  // -inf where a condition fails
  bool fits_ = true;
};

}  // namespace

std::optional<RowCone> find_row_cone(Graph& g, const GraphUses& uses, size_t position) {
  return ConeFinder(g, uses).run(position);
}

}  // namespace weft
