// Padding by what is there, grids and diagonals.
#include <algorithm>

#include "weft/tensor/access.h"
#include "weft/tensor/movement.h"

namespace weft {

namespace {

Tensor cut(const Tensor& x, size_t axis, const Dim& begin, const Dim& end) {
  std::vector<DimPair> ranges;
  for (const Dim& d : x.dims()) ranges.emplace_back(0, d);
  ranges[axis] = {begin, end};
  return x.shrink(ranges);
}

/// What is before or after the n elements of axis: `count` of them.
Tensor border(const Tensor& x, size_t axis, PadMode mode, int64_t count, bool before) {
  const auto a = static_cast<int64_t>(axis);
  const int64_t n = x.size(a), most = mode == PadMode::Reflect ? n - 1 : n;
  if (n == 0 || (mode != PadMode::Replicate && count > most))
    fail("pad", "{} of axis {} of shape {}: it has only {} to repeat", count, axis, x.dims().text(),
         std::max<int64_t>(0, most));
  if (mode == PadMode::Replicate) {
    Dims shape = x.dims();
    shape[axis] = count;
    return cut(x, axis, before ? 0 : n - 1, before ? 1 : n).expand(shape);
  }
  if (mode == PadMode::Circular)
    return before ? cut(x, axis, n - count, n) : cut(x, axis, 0, count);
  return (before ? cut(x, axis, 1, 1 + count) : cut(x, axis, n - 1 - count, n - 1)).flip(a);
}

}  // namespace

Tensor pad(const Tensor& given, const std::vector<DimPair>& amounts, PadMode mode, Scalar value,
           CallSite at) {
  const CallSiteScope site(at);
  if (mode == PadMode::Constant || amounts.size() != given.ndim()) return given.pad(amounts, value);
  std::vector<DimPair> cuts;
  for (const auto& [b, a] : amounts) cuts.emplace_back(min(b, 0), min(a, 0));
  // A circle is closed by what is left. Elsewhere what is cut off may be what the other end
  // repeats: it goes last.
  const bool first = mode == PadMode::Circular;
  Tensor x = first ? given.pad(cuts) : given;
  for (size_t axis = 0; axis < amounts.size(); ++axis) {
    const int64_t before = amounts[axis].first.value(), after = amounts[axis].second.value();
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(border(x, axis, mode, before, true));
    parts.push_back(x);
    if (after > 0) parts.push_back(border(x, axis, mode, after, false));
    if (parts.size() > 1) x = Tensor::cat(parts, static_cast<int64_t>(axis));
  }
  return first ? x : x.pad(cuts);
}

std::vector<DimPair> pads_from_last(const Tensor& x, const Dims& amounts, CallSite at) {
  const CallSiteScope site(at);
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > x.ndim())
    fail("pad", "{} amounts for shape {}: give (before, after) for the last axes, the last first",
         amounts.size(), x.dims().text());
  std::vector<DimPair> pairs(x.ndim(), DimPair(0, 0));
  for (size_t i = 0; i < amounts.size(); i += 2)
    pairs[x.ndim() - 1 - i / 2] = {amounts[i], amounts[i + 1]};
  return pairs;
}

namespace {

void require_size_per_axis(const char* tag, const Tensor& x,
                           const std::vector<std::optional<Dim>>& sizes) {
  if (sizes.size() != x.ndim())
    fail(tag, "{} sizes for shape {}: give one for every axis", sizes.size(), x.dims().text());
}

}  // namespace

Tensor pad_to(const Tensor& x, const std::vector<std::optional<Dim>>& sizes, Scalar value,
              CallSite at) {
  const CallSiteScope site(at);
  require_size_per_axis("pad_to", x, sizes);
  std::vector<DimPair> amounts(x.ndim(), DimPair(0, 0));
  const Dims shape = x.dims();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i]) continue;
    amounts[i].second = *sizes[i] - shape[i];
    if (amounts[i].second.min() < 0)
      fail("pad_to", "axis {} of shape {} is longer than {}: shrink_to() cuts", i, shape.text(),
           sizes[i]->text());
  }
  return x.pad(amounts, value);
}

Tensor shrink_to(const Tensor& x, const std::vector<std::optional<Dim>>& sizes, CallSite at) {
  const CallSiteScope site(at);
  require_size_per_axis("shrink_to", x, sizes);
  std::vector<DimPair> ranges;
  const Dims shape = x.dims();
  for (size_t i = 0; i < sizes.size(); ++i) {
    ranges.emplace_back(0, sizes[i].value_or(shape[i]));
    const Dim& kept = ranges.back().second;
    if (kept.max() < 0 || (shape[i] - kept).max() < 0)
      fail("shrink_to", "axis {} of shape {} cannot be cut to {}: pad_to() lengthens", i,
           shape.text(), kept.text());
  }
  return x.shrink(ranges);
}

// ---- grids and diagonals

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, bool xy, CallSite at) {
  const CallSiteScope site(at);
  if (axes.empty()) fail("meshgrid", "there are no axes: give at least one tensor");
  Dims shape;
  for (const Tensor& t : axes) {
    if (t.ndim() > 1) fail("meshgrid", "axes are 1-D: got shape {}", t.dims().text());
    shape.push_back(t.dims().product());
  }
  std::vector<Tensor> grids;
  for (size_t k = 0; k < axes.size(); ++k) {
    Dims one(std::vector<Dim>(axes.size(), 1));
    one[k] = shape[k];
    const Tensor grid = axes[k].reshape(one).expand(shape);
    grids.push_back(xy && axes.size() > 1 ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

Tensor diag(const Tensor& x, int64_t offset, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() == 2) return x.diagonal(offset);
  if (x.ndim() != 1) fail("diag", "takes a vector or a matrix: got shape {}", x.dims().text());
  const int64_t n = x.size(0), down = std::max<int64_t>(0, -offset),
                right = std::max<int64_t>(0, offset);
  // A column followed by n zeros in every row, read n to a row, is a diagonal.
  const Tensor square = x.unsqueeze(1).pad({{0, 0}, {0, n}}).flatten().shrink({{0, n * n}});
  return square.reshape({n, n}).pad({{down, right}, {right, down}});
}

Tensor movedim(const Tensor& x, int64_t from, int64_t to, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("movedim", from, x), b = checked_axis("movedim", to, x);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < static_cast<int64_t>(x.ndim()); ++i)
    if (i != a) order.push_back(i);
  order.insert(order.begin() + b, a);
  return x.permute(order);
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, CallSite at) {
  const CallSiteScope site(at);
  if (tensors.empty()) return {};
  const OpScope scope(tensors[0], at);
  std::vector<NodeRef> nodes;
  for (const Tensor& t : tensors) nodes.push_back(t.node());
  const build::Extents dims = broadcast("broadcast_tensors", nodes);
  std::vector<Tensor> all;
  for (NodeRef n : nodes) all.push_back(scope.result(build::broadcast_to(scope.g, n, dims)));
  return all;
}

}  // namespace weft
