// Indexing by numbers, slices, new axes and index tensors; gather, scatter and writing by index.
#include <algorithm>

#include "weft/base/context.h"
#include "weft/graph/index_value.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/access.h"
#include "weft/tensor/known.h"
#include "weft/tensor/selection.h"
#include "weft/tensor/tracing.h"

namespace weft {

using build::AxisList;
using build::Extents;

Index::Index(const Tensor& positions, CallSite site)
    : kind_(Kind::Tensor),
      site_(site),
      cell_(positions.cell()),
      chain_(TensorAccess::chain_or_null(positions)) {}
Tensor Index::tensor() const { return TensorAccess::seen(cell_, chain_); }

namespace {

using Kind = Index::Kind;

bool is_mask(const Index& i) { return i.kind() == Kind::Tensor && is_bool(i.tensor().dtype()); }
/// How many axes of the indexed tensor it stands for.
size_t axes_of(const Index& i) {
  if (is_mask(i)) return i.tensor().ndim();
  return i.kind() != Kind::NewAxis && i.kind() != Kind::Ellipsis;
}

/// `at` with the ellipsis, given or implied at the end, written out as whole slices; one that
/// stands for none stays, because it parts index tensors.
std::vector<Index> expanded(const std::vector<Index>& at, const Tensor& x) {
  const auto ellipses = std::count_if(at.begin(), at.end(),
                                      [](const Index& i) { return i.kind() == Kind::Ellipsis; });
  if (ellipses > 1) fail_index("index", "an index can have a single ellipsis, not {}", ellipses);
  size_t used = 0;
  for (const Index& i : at) used += axes_of(i);
  if (used > x.ndim())
    fail_index("index", "too many indices: {} for shape {}, which has {} axes", used,
               x.dims().text(), x.ndim());
  std::vector<Index> out;
  const size_t missing = x.ndim() - used;
  for (const Index& i : at) {
    if (i.kind() != Kind::Ellipsis) {
      out.push_back(i);
      continue;
    }
    if (missing == 0) out.push_back(i);
    for (size_t k = 0; k < missing; ++k) out.emplace_back(Slice());
  }
  for (size_t k = 0; ellipses == 0 && k < missing; ++k) out.emplace_back(Slice());
  return out;
}

/// An expanded index with every mask replaced by what `replacement` gives for each of its axes.
template <class Replacement>
std::vector<Index> without_masks(const std::vector<Index>& at, const Tensor& x,
                                 Replacement replacement) {
  std::vector<Index> out;
  size_t axis = 0;
  for (const Index& i : at) {
    const size_t axes = axes_of(i);
    if (is_mask(i)) {
      const Dims mask = i.tensor().dims();
      Dims covered;
      for (size_t k = 0; k < axes; ++k) covered.push_back(x.dim(static_cast<int64_t>(axis + k)));
      if (axes == 0 || !(covered == mask))
        fail_index("index",
                   "a mask of shape {} does not fit {}: it must have the sizes of the {} "
                   "axes that it selects from, {}",
                   mask.text(), x.dims().text(), axes, covered.text());
      replacement(i.tensor(), out);
    } else {
      out.push_back(i);
    }
    axis += axes;
  }
  return out;
}

/// Masks as the positions where they are true, which takes a look at their values.
std::vector<Index> positions_of_masks(const std::vector<Index>& at, const Tensor& x) {
  return without_masks(expanded(at, x), x, [](const Tensor& mask, std::vector<Index>& out) {
    const Tensor found = nonzero(mask);
    for (size_t k = 0; k < mask.ndim(); ++k) out.emplace_back(found.index({Slice(), k}));
  });
}

/// One axis of a basic index: elements begin, begin + step, ... of `size`, from the back if
/// flipped.
struct Cut {
  Dim begin, size;
  int64_t step = 1;
  bool flipped = false;
};

/// Whether a is at most b, where that is known: for all values of Variables, or (unless a capture
/// will be replayed with others) for those they have now.
std::optional<bool> is_at_most(const Dim& a, const Dim& b) {
  const Dim difference = a - b;
  if (difference.max() <= 0) return true;
  if (difference.min() > 0) return false;
  const bool settled = !active_capture(Context::current()) && is_bound(difference.node());
  if (!settled) return std::nullopt;
  return bound_value(a.node()) <= bound_value(b.node());
}
/// The smaller or larger, without an expression where it is known which that is: x[:3] of a longer
/// x has size 3.
Dim least(const Dim& a, const Dim& b) {
  const auto known = is_at_most(a, b);
  return !known ? min(a, b) : *known ? a : b;
}
Dim most(const Dim& a, const Dim& b) {
  const auto known = is_at_most(a, b);
  return !known ? max(a, b) : *known ? b : a;
}

/// Which end of an axis a position counts from must not depend on a Variable's value.
void require_one_end(const Dim& at) {
  if (at.min() < 0 && at.max() >= 0)
    fail("index", "{} can be negative and not: which end it counts from would change", at.text());
}

/// A slice bound in [0, n]: negative ones count from the end, the rest is clamped.
Dim clamped(const Dim& bound, const Dim& n) {
  require_one_end(bound);
  const Dim from_start = bound.max() < 0 ? bound + n : bound;
  return most(0, least(from_start, n));
}

Cut cut_of(const Slice& s, const Dim& n) {
  if (s.step == 0) fail("index", "a slice step of 0 goes nowhere: use 1 or -1");
  if (s.step > 0) {
    const Dim begin = clamped(s.start.value_or(0), n), end = clamped(s.stop.value_or(n), n);
    return {begin, most(0, (end - begin + (s.step - 1)) / s.step), s.step, false};
  }
  // From start down to, not including, stop; as a forward cut of the same elements, reversed.
  const int64_t step = -s.step;
  const Dim first = s.start ? min(clamped(*s.start, n), n - 1) : n - 1;
  const bool before_all = s.start && s.start->max() < 0 && (*s.start + n).max() < 0;
  const bool stops_before = s.stop && s.stop->max() < 0 && (*s.stop + n).max() < 0;
  const Dim last = !s.stop || stops_before ? Dim(-1) : min(clamped(*s.stop, n), n - 1);
  const Dim count = before_all ? Dim(0) : max(0, (first - last + (step - 1)) / step);
  const Dim begin = count.max() == 0 ? Dim(0) : max(0, first - (count - 1) * step);
  return {begin, count, step, true};
}

Cut cut_of(const Dim& at, const Dim& n, size_t axis, const Tensor& x) {
  require_one_end(at);
  const bool outside = at.min() >= n.max() || at.max() < -n.max();
  if (outside)
    fail_index("index", "{} is out of bounds for axis {} of shape {}: it must be from {} to {}",
               at.text(), axis, x.dims().text(), -n.max(), n.max() - 1);
  return {at.max() < 0 ? at + n : at, 1, 1, false};
}

/// The basic part of an index applied as a view, whose axes that index tensors select are whole.
struct Basic {
  Tensor view;
  std::vector<std::pair<size_t, Tensor>> tensors;  // axis of view, positions
  bool adjacent = true;                            // nothing but numbers stands between them
};

Basic basic_part(const Tensor& x, const std::vector<Index>& at) {
  const OpScope scope(x, CallSite::here());
  Graph& g = scope.g;
  Extents begin, size;
  AxisList steps, flips;
  Dims shape;
  Basic out;
  size_t axis = 0;
  bool parted = false;
  for (const Index& i : expanded(at, x)) {
    if (i.kind() == Kind::Tensor) out.adjacent &= !parted;
    parted |= !out.tensors.empty() && i.kind() != Kind::Tensor && i.kind() != Kind::At;
    if (i.kind() == Kind::Ellipsis) continue;
    if (i.kind() == Kind::NewAxis) {
      shape.push_back(1);
      continue;
    }
    const Dim n = x.dim(static_cast<int64_t>(axis));
    Cut cut{0, n};
    if (i.kind() == Kind::Slice) cut = cut_of(i.slice(), n);
    if (i.kind() == Kind::At) cut = cut_of(i.at(), n, axis, x);
    if (i.kind() == Kind::Tensor) {
      require_known_inside("index", i.tensor(), static_cast<int64_t>(axis), x);
      out.tensors.emplace_back(shape.size(), i.tensor());
    }
    begin.push_back(cut.begin.node());
    size.push_back(cut.size.node());
    steps.push_back(cut.step);
    if (cut.flipped) flips.push_back(static_cast<int64_t>(axis));
    if (i.kind() != Kind::At) shape.push_back(cut.size);
    ++axis;
  }
  NodeRef chain = build::shrink(g, TensorAccess::chain(g, x), begin, size, steps);
  chain = build::reshape(g, build::flip(g, chain, flips), nodes_of(shape));
  out.view = TensorAccess::view(x, chain);
  return out;
}

/// `positions` in the dtype of places below n. What it can not hold becomes its end, which lies
/// outside as it does; none of 64 bits is below 0.
Tensor narrowed(const Tensor& positions, const Dim& n) {
  const DType from = positions.dtype(), to = build::position_dtype(n.max());
  const NodeRef known = positions.node();
  const auto last = static_cast<int64_t>(int_max(to));
  const bool holds = bits(from) < bits(to) || (bits(from) == bits(to) && !is_unsigned(from));
  if (holds || (from != DType::U64 && known->vmax <= last)) return positions.cast(to);
  return positions.minimum(last).cast(to);
}

/// `positions` counted from the start: in [0, n) where they were in [-n, n).
Tensor from_start(const Tensor& positions, const Dim& n) {
  if (is_float(positions.dtype()))
    fail_index("index", "positions must be integers: got {} of shape {}; cast them",
               name(positions.dtype()), positions.dims().text());
  const OpScope scope(positions, CallSite::here());
  const auto size = [&](DType dtype) { return scope.result(scope.g.cast(n.node(), dtype)); };
  const DType from = positions.dtype(), to = build::position_dtype(n.max());
  NodeRef known = positions.node();
  // Where it is used, one comparison without a sign sees to both sides.
  if (from == DType::I64 && known->vmin < 0)
    return (positions < 0).where(positions + size(from), positions);
  const Tensor i = narrowed(positions, n);
  if (known->vmin >= 0 && known->vmax < n.min()) return i;  // provably inside
  return known->vmin >= 0 ? i : (i < 0).where(i + size(to), i);
}

/// The same with -1 for what is outside.
Tensor wrapped(const Tensor& positions, const Dim& n) {
  const Tensor i = from_start(positions, n);
  if (i.node()->vmin >= 0 && i.node()->vmax < n.min()) return i;
  const OpScope scope(i, CallSite::here());
  const Tensor size = scope.result(scope.g.cast(n.node(), i.dtype()));
  return ((i >= 0) & (i < size)).where(i, -1);
}

/// Gather and scatter with positions that count from the start.
Tensor gather_at(const Tensor& x, int64_t axis, const Tensor& index) {
  const OpScope scope(x, CallSite::here());
  const NodeRef src[] = {x.node(), index.node()};
  return scope.result(scope.g.make({Op::Gather, x.dtype(), src, {&axis, 1}}));
}

/// Whether what is combined with x is a good part of it: then x as wide numbers and back costs less
/// than to convert one and round it at every place, and sums are those of wide numbers.
bool combines_wide(const Tensor& x, const Tensor& src) {
  if (is_float8(x.dtype())) return true;
  if (!is_narrow_float(x.dtype()) || !x.dims().is_static() || !src.dims().is_static()) return false;
  return src.numel() >= x.numel() / 2;
}

Tensor scatter_at(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& src,
                  Fold combine) {
  if (combine != Fold::Set && combines_wide(x, src)) {
    const DType wide = sum_dtype(x.dtype());
    return scatter_at(x.cast(wide), axis, index, src.cast(wide), combine).cast(x.dtype());
  }
  const OpScope scope(x, CallSite::here());
  const NodeRef sources[] = {x.node(), index.node(), src.node()};
  const int64_t ints[] = {axis, static_cast<int64_t>(combine), 0};
  return scope.result(scope.g.make({Op::Scatter, x.dtype(), sources, ints}));
}

/// How an index with tensors is a gather along one axis: x with the selected axes merged in front.
struct Advanced {
  Tensor front;      // (selected elements, rest...)
  Tensor positions;  // in front's axis 0, -1 outside; flat
  Dims picked;       // the broadcast shape of the index tensors
  Ints to_front;     // permutation that put the selected axes first
  size_t place = 0;  // where NumPy puts the picked axes in the result
};

void require_one_shape(const Tensor& a, const Tensor& b) {
  const size_t common = std::min(a.ndim(), b.ndim());
  for (size_t k = 1; k <= common; ++k) {
    const Dim m = a.dim(-static_cast<int64_t>(k)), n = b.dim(-static_cast<int64_t>(k));
    if (!(m == n) && !(m == Dim(1)) && !(n == Dim(1)))
      fail_index("index", "index tensors of shapes {} and {} do not broadcast", a.dims().text(),
                 b.dims().text());
  }
}

Advanced advanced_part(const Basic& basic) {
  const auto& tensors = basic.tensors;
  Advanced out;
  const Dims shape = basic.view.dims();
  Tensor flat;
  Dims rest;
  Dim selected = 1, together = 1;
  for (const auto& [axis, positions] : tensors) together = together * shape[axis];
  for (const auto& [axis, positions] : tensors) {
    const Dim n = shape[axis];
    const Tensor i = wrapped(positions, n).cast(build::position_dtype(together.max()));
    if (flat.defined()) require_one_shape(flat, i);
    const OpScope scope(i, CallSite::here());
    const Tensor size = scope.result(scope.g.cast(n.node(), i.dtype()));
    flat = flat.defined() ? ((flat < 0) | (i < 0)).where(-1, flat * size + i) : i;
    out.to_front.push_back(static_cast<int64_t>(axis));
    selected = selected * n;
  }
  for (size_t a = 0; a < shape.size(); ++a) {
    const bool picked = std::any_of(tensors.begin(), tensors.end(),
                                    [a](const auto& tensor) { return tensor.first == a; });
    if (picked) continue;
    rest.push_back(shape[a]);
    out.to_front.push_back(static_cast<int64_t>(a));
  }
  // Adjacent index tensors put their axes where they stood, others put them first.
  out.place = basic.adjacent ? tensors.front().first : 0;
  Dims merged = rest;
  merged.insert(0, selected);
  out.picked = flat.dims();
  out.front = basic.view.permute(out.to_front).reshape(merged);
  out.positions = flat.flatten();
  return out;
}

/// positions (count) repeated over the other axes of `front`.
Tensor spread(const Tensor& positions, const Tensor& front) {
  Dims one = front.dims(), full = front.dims();
  for (Dim& d : one) d = 1;
  one[0] = full[0] = positions.dims()[0];
  return positions.reshape(one).expand(full);
}

}  // namespace

Tensor Tensor::index(const std::vector<Index>& at, CallSite site) const {
  const CallSiteScope scope(site);
  const Basic basic = basic_part(*this, positions_of_masks(at, *this));
  if (basic.tensors.empty()) return basic.view;
  const Advanced a = advanced_part(basic);
  const Tensor picked = gather_at(a.front, 0, spread(a.positions, a.front));
  Dims shape = a.picked;
  const Dims rest = a.front.dims();
  for (size_t i = 1; i < rest.size(); ++i) shape.push_back(rest[i]);
  // (picked..., rest...) to (rest before place..., picked..., rest...).
  Ints order;
  const auto p = static_cast<int64_t>(a.picked.size()), place = static_cast<int64_t>(a.place);
  for (int64_t i = 0; i < place; ++i) order.push_back(p + i);
  for (int64_t i = 0; i < p; ++i) order.push_back(i);
  for (auto i = p + place; i < static_cast<int64_t>(shape.size()); ++i) order.push_back(i);
  // Row-major, whatever it was made of: a reshape of it is a view, captured or not.
  return unshared(picked.reshape(shape).permute(order));
}

namespace {

/// The index of the one mask in an expanded index that holds no other tensors, or -1.
int64_t lone_mask(const std::vector<Index>& at) {
  int64_t found = -1;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i].kind() != Kind::Tensor) continue;
    if (found >= 0 || !is_mask(at[i])) return -1;
    found = static_cast<int64_t>(i);
  }
  return found;
}

/// Writes under a mask without asking how much it selects: where(mask, value, old).
void put_masked(const Tensor& x, const std::vector<Index>& at, size_t mask_at,
                const Operand& value) {
  const Tensor mask = at[mask_at].tensor();
  const std::vector<Index> slices =
      without_masks(at, x, [](const Tensor& m, std::vector<Index>& out) {
        for (size_t k = 0; k < m.ndim(); ++k) out.emplace_back(Slice());
      });
  Tensor view = basic_part(x, slices).view;
  size_t first = 0;  // axis of the view where the mask's begin
  for (size_t i = 0; i < mask_at; ++i)
    first += at[i].kind() != Kind::At && at[i].kind() != Kind::Ellipsis;
  const size_t after = view.ndim() - first - mask.ndim();
  Dims shape = mask.dims();
  for (size_t i = 0; i < after; ++i) shape.push_back(1);
  const Tensor where = mask.reshape(shape);
  if (!value.tensor()) {
    view.assign(where.where(value, view));
    return;
  }
  Tensor v = value.tensor()->cast(view.dtype());
  if (v.ndim() > after) {
    // One row for every true: the k-th goes where the mask is true for the k-th time.
    const auto axis = static_cast<int64_t>(v.ndim() - after - 1);
    const Tensor row =
        mask.flatten().cast(build::position_dtype(mask.dims().product().max())).cumsum(0) - 1;
    const bool one = v.dim(axis) == Dim(1);
    v = one ? v : v.index_select(axis, row.maximum(0));
    v = v.unflatten(axis, one ? Dims(std::vector<Dim>(mask.ndim(), 1)) : mask.dims());
  }
  view.assign(where.where(v, view));
}

/// The view with the positions of its index tensors written; `v` has the selection's shape.
Tensor with_written(const Basic& basic, const Tensor& v) {
  const Advanced a = advanced_part(basic);
  // The picked axes moved to the front and merged.
  Ints order;
  const auto p = static_cast<int64_t>(a.picked.size()), place = static_cast<int64_t>(a.place);
  for (int64_t i = 0; i < p; ++i) order.push_back(place + i);
  for (int64_t i = 0; i < static_cast<int64_t>(v.ndim()); ++i)
    if (i < place || i >= place + p) order.push_back(i);
  Dims shape = a.front.dims();
  shape[0] = a.positions.dims()[0];
  const Tensor written = scatter_at(a.front, 0, spread(a.positions, a.front),
                                    v.permute(order).reshape(shape), Fold::Set);
  // Back to the order of the view.
  Ints back = Ints::filled(a.to_front.size());
  Dims unmerged;
  const Dims seen = basic.view.dims();
  for (size_t i = 0; i < a.to_front.size(); ++i) {
    back[static_cast<size_t>(a.to_front[i])] = static_cast<int64_t>(i);
    unmerged.push_back(seen[static_cast<size_t>(a.to_front[i])]);
  }
  return written.reshape(unmerged).permute(back);
}

}  // namespace

Tensor& Tensor::index_put(const std::vector<Index>& given, const Operand& value, CallSite site) {
  const CallSiteScope scope(site);
  const std::vector<Index> filled = expanded(given, *this);
  if (const int64_t mask = lone_mask(filled); mask >= 0) {
    put_masked(*this, filled, static_cast<size_t>(mask), value);
    return *this;
  }
  const std::vector<Index> at = positions_of_masks(filled, *this);
  Basic basic = basic_part(*this, at);
  if (basic.tensors.empty()) {
    basic.view.assign(value);
    return *this;
  }
  const Dims selected = index(at).dims();
  Tensor v = value.tensor() ? value.tensor()->cast(dtype()) : full({}, value.scalar(), dtype());
  // As NumPy has it, axes of size 1 in front are none.
  while (v.ndim() > selected.size() && v.dim(0) == Dim(1)) v = v.squeeze(0);
  basic.view.assign(with_written(basic, v.expand(selected)));
  return *this;
}

// ---- gather and scatter

namespace {

void require_index(const char* tag, const Tensor& x, const Tensor& index, int64_t axis) {
  if (!is_int(index.dtype()))
    fail_type(tag, "the index must be of an integer dtype: got {} of shape {}; cast it",
              name(index.dtype()), index.dims().text());
  const Dims a = x.dims(), b = index.dims();
  bool fits = a.size() == b.size();
  for (size_t i = 0; fits && i < a.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || b[i].min() <= a[i].max();
  if (!fits)
    fail(tag,
         "an index of shape {} does not fit {}: the ranks must be equal, and only axis {} may be "
         "longer",
         b.text(), a.text(), axis);
}

/// `index` as places along axis, counted from the start. Where the host can see that all are, they
/// are not tested again; else outside ones are an error where it can see them.
Tensor places_in(const char* tag, const Tensor& index, int64_t axis, const Tensor& x) {
  const Dim n = x.dim(axis);
  if (n.is_static() && known_inside(index, n.value()))
    return bounded(index.cast(build::position_dtype(n.value())), n);
  require_known_inside(tag, index, axis, x);
  return from_start(index, n);
}

}  // namespace

Tensor Tensor::gather(int64_t axis, const Tensor& index, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("gather", axis, *this);
  require_index("gather", *this, index, a);
  return gather_at(*this, a, places_in("gather", index, a, *this));
}

Tensor Tensor::scatter(int64_t axis, const Tensor& index, const Operand& src, Fold combine,
                       CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("scatter", axis, *this);
  require_index("scatter", *this, index, a);
  const Tensor places = places_in("scatter", index, a, *this);
  const Tensor value = src.tensor() ? src.tensor()->cast(dtype()) : full({}, src.scalar(), dtype());
  if (value.ndim() != 0 && !(value.dims() == index.dims()))
    fail("scatter", "src of shape {} and index of shape {} must have equal shapes",
         value.dims().text(), index.dims().text());
  return scatter_at(*this, a, places, value.expand(index.dims()), combine);
}

Tensor gather_inside(const Tensor& x, int64_t axis, const Tensor& places) {
  const int64_t a = checked_axis("gather", axis, x);
  return gather_at(x, a, bounded(places, x.dim(a)));
}

namespace {

Tensor scatter_set(const Tensor& base, int64_t axis, const Tensor& places, const Tensor& src,
                   int64_t unique) {
  const OpScope scope(base, CallSite::here());
  const NodeRef sources[] = {base.node(), places.node(), src.node()};
  const int64_t ints[] = {checked_axis("scatter", axis, base), static_cast<int64_t>(Fold::Set),
                          unique};
  return scope.result(scope.g.make({Op::Scatter, base.dtype(), sources, ints}));
}

}  // namespace

Tensor scatter_distinct(const Tensor& base, int64_t axis, const Tensor& places, const Tensor& src) {
  return scatter_set(base, axis, places, src, 1);
}

Tensor bounded(const Tensor& places, const Dim& n) {
  NodeRef known = places.node();
  if (n.min() != n.max() || n.min() == 0 || bits(places.dtype()) > 32 ||
      (known->vmin >= 0 && known->vmax < n.min()))
    return places;
  return places.cast(DType::U32).minimum(n.max() - 1);
}

Tensor permuted(const Tensor& x, int64_t axis, const Tensor& places) {
  return scatter_set(x, axis, bounded(places, x.dim(axis)), x, 2);
}

Tensor added_at(const Tensor& places, int64_t bins, const Tensor& x) {
  const OpScope scope(places, CallSite::here());
  Dims shape = places.dims();
  shape.back() = bins;
  const Tensor zeros = Tensor::zeros(shape, x.dtype()), src = x.expand(places.dims());
  const NodeRef sources[] = {zeros.node(), places.node(), src.node()};
  const int64_t ints[] = {static_cast<int64_t>(places.ndim()) - 1, static_cast<int64_t>(Fold::Add),
                          0};
  return scope.result(scope.g.make({Op::Scatter, x.dtype(), sources, ints}));
}

int64_t counting_blocks(const Tensor& places, int64_t bins) {
  constexpr int64_t kBlocks = 64;  // enough for every machine
  constexpr int64_t kLeastBlock = 4096;
  constexpr int64_t kTimesBins = 8;  // what follows looks at the counts of all blocks
  const int64_t n = std::max<int64_t>(1, places.size(-1));
  const int64_t rows = std::max<int64_t>(1, places.dims().product().max() / n);
  const int64_t least = std::max(kLeastBlock, kTimesBins * bins);
  return std::clamp<int64_t>(std::min(kBlocks / rows, n / least), 1, kBlocks);
}

Tensor counts_in_blocks(const Tensor& places, int64_t bins) {
  const int64_t n = places.size(0), blocks = counting_blocks(places, bins);
  const Tensor one = Tensor::ones({}, DType::I32);
  if (blocks == 1) return added_at(places, bins, one);
  const int64_t most = n / blocks * blocks;
  const Tensor front = places.index({Slice(0, most)}).reshape({blocks, most / blocks});
  const Tensor rest = added_at(places.index({Slice(most, n)}), bins, one);
  return added_at(front, bins, one).sum(0) + rest;
}

Tensor cumcount(const Tensor& first, int64_t axis, const Tensor& index) {
  const OpScope scope(first, CallSite::here());
  const NodeRef sources[] = {first.node(), index.node()};
  const int64_t ints[] = {checked_axis("cumcount", axis, first)};
  return scope.result(scope.g.make({Op::CumCount, first.dtype(), sources, ints}));
}

Tensor Tensor::index_select(int64_t axis, const Tensor& positions, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("index_select", axis, *this);
  if (positions.ndim() != 1)
    fail("index_select", "positions are 1-D: got shape {}", positions.dims().text());
  if (!is_int(positions.dtype()))
    fail_type("index_select", "positions must be integers: got {}; cast them",
              name(positions.dtype()));
  const auto selected = [a](const Tensor& x, const Tensor& at_positions) {
    std::vector<Index> list(static_cast<size_t>(a), Index(Slice()));
    list.emplace_back(at_positions);
    return x.index(list);
  };
  const Dim n = dim(a);
  if (!n.is_static() || !known_inside(positions, n.value())) return selected(*this, positions);
  // What was looked at need not be looked at again: one trace does for all.
  return called("index_select", {a}, {*this, positions}, [&](const Tensors& in) {
    const Tensor places = in[1].cast(build::position_dtype(n.value()));
    return Tensors{selected(in[0], bounded(places, n))};
  })[0];
}

}  // namespace weft
