// Pools. Semantics: the ONNX operator specification.
#include <algorithm>
#include <cmath>

#include "weft/onnx/axes.h"
#include "weft/onnx/convolution_operators.h"
#include "weft/onnx/spatial.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/pooling.h"

namespace weft::onnx {

namespace {

PoolOptions options_of(const NodeCall& call, const Spatial& s) {
  return {.stride = s.stride,
          .dilation = s.dilation,
          .padding = s.padding(),
          .ceil_mode = rounds_up(call)};
}

Dim product_from(const Tensor& x, size_t first) {
  Dim all = 1;
  for (size_t i = first; i < x.ndim(); ++i) all = all * x.dim(static_cast<int64_t>(i));
  return all;
}

/// Places in the flat spatial axes of x as places in all of x: row-major, or (spatial axes)
/// column-major.
Tensor flat_positions(const Tensor& places, const Tensor& x, bool column_major) {
  Tensor inside = places.cast(DType::I64);
  if (column_major) {
    Tensor rest = inside;
    inside = rest.zeros_like();
    int64_t columns = product_from(x, 2).value();
    for (size_t i = x.ndim(); i-- > 2;) {
      const int64_t n = x.size(static_cast<int64_t>(i));
      columns /= n;
      inside = inside + rest % n * columns;
      rest = rest.floor_div(n);
    }
  }
  const Tensor planes = counted(x.dim(0) * x.dim(1), 1, 0, DType::I64);
  Dims shape{x.dim(0), x.dim(1)};
  for (size_t i = 2; i < x.ndim(); ++i) shape.push_back(1);
  return inside + planes.reshape(shape) * product_from(x, 2).value();
}

}  // namespace

Values max_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Spatial s = Spatial::of(call, x);
  const PoolOptions options = options_of(call, s);
  if (!call.wants(1)) return {x.max_pool2d(s.kernel, options)};
  const ValuesAndPositions found = max_pool2d_with_positions(x, s.kernel, options);
  const bool column_major = call.integer("storage_order", 0) != 0;
  return {found.values, flat_positions(found.positions, x, column_major)};
}

Values average_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Spatial s = Spatial::of(call, x);
  PoolOptions options = options_of(call, s);
  options.count_include_pad = call.integer("count_include_pad", 0) != 0 || !s.is_padded();
  return {x.avg_pool2d(s.kernel, options)};
}

Values lp_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Spatial s = Spatial::of(call, x);
  // p was a float in the first opset.
  const double p =
      call.opset() < 2 ? call.number("p", 2) : static_cast<double>(call.integer("p", 2));
  const Tensor y = lp_pool2d(x.cast(wide(x.dtype())).abs(), p, s.kernel, options_of(call, s));
  return {y.cast(x.dtype())};
}

Values global_average_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  return {x.mean(axes_from(2, x.ndim()), true)};
}

Values global_max_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  return {x.max(axes_from(2, x.ndim()), true)};
}

Values global_lp_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const double p =
      call.opset() < 2 ? call.number("p", 2) : static_cast<double>(call.integer("p", 2));
  return {vector_norm(x, p, axes_from(2, x.ndim()), true)};
}

Values max_unpool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Spatial s = Spatial::of(call, x);
  Dims shape{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < s.axes(); ++i) {
    const int64_t n = x.size(static_cast<int64_t>(i) + 2);
    shape.push_back((n - 1) * s.stride[i] + s.kernel[i] - s.before[i] - s.after[i]);
  }
  // Positions are those of the pool that is undone, whatever output_shape says.
  const Tensor flat = Tensor::zeros({shape.product()}, x.dtype())
                          .scatter(0, call.tensor(1).flatten(), x.flatten())
                          .reshape(shape);
  if (!call.has(2)) return {flat};
  const std::vector<int64_t> asked = call.ints(2);
  if (asked.size() != x.ndim())
    call.refuse("output_shape has {} numbers for {} axes", asked.size(), x.ndim());
  return {pad_to(flat, {asked.begin(), asked.end()})};
}

namespace {

/// (rois, bins, n): whether place i of an axis of n is in a bin of the region from `begin` to `end`
/// (rois).
Tensor bins_of(const Tensor& begin, const Tensor& end, int64_t bins, const Dim& n) {
  const Tensor length = (end - begin + 1).clamp_min(1).reshape({-1, 1});
  const Tensor bin = counted(bins, 2, 1).cast(length.dtype());
  const Tensor size = length / static_cast<double>(bins), origin = begin.reshape({-1, 1});
  const Tensor low = (bin * size).floor() + origin, high = ((bin + 1) * size).ceil() + origin;
  const Tensor place = counted(n, 3, 2).cast(length.dtype());
  return (place >= low.unsqueeze(-1)) & (place < high.unsqueeze(-1));
}

}  // namespace

// Bins are rectangles, so their maxima are maxima of columns of maxima of rows.
Values max_roi_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& regions = call.tensor(1);
  const std::vector<int64_t> shape = call.ints("pooled_shape");
  if (x.ndim() != 4 || regions.ndim() != 2 || !(regions.dim(1) == Dim(5)) || shape.size() != 2)
    call.refuse("input {}, regions {} and {} pooled sizes: give (n, c, h, w), (regions, 5) and 2",
                x.dims().text(), regions.dims().text(), shape.size());
  // Rounded to the nearest place, halves up.
  const Tensor at = (regions * call.number("spatial_scale", 1) + 0.5).floor();
  const auto column = [&](int64_t i) { return at.index({Slice(), i}); };
  const Tensor rows = bins_of(column(2), column(4), shape[0], x.dim(2)).unsqueeze(1).unsqueeze(-1);
  const Tensor columns =
      bins_of(column(1), column(3), shape[1], x.dim(3)).unsqueeze(1).unsqueeze(2);
  const Tensor pictures = x.index_select(0, regions.index({Slice(), 0}).cast(DType::I64));
  const Tensor by_row = rows.where(pictures.unsqueeze(2), -INFINITY).max(3);
  const Tensor most = columns.where(by_row.unsqueeze(3), -INFINITY).max(-1);
  return {(most == -INFINITY).where(0, most).cast(x.dtype())};
}

}  // namespace weft::onnx
