// Pools. Semantics: the ONNX operator specification.
#include <algorithm>
#include <cmath>

#include "weft/onnx/axes.h"
#include "weft/onnx/convolution_operators.h"
#include "weft/onnx/host.h"
#include "weft/onnx/image_order.h"
#include "weft/onnx/quantised_types.h"
#include "weft/onnx/spatial.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/pooling.h"

namespace weft::onnx {

namespace {

/// With padding of less than a window, so that each has an element.
Spatial windows_of(const NodeCall& call, const Tensor& x) {
  const Spatial s = Spatial::of(call, x);
  for (size_t i = 0; i < s.axes(); ++i)
    if (s.before[i] < 0 || s.after[i] < 0 || s.before[i] >= s.reach(i) || s.after[i] >= s.reach(i))
      call.refuse(
          "pads {} and {} of spatial axis {}: windows reach over {} places, pads must be "
          "less",
          s.before[i], s.after[i], i, s.reach(i));
  return s;
}

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

namespace {

/// A window is a rectangle: maxima along rows of maxima along columns, which are fewer than those
/// of all elements, and lie side by side. A third to a half of the time from 3 x 3 on.
Tensor max_of_rectangles(const Tensor& x, const Spatial& s, bool ceil_mode) {
  const auto along = [&](const Tensor& t, size_t i) {
    const auto one = [i](int64_t n, int64_t other) {
      return i == 0 ? Ints{n, other} : Ints{other, n};
    };
    const Ints padding =
        i == 0 ? Ints{0, 0, s.before[0], s.after[0]} : Ints{s.before[1], s.after[1], 0, 0};
    return t.max_pool2d(one(s.kernel[i], 1), {.stride = one(s.stride[i], 1),
                                              .dilation = one(s.dilation[i], 1),
                                              .padding = padding,
                                              .ceil_mode = ceil_mode});
  };
  return along(along(x, 0).contiguous(), 1);
}

}  // namespace

namespace {

Tensor maxima(const Tensor& x, const Spatial& s, const PoolOptions& options) {
  if (has_channels_last(x)) return in_image_order(x.max_pool2d(s.kernel, options));
  const bool large = s.axes() == 2 && s.kernel[0] > 5 && s.kernel[1] > 5;
  return large ? max_of_rectangles(x, s, options.ceil_mode) : x.max_pool2d(s.kernel, options);
}

/// A scale that is known to keep what it multiplies in order.
bool keeps_order(const Value& scale) {
  const auto known = scale.constant();
  return known && known->numel() == 1 && element(*known, 0).as_double() > 0;
}

}  // namespace

Values max_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Spatial s = windows_of(call, x);
  const PoolOptions options = options_of(call, s);
  const Dequantised* from = call.input(0).dequantised_from();
  if (!call.wants(1) && from && keeps_order(from->scale)) {
    const Tensor whole = maxima(from->x.tensor(), s, options);
    return {dequantised({Value(whole, from->x.type()), from->scale, from->zero, 0},
                        call.input(0).type())};
  }
  if (!call.wants(1)) return {maxima(x, s, options)};
  const ValuesAndPositions found = max_pool2d_with_positions(x, s.kernel, options);
  const bool column_major = call.integer("storage_order", 0) != 0;
  return {found.values, flat_positions(found.positions, x, column_major)};
}

Values average_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Spatial s = windows_of(call, x);
  PoolOptions options = options_of(call, s);
  options.count_include_pad = call.integer("count_include_pad", 0) != 0 || !s.is_padded();
  return {x.avg_pool2d(s.kernel, options)};
}

Values lp_pool(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Spatial s = windows_of(call, x);
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
