#include "weft/schedule/row_cone.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/graph/fold.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/tuple.h"
#include "weft/schedule/estimate.h"

namespace weft {
namespace {

using Deps = RowCone::Deps;

constexpr size_t kMostRanges = 32;  // of an access's mask of ranges

constexpr size_t kMostLookedAt = 16;  // nodes between a sum and what is known

constexpr Deps bit(size_t i) { return Deps{1} << i; }

bool is_moved(NodeRef n) { return is_movement(n->op) && n->op != Op::Gather; }

NodeRef below_views(NodeRef n) {
  while (is_moved(n) || n->op == Op::Cast) n = n->src(0);
  return n;
}

double numel(NodeRef n) { return largest_numel(n->shape->span()); }

Deps deps_of(const RowCone& c, std::span<const NodeRef> index) {
  Deps found = 0;
  for (NodeRef n : Toposort(index))
    for (size_t r = 0; r < c.ranges.size() && n->op == Op::Range; ++r)
      if (c.ranges[r] == n) found |= bit(r);
  return found;
}

// ---- softmaxes and their products

/// An exponential that is added up along an axis, and the products of what is made of it.
struct Softmax {
  NodeRef exponential;
  size_t axis;
  std::vector<ScoreProduct> products;
  std::vector<size_t> positions = {};  ///< of these
};

/// Follows exponentials to the products that they end in.
class SoftmaxFinder {
 public:
  SoftmaxFinder(const GraphUses& uses, double scores) {
    for (NodeRef n : uses.order) start(n, scores);
    for (size_t i = 0; i < uses.order.size() && !found.empty(); ++i) visit(uses.order[i], i);
  }
  std::vector<Softmax> found;

 private:
  void visit(NodeRef n, size_t position) {
    const size_t* owner = owner_of_sources(n);
    if (!owner || owner_.contains(n)) return;
    if (is_product(n, *owner)) {
      found[*owner].positions.push_back(position);
    } else if (is_moved(n) || is_alu(n->op) || n->op == Op::Reduce) {
      owner_.set(n, *owner);
    }
  }

  void start(NodeRef sum, double scores) {
    if (!is_sum(sum) || sum->src(0)->op != Op::Exp2) return;
    NodeRef e = sum->src(0);
    if (reduce_axes(sum).size() != 1 || owner_.contains(e)) return;
    if (numel(e) <= scores) return;
    owner_.set(e, found.size());
    found.push_back({e, static_cast<size_t>(reduce_axes(sum)[0]), {}});
  }

  const size_t* owner_of_sources(NodeRef n) const {
    const size_t* owner = nullptr;
    for (size_t i = 0; i < n->nsrc; ++i)
      if (const size_t* of = owner_.find(n->src(i))) owner = of;
    return owner;
  }

  bool is_product(NodeRef n, size_t owner) {
    Softmax& s = found[owner];
    if (!is_sum(n) || reduce_axes(n).size() != 1) return false;
    NodeRef x = n->src(0);
    if (x->op != Op::Mul || numel(x) <= numel(s.exponential)) return false;
    for (size_t side : {0, 1}) {
      NodeRef base = below_views(x->src(side));
      if (!owner_.contains(base) || numel(base) != numel(s.exponential)) continue;
      s.products.push_back({n, x->src(side), x->src(1 - side), {}});
      return true;
    }
    return false;
  }

  NodeMap<size_t> owner_;  // the number of the softmax that it is made of
};

/// Products one computes at a time: those of a gradient come after the attention's own, which it
/// depends on.
class Stages {
 public:
  Stages(const GraphUses& uses, const Softmax& s) : s_(s) {
    if (s.products.size() < 2) {
      of.push_back(s.products);
      return;
    }
    const size_t first = s.positions.front();
    for (size_t i = first; i <= s.positions.back(); ++i) visit(uses.order[i]);
  }
  std::vector<std::vector<ScoreProduct>> of;

 private:
  void visit(NodeRef n) {
    size_t stage = 0;
    for (size_t i = 0; i < evaluated_sources(n); ++i)
      if (const size_t* before = stage_.find(n->src(i))) stage = std::max(stage, *before);
    const auto product = std::ranges::find(s_.products, n, &ScoreProduct::sum);
    if (product != s_.products.end()) {
      if (of.size() <= stage) of.resize(stage + 1);
      of[stage++].push_back(*product);
    }
    if (stage > 0) stage_.set(n, stage);
  }

  const Softmax& s_;
  NodeMap<size_t> stage_;
};

// ---- one cone

class ConeFinder {
 public:
  ConeFinder(Graph& g, const GraphUses& uses, const Softmax& softmax)
      : g_(g), uses_(uses), axis_(softmax.axis) {
    c_.exponential = softmax.exponential;
  }

  /// Of products, the `first` of which adds up keys.
  std::optional<RowCone> run(std::vector<ScoreProduct> products, size_t first) {
    std::swap(products[0], products[first]);
    c_.products = std::move(products);
    if (!start(c_.products[0])) return {};
    visit_all();
    const auto* exponential = c_.index.find(c_.exponential);
    if (!fits_ || !exponential || (*exponential)[axis_] != c_.ranges[c_.key]) return {};
    for (size_t i = 1; i < c_.products.size() && fits_; ++i) add(c_.products[i]);
    visit_all();
    if (!fits_) return {};
    c_.computed.clear();
    for (NodeRef n : uses_.order)
      if (const bool* computed = visited_.find(n); computed && *computed) c_.computed.push_back(n);
    note_deps();
    if (!c_.scored.contains(c_.exponential) || !has_known_sizes()) return {};
    find_conditions();
    if (!keep_sums()) c_.conditions.clear();
    return std::move(c_);
  }

 private:
  // ---- the products

  /// Ranges for the axes of the first product; which of them are rows.
  bool start(ScoreProduct& p) {
    NodeRef n = p.sum, x = n->src(0);
    std::vector<NodeRef> whole;
    for (NodeRef d : n->shape->span()) p.index.push_back(add_range(d));
    c_.key = c_.ranges.size();
    const auto along = static_cast<size_t>(reduce_axes(n)[0]);
    size_t next = 0;
    for (size_t a = 0; a < x->rank(); ++a)
      whole.push_back(a == along ? add_range(x->dim(a)) : p.index[next++]);
    if (whole[along]->op != Op::Range) return false;
    const Deps left = deps_below(p.weights, whole), right = deps_below(p.values, whole);
    c_.row = n->rank();
    for (size_t a = 0; a < n->rank(); ++a)
      if ((left & ~right & bit(a)) != 0) c_.row = a;
    // What lies before the rows are other heads: none of it is an axis of the values alone.
    if (c_.row == n->rank() || (right & ~left & (bit(c_.row) - 1)) != 0) return false;
    if ((left & (bit(c_.key) - 1)) >> (c_.row + 1) != 0) return false;
    push(p.weights, whole);
    push(p.values, whole);
    return fits_;
  }

  /// Another product at the ranges of what it shares with the first.
  void add(ScoreProduct& p) {
    NodeRef x = p.sum->src(0);
    const std::vector<NodeRef> whole = shared_index(x);
    const auto along = static_cast<size_t>(reduce_axes(p.sum)[0]);
    if (!fits_ || whole[along]->op != Op::Range) return void(fits_ = false);
    for (size_t a = 0; a < x->rank(); ++a)
      if (a != along) p.index.push_back(whole[a]);
    const Deps closed = deps_of(c_, {&whole[along], 1}), heads = bit(c_.row) - 1;
    const Deps kept = deps_of(c_, p.index), all = deps_of(c_, c_.products[0].index);
    fits_ &= closed == bit(c_.row) || closed == bit(c_.key);
    fits_ &= (kept & heads) == (all & heads) && (kept & closed) == 0;
    fits_ &= std::ranges::all_of(
        p.index, [](NodeRef i) { return i->op == Op::Range || is_int_const(i, 0); });
    push(p.weights, whole);
    push(p.values, whole);
  }

  /// Ranges for the axes of a product's operands: those that what they are views of is known at.
  std::vector<NodeRef> shared_index(NodeRef x) {
    std::vector<NodeRef> fresh;
    for (size_t a = 0; a < x->rank(); ++a)
      fresh.push_back(is_int_const(x->dim(a), 1)
                          ? g_.index(0)
                          : g_.range(x->dim(a), static_cast<int64_t>(kMostRanges + a)));
    std::vector<NodeRef> index(fresh.size());
    for (NodeRef s : x->src()) match_below(s, fresh, index);
    for (size_t a = 0; a < index.size() && fits_; ++a) {
      if (fresh[a]->op != Op::Range) index[a] = fresh[a];
      if (!index[a] && c_.ranges.size() == kMostRanges) fits_ = false;
      if (!index[a] && fits_) index[a] = add_range(x->dim(a));
    }
    return index;
  }

  void match_below(NodeRef n, std::span<const NodeRef> fresh, std::vector<NodeRef>& index) {
    Access at{{fresh.begin(), fresh.end()}, g_.boolean(true)};
    for (;; n = n->src(0)) {
      if (const auto* known = c_.index.find(n))
        for (size_t a = 0; a < fresh.size(); ++a) {
          const auto place = std::ranges::find(at.index, fresh[a]);
          if (fresh[a]->op == Op::Range && place != at.index.end())
            index[a] = (*known)[static_cast<size_t>(place - at.index.begin())];
        }
      if (!is_moved(n)) return;
      at = map_access(g_, n, at);
    }
  }

  Deps deps_below(NodeRef n, std::vector<NodeRef> index) {
    Access at{std::move(index), g_.boolean(true)};
    for (; is_moved(n); n = n->src(0)) at = map_access(g_, n, at);
    return deps_of(c_, at.index);
  }

  NodeRef add_range(NodeRef size) {
    const bool one = is_int_const(size, 1);
    c_.ranges.push_back(one ? g_.index(0) : g_.range(size, static_cast<int64_t>(c_.ranges.size())));
    return c_.ranges.back();
  }

  // ---- from the products down to what is read

  void push(NodeRef n, std::vector<NodeRef> index) {
    if (n->rank() == 0) index.clear();
    if (n->op == Op::Const) return;
    if (const auto* known = c_.index.find(n))
      fits_ = fits_ && *known == index;
    else
      c_.index.set(n, std::move(index));
  }

  void visit_all() {
    for (size_t i = uses_.order.size(); i-- > 0 && fits_;) {
      NodeRef n = uses_.order[i];
      if (!c_.index.contains(n) || visited_.contains(n)) continue;
      visited_.set(n, visit(n));
    }
  }

  /// Whether it is computed.
  bool visit(NodeRef n) {
    const std::vector<NodeRef> at = c_.index.at(n);
    if (is_read(n, deps_of(c_, at))) {
      c_.leaves.set(n, smallest_below(n, at));
      return false;
    }
    if (n->op == Op::Reduce) {
      visit_reduce(n, at);
    } else if (is_moved(n)) {
      Access source = map_access(g_, n, {at, g_.boolean(true)});
      fits_ = fits_ && is_int_const(source.valid, 1);
      push(n->src(0), std::move(source.index));
    } else if (n->op != Op::Iota) {
      for (NodeRef s : n->src()) push(s, at);
    }
    return true;
  }

  /// What is the same for all rows, or for all keys without being made of the scores, is computed
  /// once for all blocks.
  bool is_read(NodeRef n, Deps deps) const {
    if (n->op == Op::Iota) return false;
    const bool follows = is_moved(n) || is_alu(n->op) || n->op == Op::Reduce;
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
    const std::vector<NodeRef> shared = known_below(x);
    std::vector<NodeRef> index;
    size_t next = 0;
    const auto axes = reduce_axes(n);
    for (size_t a = 0; a < x->rank(); ++a) {
      const bool closed = std::ranges::find(axes, static_cast<int64_t>(a)) != axes.end();
      if (closed && shared.empty() && c_.ranges.size() == kMostRanges) fits_ = false;
      if (!fits_) return;
      index.push_back(!closed ? at[next++] : !shared.empty() ? shared[a] : add_range(x->dim(a)));
    }
    push(x, std::move(index));
  }
  /// Where others see what it is computed of element by element; none where nobody does.
  std::vector<NodeRef> known_below(NodeRef x) const {
    std::vector<NodeRef> left{x};
    for (size_t i = 0; i < std::min(left.size(), kMostLookedAt); ++i) {
      if (const auto* known = c_.index.find(left[i])) return *known;
      if (!is_alu(left[i]->op)) continue;
      for (NodeRef s : left[i]->src())
        if (s->shape == x->shape) left.push_back(s);
    }
    return {};
  }

  // ---- what was found

  /// Variables may say how many rows and keys there are, where none but keys are added up.
  bool has_known_sizes() const {
    for (size_t r = 0; r < c_.ranges.size(); ++r)
      if (c_.is_symbolic(r) && r != c_.row && r != c_.key) return false;
    if (!c_.is_symbolic(c_.row) && !c_.is_symbolic(c_.key)) return true;
    return std::ranges::none_of(c_.products,
                                [this](const ScoreProduct& p) { return c_.adds_rows(p); });
  }

  void note_deps() {
    for (NodeRef n : uses_.order)
      if (const RowCone::Leaf* leaf = c_.leaves.find(n)) c_.deps.set(n, deps_of(c_, leaf->index));
    for (NodeRef n : c_.computed) {
      Deps deps = n->op == Op::Iota ? deps_of(c_, c_.index.at(n)) : 0;
      bool scored = false;
      for (NodeRef s : n->src()) {
        if (const Deps* of = c_.deps.find(s)) deps |= *of;
        scored |= c_.scored.contains(s);
      }
      if (n->op == Op::Reduce) {
        const Deps closed = deps & ~deps_of(c_, c_.index.at(n));
        scored |= closed != 0 && is_sum(n) && n->src(0)->op == Op::Mul && scores_at(deps & ~closed);
        deps &= ~closed;
      }
      if (scored) c_.scored.set(n, true);
      c_.deps.set(n, deps);
    }
  }
  bool scores_at(Deps deps) const { return (deps & bit(c_.row)) != 0 && (deps & bit(c_.key)) != 0; }

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

  /// From the exponential down to the scores, as long as -inf makes it 0.
  void find_conditions() {
    const NodeMap<NodeRef> indices = as_indices();
    NodeRef n = c_.exponential->src(0);
    while (c_.deps.contains(n)) {
      if (c_.conditions.empty()) masked_.set(n, true);
      if (n->op == Op::Where && is_float_const(n->src(2), -INFINITY))
        add_condition(n->src(0), indices), n = n->src(1);
      else if (is_moved(n) || (n->op == Op::Cast && is_float(n->dtype)))
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
    const NodeMap<bool> vanishing = find_vanishing();
    const bool products = std::ranges::all_of(
        c_.products, [&](const ScoreProduct& p) { return vanishing.contains(p.weights); });
    return products && std::ranges::all_of(c_.computed, [&](NodeRef n) {
             if (n->op != Op::Reduce || !varies_along_keys(n->src(0)) || varies_along_keys(n))
               return true;
             return is_sum(n) ? vanishing.contains(n->src(0))
                              : fold_of(n) == Fold::Max && masked_.contains(n->src(0));
           });
  }

  /// What is 0 where the exponential is.
  NodeMap<bool> find_vanishing() const {
    NodeMap<bool> found;
    const auto zero = [&](NodeRef n) { return found.contains(n); };
    for (NodeRef n : c_.computed) {
      bool all = n == c_.exponential;
      if (is_moved(n) || n->op == Op::Cast || n->op == Op::Neg || n->op == Op::Div)
        all |= zero(n->src(0));
      if (n->op == Op::Mul) all |= zero(n->src(0)) || zero(n->src(1));
      if (n->op == Op::Add) all |= zero(n->src(0)) && zero(n->src(1));
      if (n->op == Op::Where)
        all |= zero(n->src(1)) && (zero(n->src(2)) || is_float_const(n->src(2), 0));
      if (all) found.set(n, true);
    }
    return found;
  }
  static bool is_float_const(NodeRef n, double value) {
    n = below_views(n);
    return n->op == Op::Const && is_float(n->dtype) && const_value(n).as_double() == value;
  }

  bool varies_along_keys(NodeRef n) const {
    const Deps* deps = c_.deps.find(n);
    return deps && (*deps & bit(c_.key)) != 0;
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
  const size_t axis_;  // of the exponential: the keys
  RowCone c_;
  NodeMap<bool> visited_;  // whether it is computed
  NodeMap<bool> masked_;   // -inf where a condition fails
  bool fits_ = true;
};

std::optional<RowCone> find_cone(Graph& g, const GraphUses& uses, const Softmax& softmax,
                                 const std::vector<ScoreProduct>& products) {
  for (size_t first = 0; first < products.size(); ++first)
    if (auto cone = ConeFinder(g, uses, softmax).run(products, first)) return cone;
  return {};
}

/// Nobody else reads what is made of the scores: it will not be there.
bool are_private(const GraphUses& uses, std::span<const RowCone> cones) {
  NodeMap<bool> readers;
  NodeMap<int> inside;
  const auto read = [&](NodeRef n) {
    if (std::exchange(readers[n], true)) return;
    for (NodeRef s : n->src()) ++inside[s];
  };
  for (const RowCone& c : cones) {
    for (NodeRef n : c.computed) read(n);
    for (const ScoreProduct& p : c.products) {
      if (uses.count.at(p.sum->src(0)) != 1) return false;
      read(p.sum->src(0));
    }
  }
  return std::ranges::all_of(cones, [&](const RowCone& c) {
    return std::ranges::all_of(c.computed, [&](NodeRef n) {
      return !c.scored.contains(n) || uses.count.at(n) == inside[n];
    });
  });
}

std::vector<RowCone> cones_of(Graph& g, const GraphUses& uses, const Softmax& softmax) {
  std::vector<RowCone> cones;
  for (const auto& products : Stages(uses, softmax).of) {
    std::optional<RowCone> cone = find_cone(g, uses, softmax, products);
    if (!cone) return {};
    cones.push_back(std::move(*cone));
  }
  if (!are_private(uses, cones)) cones.clear();
  return cones;
}

}  // namespace

int64_t RowCone::heads() const {
  int64_t count = 1;
  for (size_t r = 0; r < row; ++r) count *= size_of(r);
  return count;
}

bool RowCone::adds_rows(const ScoreProduct& p) const {
  return std::ranges::find(p.index, ranges[row]) == p.index.end();
}

std::vector<size_t> RowCone::ranges_of(const ScoreProduct& p) const {
  std::vector<size_t> found;
  const auto has = [&](size_t r) {
    return has_range(r) && std::ranges::find(p.index, ranges[r]) != p.index.end();
  };
  for (size_t r : {row, key})
    if (has(r)) found.push_back(r);
  for (size_t r = row + 1; r < ranges.size(); ++r)
    if (r != key && has(r)) found.push_back(r);
  return found;
}

std::vector<RowCone> find_row_cones(Graph& g, const GraphUses& uses, double scores) {
  std::vector<RowCone> found;
  for (const Softmax& softmax : SoftmaxFinder(uses, scores).found)
    for (RowCone& cone : cones_of(g, uses, softmax)) found.push_back(std::move(cone));
  return found;
}

}  // namespace weft
