#include "weft/optimize/loop_nest.h"

#include <algorithm>
#include <array>
#include <bit>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/graph/fold.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/loops.h"
#include "weft/graph/stage.h"
#include "weft/rewrite/driver.h"

namespace weft::optimize {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// where(condition, 0, size)
bool is_none_where(NodeRef size) { return size->op == Op::Where && is_int_const(size->src(1), 0); }

std::string_view tail_name(Tail tail) {
  constexpr std::string_view names[] = {"", " overlapping", " masked"};
  return names[static_cast<int>(tail)];
}

}  // namespace

LoopNest::LoopNest(Graph& g, const KernelInfo& info, bool record)
    : g_(g), info_(info), record_(record) {
  for (size_t r = 0; r < info.ranges.size(); ++r) {
    add_axis(info.ranges[r].node->src(0), bit(r));
    if (info.ranges[r].sequential) axes_[r].kind = Kind::Leaf;  // a scan keeps its loop
    if (axes_[r].kind == Kind::Leaf) order_.push_back(r);
  }
}

LoopNest::Axis LoopNest::add_axis(NodeRef size, RangeMask ranges) {
  AxisData a;
  a.size = size;
  a.extent = std::max<int64_t>(1, size->vmax);
  a.ranges = ranges;
  if (is_int_const(size, 1)) a.kind = Kind::One;
  axes_.push_back(a);
  return axes_.size() - 1;
}

void LoopNest::check_tail(const AxisData& a, int64_t factor, Tail tail) const {
  bool parallel = true;
  for (size_t r = 0; r < info_.ranges.size(); ++r)
    if ((a.ranges & bit(r)) != 0) {
      WEFT_CHECK(!info_.ranges[r].sequential, "a range that carries state cannot be split");
      parallel = parallel && info_.ranges[r].parallel;
    }
  WEFT_CHECK(a.kind == Kind::Leaf && factor >= 1, "only a loop can be split");
  if (tail == Tail::Exact)
    WEFT_CHECK(divisor_of(a.size) % factor == 0, "{} does not divide the range", factor);
  if (tail == Tail::Overlap)
    WEFT_CHECK(parallel && none_or_at_least(a.size, factor), "tiles may not overlap here");
  if (tail == Tail::Mask) WEFT_CHECK(parallel, "a reduction is peeled, not masked");
}

LoopNest::Parts LoopNest::split(Axis a, int64_t factor, Tail tail) {
  check_tail(axes_[a], factor, tail);
  NodeRef f = g_.index(factor);
  const auto tiles = [&](NodeRef size) {
    return g_.idiv(tail == Tail::Exact ? size : g_.add(size, g_.index(factor - 1)), f);
  };
  NodeRef size = axes_[a].size;
  size =
      is_none_where(size) ? g_.where(size->src(0), size->src(1), tiles(size->src(2))) : tiles(size);
  const Parts parts{add_axis(size, axes_[a].ranges), add_axis(f, axes_[a].ranges)};
  AxisData& whole = axes_[a];
  whole.kind = Kind::Split;
  whole.tail = tail;
  whole.factor = factor;
  whole.first = parts.outer;
  whole.second = parts.inner;
  auto at = std::find(order_.begin(), order_.end(), a);
  WEFT_CHECK(at != order_.end(), "only a loop can be split");
  *at = parts.outer;
  at = order_.insert(at + 1, parts.inner);
  if (axes_[parts.inner].kind == Kind::One) at = order_.erase(at);
  if (axes_[parts.outer].kind == Kind::One) order_.erase(at - 1);
  if (record_)
    applied_.push_back(strformat("split r{} of {} into {} x {}{} -> r{}, r{}", a, whole.extent,
                                 ceil_div(whole.extent, factor), factor, tail_name(tail),
                                 parts.outer, parts.inner));
  return parts;
}

LoopNest::Axis LoopNest::fuse(Axis outer, Axis inner) {
  WEFT_CHECK(outer != inner, "an axis cannot be fused with itself");
  if (axes_[outer].kind == Kind::One) return inner;
  if (axes_[inner].kind == Kind::One) return outer;
  NodeRef divisor = axes_[inner].size;
  const Axis fused =
      add_axis(g_.mul(axes_[outer].size, divisor), axes_[outer].ranges | axes_[inner].ranges);
  axes_[outer].kind = Kind::FusedOuter;
  axes_[inner].kind = Kind::FusedInner;
  for (Axis a : {outer, inner}) {
    axes_[a].first = fused;
    axes_[a].divisor = divisor;
  }
  std::replace(order_.begin(), order_.end(), outer, fused);
  std::erase(order_, inner);
  if (record_) applied_.push_back(strformat("fuse r{}, r{} -> r{}", outer, inner, fused));
  return fused;
}

void LoopNest::bind(Axis a, Binding binding, size_t axis) {
  WEFT_CHECK(axes_[a].kind == Kind::Leaf || axes_[a].kind == Kind::One, "only a loop can be bound");
  axes_[a].binding = binding;
  axes_[a].launch_axis = axis;
  if (binding == Binding::Unroll || binding == Binding::Vector || binding == Binding::Tile) {
    std::erase(order_, a);
    inner_.push_back(a);
  }
  if (!record_) return;
  applied_.push_back(strformat("bind r{} to {}", a, binding_name(binding)));
  if (binding == Binding::Grid || binding == Binding::Group)
    applied_.back() += strformat(" {}", "xyz"[axis]);
}

void LoopNest::stage(NodeRef value, std::initializer_list<Axis> axes,
                     std::initializer_list<int64_t> strides, int64_t buffers) {
  staged_.push_back({value, axes, strides, buffers});
  if (!record_) return;
  std::string over;
  for (Axis a : axes) append_format(over, "{}r{}", over.empty() ? "" : ", ", a);
  applied_.push_back(strformat("stage {} over {}{}", info(value->op).mnemonic, over,
                               buffers > 1 ? strformat(" in {} buffers", buffers) : std::string()));
}

LoopNest::Parts LoopNest::vectorise(Axis a, int64_t lanes, Tail tail) {
  const Parts parts = split(a, lanes, tail);
  bind(parts.inner, Binding::Vector);
  return parts;
}

void LoopNest::move_before(Axis a, Axis before) {
  if (a == before) return;
  std::erase(order_, a);
  order_.insert(std::find(order_.begin(), order_.end(), before), a);
  if (record_) applied_.push_back(strformat("move r{} outside r{}", a, before));
}

void LoopNest::move_after(Axis a, Axis after) {
  if (a == after) return;
  std::erase(order_, a);
  order_.insert(std::find(order_.begin(), order_.end(), after) + 1, a);
  if (record_) applied_.push_back(strformat("move r{} inside r{}", a, after));
}

namespace {

NodeRef both(Graph& g, NodeRef a, NodeRef b) { return a ? g.logical_and(a, b) : b; }

}  // namespace

LoopNest::Resolved LoopNest::resolve_one(Axis axis, const std::vector<Resolved>& known) const {
  const AxisData& a = axes_[axis];
  if (a.kind == Kind::One) return {g_.index(0), nullptr};
  if (a.kind == Kind::Split) {
    const Resolved &outer = known[a.first], &inner = known[a.second];
    Resolved r = outer;
    NodeRef regular = g_.mul(outer.value, g_.index(a.factor)), start = regular;
    if (a.tail == Tail::Overlap) {
      NodeRef factor = g_.index(a.factor);
      NodeRef size = is_none_where(a.size) ? g_.alu(Op::Max, {a.size->src(2), factor}) : a.size;
      start = g_.alu(Op::Min, {regular, g_.sub(size, factor)});
    }
    r.value = g_.add(start, inner.value);
    for (NodeRef leaf : inner.leaves) r.leaves.push_back(leaf);
    if (inner.guard) r.guard = both(g_, r.guard, inner.guard);
    if (inner.first) r.first = both(g_, r.first, inner.first);
    if (a.tail == Tail::Overlap && !info_.repeatable)
      r.first = both(g_, r.first, g_.le(regular, r.value));
    if (a.tail == Tail::Mask) r.guard = both(g_, r.guard, g_.lt(r.value, a.size));
    return r;
  }
  WEFT_CHECK(a.kind == Kind::FusedOuter || a.kind == Kind::FusedInner, "an axis without a value");
  Resolved r = known[a.first];
  r.value = a.kind == Kind::FusedOuter ? g_.idiv(r.value, a.divisor) : g_.mod(r.value, a.divisor);
  return r;
}

/// Later axes first: an axis is made of axes that came after it.
void LoopNest::resolve(std::vector<Resolved>& out) const {
  out.resize(axes_.size());
  int64_t id = 0;
  for (const auto* list : {&order_, &inner_})
    for (Axis a : *list) {
      if (axes_[a].kind != Kind::Leaf) continue;
      NodeRef range = g_.range(axes_[a].size, id++, axes_[a].binding, axes_[a].launch_axis);
      out[a].value = range;
      out[a].leaves.push_back(range);
    }
  for (Axis a = axes_.size(); a-- > 0;)
    if (axes_[a].kind != Kind::Leaf) out[a] = resolve_one(a, out);
}

NodeRef LoopNest::guard_of(NodeRef access, const std::vector<Resolved>& axes) const {
  NodeRef guard = nullptr;
  for (size_t r = 0; r < info_.ranges.size(); ++r) {
    if ((info_.deps(access) & bit(r)) == 0) continue;
    if (axes[r].guard) guard = both(g_, guard, axes[r].guard);
    if (access->op == Op::Store && axes[r].first) guard = both(g_, guard, axes[r].first);
  }
  return guard;
}

NodeRef LoopNest::rebuild(NodeRef n, const std::vector<Resolved>& axes,
                          const NodeMap<NodeRef>& done) const {
  SmallVector<NodeRef, 8> src;
  const size_t listed = listed_ranges(n).size();
  for (size_t i = 0; i + listed < n->nsrc; ++i) src.push_back(done.at(n->src(i)));
  for (NodeRef r : listed_ranges(n)) {
    if (r->op != Op::Range) continue;
    const Resolved& parts = axes[info_.position(r)];
    WEFT_CHECK(!parts.guard, "a guarded range is listed by a {}", info(n->op).mnemonic);
    for (NodeRef leaf : parts.leaves)
      if (!contains(src, leaf)) src.push_back(leaf);
  }
  if (n->op == Op::Reduce && src.size() == 1) return folded_once(g_, fold_of(n), src[0]);
  if (n->op == Op::Load || n->op == Op::Store) {
    const size_t valid = n->op == Op::Load ? 2 : 3;
    if (NodeRef guard = guard_of(n, axes)) {
      if (src.size() > valid)
        src[valid] = g_.logical_and(src[valid], guard);
      else
        src.push_back(guard);
    }
    if (src.size() == valid + 1 && is_int_const(src[valid], 1)) src.resize(valid);
    return g_.make({n->op, n->dtype, src, n->ints(), n->text(), n->lanes});
  }
  return g_.with_sources(n, src);
}

/// Axes of one iteration are no ranges.
NodeRef LoopNest::staged(const Staged& s, NodeRef value, const std::vector<Resolved>& axes) const {
  SmallVector<NodeRef, 8> src{value};
  SmallVector<int64_t, 8> ints{static_cast<int64_t>(Space::Local),
                               static_cast<int64_t>(StageLifetime::Kernel), s.buffers};
  for (size_t i = 0; i < s.axes.size(); ++i) {
    if (axes_[s.axes[i]].kind != Kind::Leaf) continue;
    src.push_back(axes[s.axes[i]].value);
    ints.push_back(s.strides[i]);
  }
  return g_.make({Op::Stage, value->dtype, src, ints});
}

NodeRef LoopNest::apply() const {
  std::vector<Resolved> axes;
  resolve(axes);
  NodeMap<NodeRef> done(info_.order.size());
  for (NodeRef n : info_.order) {
    NodeRef made = n->op == Op::Range ? axes[info_.position(n)].value : rebuild(n, axes, done);
    for (const Staged& s : staged_)
      if (s.value == n) made = staged(s, made, axes);
    done[n] = made;
  }
  return done.at(info_.sink);
}

namespace {

int64_t next_id(const KernelInfo& info) {
  int64_t id = 0;
  for (const RangeInfo& r : info.ranges) id = std::max(id, range_id(r.node) + 1);
  return id;
}

}  // namespace

bool none_or_at_least(NodeRef size, int64_t least) {
  if (size->vmin >= least) return true;
  if (!is_none_where(size)) return false;
  return size->src(2)->vmin >= least || at_least_unless(size->src(0), size->src(2), least);
}

namespace {

/// `size` where it is `shorter` than `least`, else 0. Of one that is itself a size or nothing, and
/// short of something more, the size alone is named: what bounds it is then plain.
NodeRef fewer_than(Graph& g, NodeRef size, int64_t least, NodeRef shorter) {
  if (size->op == Op::Where && is_int_const(size->src(2), 0)) {
    shorter = g.logical_and(shorter, size->src(0));
    size = size->src(1);
    if (size->op == Op::Min && size->src(1)->op == Op::Const && size->src(1)->vmin >= least)
      size = size->src(0);
  }
  return g.where(shorter, g.alu(Op::Min, {size, g.index(least - 1)}), g.index(0));
}

}  // namespace

NodeRef split_short(Graph& g, const KernelInfo& info, size_t range, int64_t least,
                    SmallVector<size_t, 8>& copied) {
  NodeRef whole = info.ranges[range].node, size = whole->src(0);
  NodeRef shorter = g.lt(size, g.index(least)), none = g.index(0);
  NodeMap<NodeRef> main, rest;
  NodeRef long_enough = g.where(shorter, none, size);
  if (!none_or_at_least(long_enough, least)) return nullptr;
  main[whole] = g.range(long_enough, range_id(whole));
  int64_t id = next_id(info);
  rest[whole] = g.range(fewer_than(g, size, least, shorter), id++);
  RangeMask summed = 0;  // by what is computed for each iteration
  for (NodeRef n : info.reduces)
    if ((info.deps(n) & bit(range)) != 0) summed |= info.reduced_by(n);
  for (; summed != 0; summed &= summed - 1) {
    copied.push_back(static_cast<size_t>(std::countr_zero(summed)));
    NodeRef r = info.ranges[copied.back()].node;
    rest[r] = g.range(r->src(0), id++);
  }
  SmallVector<NodeRef, 8> stores;
  for (NodeRef s : info.sink->src()) stores.push_back(substitute(g, s, main));
  for (NodeRef s : info.sink->src())
    if ((info.deps(s) & bit(range)) != 0) stores.push_back(substitute(g, s, rest));
  return g.with_sources(info.sink, stores);
}

namespace {

/// A part of a loop: its range, where that is in the whole, and whether its values count; null: all
/// of them do.
struct LoopPart {
  NodeRef range, place, counts = nullptr;
};

bool repeats_harmlessly(Fold fold) { return fold == Fold::Max || fold == Fold::Min; }

/// Versions of everything inside the loop; equal ones outside.
NodeRef in_parts(Graph& g, const KernelInfo& info, size_t range, std::span<const LoopPart> parts) {
  NodeRef whole = info.ranges[range].node;
  WEFT_CHECK(!info.ranges[range].parallel && info.ranges[range].free(),
             "only reductions are peeled");
  std::vector<NodeMap<NodeRef>> done;
  for (size_t v = 0; v < parts.size(); ++v) done.emplace_back(info.order.size());
  for (NodeRef n : info.order) {
    const bool folds = n->op == Op::Reduce && (info.reduced_by(n) & bit(range)) != 0;
    for (size_t v = 0; v < parts.size(); ++v) {
      if (n == whole) {
        done[v][n] = parts[v].place;
        continue;
      }
      SmallVector<NodeRef, 8> src;
      for (NodeRef s : n->src()) {
        const bool listed = n->op == Op::Reduce && s == whole;
        src.push_back(listed ? parts[v].range : done[v].at(s));
      }
      if (folds && parts[v].counts && !repeats_harmlessly(fold_of(n)))
        src[0] =
            g.where(parts[v].counts, src[0], g.constant(fold_identity(fold_of(n), src[0]->dtype)));
      done[v][n] = g.with_sources(n, src);
    }
    if (!folds) continue;
    NodeRef all = done[0].at(n);
    for (size_t v = 1; v < parts.size(); ++v)
      all = g.alu(fold_op(fold_of(n)), {all, done[v].at(n)});
    for (auto& version : done) version[n] = all;
  }
  return done[0].at(info.sink);
}

}  // namespace

NodeRef peel_reduction(Graph& g, const KernelInfo& info, size_t range, NodeRef main) {
  NodeRef whole = info.ranges[range].node, first = g.range(main, range_id(whole));
  NodeRef remainder = g.range(g.sub(whole->src(0), main), next_id(info));
  return in_parts(g, info, range,
                  std::array{LoopPart{first, first}, LoopPart{remainder, g.add(main, remainder)}});
}

NodeRef peel_vectors(Graph& g, const KernelInfo& info, size_t range, int64_t size, int64_t lanes) {
  NodeRef whole = info.ranges[range].node, n = whole->src(0);
  const auto before_last = [&](int64_t of) {
    return g.mul(g.idiv(g.sub(n, g.index(1)), g.index(of)), g.index(of));
  };
  int64_t id = next_id(info);
  NodeRef main = before_last(size), vectors = before_last(lanes), begin = g.sub(n, g.index(lanes));
  NodeRef first = g.range(main, range_id(whole));
  std::vector<LoopPart> parts{{first, first}};
  if (NodeRef more = g.sub(vectors, main); more->vmax >= lanes) {
    NodeRef rest = g.range(more, id++);
    parts.push_back({rest, g.add(main, rest)});
  }
  // Numbers are compared as vectors, indices lane by lane.
  NodeRef last = g.range(lanes, id);
  NodeRef counts = g.le(g.cast(g.sub(vectors, begin), DType::I32), g.cast(last, DType::I32));
  parts.push_back({last, g.add(begin, last), counts});
  return in_parts(g, info, range, parts);
}

}  // namespace weft::optimize
