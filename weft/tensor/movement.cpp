// Movement: views of the same storage where NumPy would give one, copies elsewhere.
#include <algorithm>
#include <numeric>

#include "weft/graph/index_value.h"
#include "weft/tensor/access.h"
#include "weft/tensor/strides.h"

namespace weft {

using build::AxisList;
using build::Extents;

namespace {

/// `shape` with its -1, if any, computed from the number of elements.
Extents resolved(Graph& g, NodeRef x, const Dims& shape) {
  Extents dims = nodes_of(shape);
  NodeRef total = build::product(g, x->shape->span());
  NodeRef known = g.index(1);
  NodeRef* open = nullptr;
  for (NodeRef& d : dims) {
    if (!is_int_const(d, -1)) {
      if (d->vmin < 0) fail("reshape", "size {} in {} is negative", Dim(d).text(), shape.text());
      known = g.mul(known, d);
      continue;
    }
    if (open)
      fail("reshape", "{} has more than one -1: only one size can be computed", shape.text());
    open = &d;
  }
  if (open) *open = is_int_const(known, 0) ? g.index(0) : g.idiv(total, known);
  NodeRef made = build::product(g, dims);
  // Symbolic sizes may be equal without having one normal form; bounds still refute.
  const bool refuted =
      is_const(made) && is_const(total)
          ? made != total
          : made->vmin > total->vmax || made->vmax < total->vmin ||
                (is_bound(made) && is_bound(total) && bound_value(made) != bound_value(total));
  if (refuted)
    fail("reshape", "{} has {} elements but {} has {}: the products of the sizes must be equal",
         shape_text(x), Dim(total).text(), shape.text(),
         open ? "no whole number for -1" : Dim(made).text());
  return dims;
}

}  // namespace

Tensor Tensor::reshape(const Dims& shape, CallSite at) const {
  const OpScope scope(*this, at);
  NodeRef chain = TensorAccess::chain(scope.g, *this);
  const Extents dims = resolved(scope.g, chain, shape);
  if (!chain_) return TensorAccess::view(*this, build::reshape(scope.g, chain, dims));
  const auto strides = strides_of(scope.g, chain);
  if (strides && reshaped_strides(scope.g, chain, *strides, dims))
    return TensorAccess::view(*this, build::reshape(scope.g, chain, dims));
  return scope.result(build::reshape(scope.g, node(), dims));
}

Tensor Tensor::expand(const Dims& shape, CallSite at) const {
  const OpScope scope(*this, at);
  NodeRef chain = TensorAccess::chain(scope.g, *this);
  Extents dims = nodes_of(shape);
  if (dims.size() < chain->rank())
    fail("expand", "{} has fewer axes than {}: expanding never removes axes", shape.text(),
         shape_text(chain));
  const size_t added = dims.size() - chain->rank();
  for (size_t i = 0; i < dims.size(); ++i) {
    NodeRef from = i < added ? scope.g.index(1) : chain->dim(i - added);
    if (is_int_const(dims[i], -1)) dims[i] = from;
    if (dims[i] != from && !is_int_const(from, 1))
      fail("expand", "axis {} of {} has size {} and cannot become {}: only sizes of 1 repeat",
           i - added, shape_text(chain), Dim(from).text(), Dim(dims[i]).text());
  }
  return TensorAccess::view(*this, build::broadcast_to(scope.g, chain, dims));
}

Tensor Tensor::permute(const Ints& axes, CallSite at) const {
  const OpScope scope(*this, at);
  if (axes.size() != ndim())
    fail("permute", "{} axes for shape {}: list each of its {} axes once", axes.size(),
         dims().text(), ndim());
  AxisList order;
  for (const int64_t a : axes) order.push_back(checked_axis("permute", a, *this));
  checked_axes("permute", axes, *this);
  return TensorAccess::view(*this,
                            build::permute(scope.g, TensorAccess::chain(scope.g, *this), order));
}

Tensor Tensor::transpose(int64_t a, int64_t b, CallSite at) const {
  const CallSiteScope site(at);
  Ints order = Ints::filled(ndim());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(checked_axis("transpose", a, *this))],
            order[static_cast<size_t>(checked_axis("transpose", b, *this))]);
  return permute(order);
}

Tensor Tensor::T(CallSite at) const { return transpose(-1, -2, at); }

Tensor Tensor::flip(const Axes& axes, CallSite at) const {
  const OpScope scope(*this, at);
  const AxisList list = checked_axes("flip", axes, *this);
  return TensorAccess::view(*this, build::flip(scope.g, TensorAccess::chain(scope.g, *this), list));
}

Tensor Tensor::shrink(const std::vector<DimPair>& ranges, CallSite at) const {
  const OpScope scope(*this, at);
  NodeRef chain = TensorAccess::chain(scope.g, *this);
  if (ranges.size() != chain->rank())
    fail("shrink", "{} ranges for shape {}: give (begin, end) for every axis", ranges.size(),
         shape_text(chain));
  Extents begin, size;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto& [from, to] = ranges[i];
    const Dim n(chain->dim(i));
    if (from.max() < 0 || from.min() > to.max() || (n - to).max() < 0)
      fail_index("shrink", "range ({}, {}) of axis {} is not inside shape {}", from.text(),
                 to.text(), i, shape_text(chain));
    begin.push_back(from.node());
    size.push_back((to - from).node());
  }
  const AxisList ones(ranges.size(), 1);
  return TensorAccess::view(*this, build::shrink(scope.g, chain, begin, size, ones));
}

Tensor Tensor::squeeze(CallSite at) const {
  const CallSiteScope site(at);
  Dims kept;
  for (const Dim& d : dims())
    if (!(d == Dim(1))) kept.push_back(d);
  return reshape(kept);
}

Tensor Tensor::squeeze(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  const auto a = static_cast<size_t>(checked_axis("squeeze", axis, *this));
  Dims kept = dims();
  if (!(kept[a] == Dim(1))) return *this;
  kept.erase(a);
  return reshape(kept);
}

Tensor Tensor::unsqueeze(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  Dims shape = dims();
  shape.insert(static_cast<size_t>(checked_axis("unsqueeze", axis, ndim() + 1, shape.text())), 1);
  return reshape(shape);
}

Tensor Tensor::flatten(int64_t first, int64_t last, CallSite at) const {
  const CallSiteScope site(at);
  if (ndim() == 0) return reshape({1});
  const int64_t a = checked_axis("flatten", first, *this), b = checked_axis("flatten", last, *this);
  if (a > b) fail("flatten", "first axis {} is after last axis {}", first, last);
  Dims shape, merged;
  const Dims all = dims();
  for (int64_t i = 0; i < static_cast<int64_t>(all.size()); ++i) {
    (i >= a && i <= b ? merged : shape).push_back(all[static_cast<size_t>(i)]);
    if (i == b) shape.push_back(merged.product());
  }
  return reshape(shape);
}

Tensor Tensor::unflatten(int64_t axis, const Dims& sizes, CallSite at) const {
  const CallSiteScope site(at);
  const auto a = static_cast<size_t>(checked_axis("unflatten", axis, *this));
  Dims shape;
  const Dims all = dims();
  for (size_t i = 0; i < all.size(); ++i) {
    if (i != a) shape.push_back(all[i]);
    if (i != a) continue;
    for (const Dim& d : sizes) shape.push_back(d);
  }
  return reshape(shape);
}

namespace {

Tensor empty_windows(const Tensor& x, size_t axis, const Dim& count) {
  std::vector<DimPair> ranges;
  for (const Dim& d : x.dims()) ranges.emplace_back(0, d);
  ranges[axis] = {0, 0};
  Dims shape = x.dims();
  shape[axis] = count;
  shape.push_back(0);
  return x.shrink(ranges).reshape(shape);
}

}  // namespace

Tensor Tensor::window(int64_t axis, int64_t size, int64_t stride, int64_t dilation,
                      CallSite at) const {
  const OpScope scope(*this, at);
  const int64_t a = checked_axis("window", axis, *this);
  if (size < 0 || stride < 1 || dilation < 1)
    fail("window",
         "size {}, stride {} and dilation {}: a size must be at least 0, the others at least 1",
         size, stride, dilation);
  const Dim n = dim(a);
  if (size == 0) return empty_windows(*this, static_cast<size_t>(a), n / stride + 1);
  const int64_t reach = dilation * (size - 1) + 1;
  if (n.max() < reach)
    fail("window",
         "a window of {} (dilation {}) does not fit axis {} of shape {}: it reaches over {}", size,
         dilation, axis, dims().text(), reach);
  NodeRef chain = TensorAccess::chain(scope.g, *this);
  return TensorAccess::view(*this, build::window(scope.g, chain, a, size, stride, dilation));
}

// ---- pieces

std::vector<Tensor> Tensor::split(const std::vector<int64_t>& sizes, int64_t axis,
                                  CallSite at) const {
  const CallSiteScope site(at);
  const auto a = static_cast<size_t>(sized_axis("split", axis, *this));
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  for (const int64_t n : sizes)
    if (n < 0) fail("split", "a piece of size {}: give at least 0", n);
  if (total != size(axis))
    fail("split", "the sizes add up to {} but axis {} of shape {} has {}", total, axis,
         dims().text(), size(axis));
  std::vector<Tensor> parts;
  std::vector<DimPair> ranges;
  for (const Dim& d : dims()) ranges.emplace_back(0, d);
  int64_t begin = 0;
  for (const int64_t n : sizes) {
    ranges[a] = {begin, begin + n};
    parts.push_back(shrink(ranges));
    begin += n;
  }
  return parts;
}

std::vector<Tensor> Tensor::split(int64_t piece, int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  if (piece < 1) fail("split", "pieces of size {}: give at least 1", piece);
  sized_axis("split", axis, *this);
  std::vector<int64_t> sizes;
  for (int64_t left = size(axis); left > 0; left -= piece) sizes.push_back(std::min(piece, left));
  return split(sizes, axis);
}

std::vector<Tensor> Tensor::chunk(int64_t parts, int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  if (parts < 1) fail("chunk", "{} parts: give at least 1", parts);
  sized_axis("chunk", axis, *this);
  return split(std::max<int64_t>(1, (size(axis) - 1) / parts + 1), axis);
}

// ---- copies

Tensor Tensor::pad(const std::vector<DimPair>& amounts, Scalar value, CallSite at) const {
  const OpScope scope(*this, at);
  Graph& g = scope.g;
  if (amounts.size() != ndim())
    fail("pad", "{} amounts for shape {}: give (before, after) for every axis", amounts.size(),
         dims().text());
  std::vector<DimPair> kept;
  Extents before, after;
  const Dims shape = dims();
  for (size_t i = 0; i < amounts.size(); ++i) {
    const auto& [b, a] = amounts[i];
    kept.emplace_back(b.max() < 0 ? Dim(0) - b : Dim(0), a.max() < 0 ? shape[i] + a : shape[i]);
    before.push_back(b.max() < 0 ? g.index(0) : b.node());
    after.push_back(a.max() < 0 ? g.index(0) : a.node());
    if ((kept[i].second - kept[i].first).max() < 0)
      fail("pad", "cutting ({}, {}) from axis {} of shape {} leaves less than nothing", b.text(),
           a.text(), i, shape.text());
  }
  const AxisList none(amounts.size(), 0);
  NodeRef x = shrink(kept).node();
  NodeRef padded = build::pad(g, x, before, after, none);
  const Value fill = value.as(dtype());
  if (padded == x || fill == Value::of(dtype(), 0)) return scope.result(padded);
  // Zeros where the padding is, by padding ones.
  NodeRef inside =
      build::pad(g, build::broadcast_to(g, g.boolean(true), x->shape->span()), before, after, none);
  return scope.result(g.where(inside, padded, g.constant(fill)));
}

Tensor Tensor::cat(const std::vector<Tensor>& parts, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  if (parts.empty()) fail("cat", "there is nothing to join: give at least one tensor");
  const int64_t a = checked_axis("cat", axis, parts[0]);
  DType dtype = parts[0].dtype();
  for (const Tensor& p : parts) {
    Dims expected = parts[0].dims();
    const Dims shape = p.dims();
    if (shape.size() == expected.size())
      expected[static_cast<size_t>(a)] = shape[static_cast<size_t>(a)];
    if (!(shape == expected))
      fail("cat", "shapes {} and {} differ outside axis {}: all other sizes must be equal",
           parts[0].dims().text(), shape.text(), axis);
    dtype = promote(dtype, p.dtype());
  }
  const OpScope scope(parts[0], CallSite::here());
  std::vector<NodeRef> nodes;
  nodes.reserve(parts.size());
  for (const Tensor& p : parts) nodes.push_back(scope.g.cast(p.node(), dtype));
  return scope.result(build::cat(scope.g, nodes, a));
}

Tensor Tensor::stack(const std::vector<Tensor>& parts, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  if (parts.empty()) fail("stack", "there is nothing to join: give at least one tensor");
  std::vector<Tensor> layers;
  const int64_t a =
      checked_axis("stack", axis, parts[0].ndim() + 1, parts[0].dims().text() + " with a new axis");
  for (const Tensor& p : parts) {
    if (!(p.dims() == parts[0].dims()))
      fail("stack", "shapes {} and {} differ: they must be equal", parts[0].dims().text(),
           p.dims().text());
    layers.push_back(p.unsqueeze(a));
  }
  return cat(layers, a);
}

Tensor Tensor::repeat(const Ints& counts, CallSite at) const {
  const CallSiteScope site(at);
  if (counts.size() < ndim())
    fail("repeat", "{} counts for shape {}: give one per axis", counts.size(), dims().text());
  const size_t added = counts.size() - ndim();
  Dims single, many, merged;
  const Dims shape = dims();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) fail("repeat", "count {} is negative", counts[i]);
    const Dim n = i < added ? Dim(1) : shape[i - added];
    single.push_back(1), single.push_back(n);
    many.push_back(counts[i]), many.push_back(n);
    merged.push_back(n * counts[i]);
  }
  return unshared(reshape(single).expand(many).reshape(merged));
}

Tensor Tensor::repeat_interleave(int64_t count, int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("repeat_interleave", axis, *this);
  if (count < 0) fail("repeat_interleave", "{} repeats: give at least 0", count);
  Dims many = dims();
  many.insert(static_cast<size_t>(a) + 1, count);
  return unshared(unsqueeze(a + 1).expand(many).flatten(a, a + 1));
}

namespace {

/// Of an axis whose size is chosen per run.
Tensor rolled(const Tensor& x, int64_t shift, int64_t axis, const Dim& n) {
  const Dim forth = Dim(std::abs(shift)) % n;
  const Dim split_at = shift > 0 ? n - forth : forth;
  std::vector<DimPair> front, back;
  for (const Dim& d : x.dims()) front.emplace_back(0, d);
  back = front;
  front[static_cast<size_t>(axis)] = {0, split_at};
  back[static_cast<size_t>(axis)] = {split_at, n};
  return Tensor::cat({x.shrink(back), x.shrink(front)}, axis);
}

Tensor rolled(const Tensor& x, int64_t shift, int64_t axis) {
  if (const Dim n = x.dim(axis); !n.is_static()) return rolled(x, shift, axis, n);
  const int64_t n = x.size(axis);
  const int64_t split_at = n == 0 ? 0 : ((-shift % n) + n) % n;
  if (split_at == 0) return x;
  const std::vector<Tensor> parts = x.split({split_at, n - split_at}, axis);
  return Tensor::cat({parts[1], parts[0]}, axis);
}

}  // namespace

Tensor Tensor::roll(const Ints& shifts, const Axes& axes, CallSite at) const {
  const CallSiteScope site(at);
  if (axes.empty() && shifts.size() == 1)
    return unshared(rolled(flatten(), shifts[0], 0).reshape(dims()));
  if (axes.size() != shifts.size())
    fail("roll", "{} shifts for {} axes: give one shift for each axis", shifts.size(), axes.size());
  Tensor y = *this;
  for (size_t i = 0; i < axes.size(); ++i)
    y = rolled(y, shifts[i], checked_axis("roll", axes[i], *this));
  return unshared(y);
}

Tensor Tensor::diagonal(int64_t offset, int64_t first, int64_t second, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("diagonal", first, *this);
  const int64_t b = checked_axis("diagonal", second, *this);
  if (a == b) fail("diagonal", "axes {} and {} are the same one", first, second);
  Ints order;
  for (int64_t i = 0; i < static_cast<int64_t>(ndim()); ++i)
    if (i != a && i != b) order.push_back(i);
  order.push_back(a), order.push_back(b);
  const Tensor x = permute(order);
  constexpr int64_t kFar = int64_t{1} << 62;  // further than any matrix is wide, and negated safely
  const int64_t far = std::clamp(offset, -kFar, kFar);
  const int64_t down = std::max<int64_t>(0, -far), right = std::max<int64_t>(0, far);
  const int64_t n = std::max<int64_t>(0, std::min(size(a) - down, size(b) - right));
  std::vector<DimPair> square;
  for (size_t i = 0; i + 2 < ndim(); ++i) square.emplace_back(0, x.dim(static_cast<int64_t>(i)));
  const bool none = n == 0;  // outside the matrix, whose axes may be shorter than the offset
  square.emplace_back(none ? 0 : down, none ? 0 : down + n);
  square.emplace_back(none ? 0 : right, none ? 0 : right + n);
  // Of n x n elements, those n + 1 apart: a view, though all elements of a part of the matrix in a
  // row are none.
  const OpScope scope(x, at);
  const Tensor part = x.shrink(square);
  Extents flat = nodes_of(part.dims());
  flat.pop_back();
  flat.back() = scope.g.index(n * n);
  NodeRef rows = build::reshape(scope.g, TensorAccess::chain(scope.g, part), flat);
  return TensorAccess::view(part, rows).index({kEllipsis, Slice({}, {}, n + 1)});
}

}  // namespace weft
