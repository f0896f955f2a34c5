#include "weft/tensor/image.h"

#include <algorithm>
#include <cmath>

#include "weft/tensor/access.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/pooling.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/windows.h"

namespace weft {

// ---- resizing along one axis: fixed positions and weights

namespace {

struct Tap {
  std::vector<int32_t> at;
  std::vector<double> weight;
};

/// Where output i's middle lies in the source, in elements.
double middle(int64_t i, int64_t n, int64_t outputs, bool align_corners) {
  if (align_corners)
    return outputs > 1 ? static_cast<double>(i * (n - 1)) / static_cast<double>(outputs - 1) : 0;
  return (static_cast<double>(i) + 0.5) * static_cast<double>(n) / static_cast<double>(outputs) -
         0.5;
}

/// Keys' kernel with a = -3/4.
double cubic(double t) {
  constexpr double a = -0.75;
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

std::vector<Tap> taps(int64_t n, int64_t outputs, Resize mode, bool align_corners) {
  require_table("interpolate", outputs);
  const int64_t count = mode == Resize::Cubic ? 4 : 2, before = mode == Resize::Cubic ? 1 : 0;
  std::vector<Tap> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < outputs; ++i) {
    double x = middle(i, n, outputs, align_corners);
    if (mode == Resize::Linear) x = std::max(x, 0.0);
    const double whole = std::floor(x);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = static_cast<int64_t>(whole) + k - before;
      const double distance = x - static_cast<double>(at);
      Tap& tap = all[static_cast<size_t>(k)];
      tap.at.push_back(static_cast<int32_t>(std::clamp<int64_t>(at, 0, n - 1)));
      tap.weight.push_back(mode == Resize::Cubic ? cubic(distance) : 1 - std::fabs(distance));
    }
  }
  return all;
}

/// v along axis, 1 elsewhere.
Tensor along(const Tensor& v, const Tensor& x, int64_t axis) {
  Dims shape(std::vector<Dim>(x.ndim(), 1));
  shape[static_cast<size_t>(axis)] = v.dim(0);
  return v.reshape(shape);
}

Tensor weighted(const Tensor& x, int64_t axis, const std::vector<Tap>& taps) {
  Tensor sum;
  for (const Tap& tap : taps) {
    const Tensor weight = constant_table(tap.weight, {tap.weight.size()}, x).cast(x.dtype());
    const Tensor part =
        x.index_select(axis, constant_table(tap.at, {tap.at.size()}, x)) * along(weight, x, axis);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

/// The most binary places at which all weights stay below 2^15: PyTorch's fixed point for bytes.
int fixed_places(const std::vector<Tap>& taps) {
  double most = 0;
  for (const Tap& tap : taps)
    for (const double w : tap.weight) most = std::max(most, std::fabs(w));
  int places = 0;
  while (places < 22 && std::floor(std::ldexp(most, places + 1) + 0.5) < 32768) ++places;
  return places;
}

/// Of bytes, in f32: weights of fixed point, and the nearest byte, halves up.
Tensor weighted_bytes(const Tensor& x, int64_t axis, std::vector<Tap> taps) {
  const int places = fixed_places(taps);
  for (Tap& tap : taps)
    for (double& w : tap.weight) w = std::ldexp(std::floor(std::ldexp(w, places) + 0.5), -places);
  return (weighted(x, axis, taps) + 0.5).floor().clamp(0, 255);
}

Tensor nearest(const Tensor& x, int64_t axis, int64_t outputs, bool exact) {
  require_table("interpolate", outputs);
  const int64_t n = x.size(axis);
  std::vector<int32_t> at;
  for (int64_t i = 0; i < outputs; ++i)
    at.push_back(static_cast<int32_t>(exact ? (2 * i + 1) * n / (2 * outputs) : i * n / outputs));
  return x.index_select(axis, constant_table(at, {outputs}, x));
}

}  // namespace

Tensor interpolate(const Tensor& given, const Ints& sizes, Resize mode, bool align_corners,
                   CallSite at) {
  const CallSiteScope site(at);
  if (mode == Resize::Area) return adaptive_avg_pool(given, sizes);
  const bool pick = mode == Resize::Nearest || mode == Resize::NearestExact;
  const bool bytes = given.dtype() == DType::U8;
  if (!pick && !bytes) require_float("interpolate", given);
  if (sizes.size() > given.ndim())
    fail("interpolate", "{} sizes for shape {}", sizes.size(), given.dims().text());
  Tensor x = pick ? given : given.cast(bytes ? DType::F32 : sum_dtype(given.dtype()));
  for (size_t i = sizes.size(); i-- > 0;) {
    const auto axis = static_cast<int64_t>(x.ndim() - sizes.size() + i);
    if (sizes[i] < 1 || x.size(axis) == 0)
      fail("interpolate", "axis {} of shape {} cannot be resized to {}: both must have elements",
           axis, given.dims().text(), sizes[i]);
    if (pick) {
      x = nearest(x, axis, sizes[i], mode == Resize::NearestExact);
    } else if (!bytes || x.size(axis) != sizes[i]) {
      const std::vector<Tap> ends = taps(x.size(axis), sizes[i], mode, align_corners);
      x = bytes ? weighted_bytes(x, axis, ends) : weighted(x, axis, ends);
    }
  }
  return x.cast(given.dtype());
}

// ---- sampling

namespace {

/// A coordinate in [-1, 1] as an element position of an axis of n, moved inside if asked for.
Tensor position_of(const Tensor& c, int64_t n, Outside outside, bool align_corners) {
  const auto size = static_cast<double>(n);
  const Tensor x = align_corners ? (c + 1) * ((size - 1) / 2) : ((c + 1) * size - 1) * 0.5;
  if (outside == Outside::Zeros) return x;
  Tensor inside = x;
  if (outside == Outside::Reflection) {
    // A triangle wave between the two borders, `span` apart.
    const double low = align_corners ? 0 : -0.5, span = align_corners ? size - 1 : size;
    const Tensor turn = span == 0 ? x * 0 : (x - low).abs() % (2 * span);
    inside = turn.minimum(2 * span - turn) + low;
  }
  return inside.clamp(0, size - 1);
}

/// The pixels (n, c, oh, ow) at whole (row, column), each (n, oh, ow); 0 outside.
Tensor pixels(const Tensor& x, const Tensor& row, const Tensor& column) {
  const int64_t h = x.size(2), w = x.size(3);
  const Tensor there = (row >= 0) & (row < static_cast<double>(h)) & (column >= 0) &
                       (column < static_cast<double>(w));
  const DType wide = build::position_dtype(h * w);
  const Tensor flat = row.cast(wide) * w + column.cast(wide);
  Dims shape{x.dim(0), x.dim(1)};
  for (size_t i = 1; i < row.ndim(); ++i) shape.push_back(row.dim(static_cast<int64_t>(i)));
  const Tensor at = there.where(flat, h * w).unsqueeze(1).expand(shape);
  return x.flatten(2, 3).gather(2, at.flatten(2, -1)).reshape(shape);
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, bool take_nearest, Outside outside,
                   bool align_corners, CallSite at) {
  const CallSiteScope site(at);
  require_float("grid_sample", x);
  if (x.ndim() != 4 || grid.ndim() != 4 || !(grid.dim(-1) == Dim(2)) || !(grid.dim(0) == x.dim(0)))
    fail("grid_sample",
         "an image {} and a grid {} do not fit: they are (n, c, h, w) and (n, oh, "
         "ow, 2)",
         x.dims().text(), grid.dims().text());
  // 16 bits do not tell the elements of a long axis apart.
  const Tensor image = x.cast(sum_dtype(x.dtype())), places = grid.cast(sum_dtype(grid.dtype()));
  const Tensor column =
      position_of(places.index({kEllipsis, 0}), x.size(3), outside, align_corners);
  const Tensor row = position_of(places.index({kEllipsis, 1}), x.size(2), outside, align_corners);
  if (take_nearest) return pixels(x, row.detach().round(), column.detach().round());
  const Tensor top = row.floor().detach(), left = column.floor().detach();
  const Tensor down = (row - top).unsqueeze(1), right = (column - left).unsqueeze(1);
  const Tensor mixed = pixels(image, top, left) * (1 - down) * (1 - right) +
                       pixels(image, top, left + 1) * (1 - down) * right +
                       pixels(image, top + 1, left) * down * (1 - right) +
                       pixels(image, top + 1, left + 1) * down * right;
  return mixed.cast(x.dtype());
}

// ---- patches

Tensor unfold(const Tensor& x, const Ints& kernel, const PoolOptions& o, CallSite at) {
  const CallSiteScope site(at);
  const size_t spatial = kernel.size();
  if (x.ndim() != spatial + 2)
    fail("unfold", "a kernel of {} axes does not fit shape {}: it is (n, c, spatial...)", spatial,
         x.dims().text());
  const Ints stride =
      windows::steps("unfold", "stride", o.stride.empty() ? Ints(1) : o.stride, spatial);
  const Tensor w =
      windows::over("unfold", x.pad(windows::pad_amounts("unfold", x, o.padding, spatial)), kernel,
                    stride, windows::steps("unfold", "dilation", o.dilation, spatial));
  // (n, c, places..., kernel...) to (n, c, kernel..., places...).
  Ints order{0, 1};
  const auto k = static_cast<int64_t>(spatial);
  for (int64_t i = 0; i < k; ++i) order.push_back(2 + k + i);
  for (int64_t i = 0; i < k; ++i) order.push_back(2 + i);
  return w.permute(order).flatten(2 + k, -1).flatten(1, 1 + k);
}

Tensor fold(const Tensor& columns, const Ints& sizes, const Ints& kernel, const PoolOptions& o,
            CallSite at) {
  const CallSiteScope site(at);
  int64_t window = 1;
  for (const int64_t k : kernel)  // 0: absurd
    window = window < 1 || k < 1 || k > INT32_MAX / window ? 0 : window * k;
  if (window < 1 || columns.ndim() != 3 || columns.size(1) % window != 0 ||
      sizes.size() != kernel.size())
    fail("fold",
         "columns {} and a kernel of {} elements do not fit: they are (n, c * kernel, "
         "places), and there is a size for every axis of the kernel",
         columns.dims().text(), window);
  Dims shape{columns.dim(0), columns.size(1) / window};
  for (const int64_t n : sizes) shape.push_back(n);
  Tensor image = Tensor::zeros(shape, columns.dtype());
  image.requires_grad_();  // no constant: a value of its own to have the derivative of
  const Tensor patches = unfold(image, kernel, o);
  if (!(patches.dims() == columns.dims()))
    fail("fold", "columns {} do not come from an image of shape {}, which has {}",
         columns.dims().text(), shape.text(), patches.dims().text());
  return patches.gradient({image}, columns)[0];
}

// ---- augmentation

namespace {

void require_images(const char* tag, const Tensor& x, int64_t height, int64_t width) {
  if (x.ndim() != 4) fail(tag, "images are (n, c, h, w): got shape {}", x.dims().text());
  if (height < 0 || width < 0 || height > x.size(2) || width > x.size(3))
    fail(tag, "({}, {}) cannot be cut from images of shape {}", height, width, x.dims().text());
}

/// (n, size): size consecutive positions at a random place of an axis of length, for each image.
Tensor random_run(const Tensor& x, int64_t length, int64_t size) {
  const Tensor begin = Tensor::randint(0, length - size + 1, {x.dim(0), 1});
  return begin + Tensor::arange(Dim(size));
}

}  // namespace

Tensor center_crop(const Tensor& x, int64_t height, int64_t width, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() < 2 || height > x.size(-2) || width > x.size(-1) || height < 0 || width < 0)
    fail("center_crop", "({}, {}) cannot be cut from shape {}", height, width, x.dims().text());
  const int64_t top = (x.size(-2) - height) / 2, left = (x.size(-1) - width) / 2;
  return x.index({kEllipsis, Slice(top, top + height), Slice(left, left + width)});
}

Tensor random_crop(const Tensor& x, int64_t height, int64_t width, CallSite at) {
  const CallSiteScope site(at);
  require_images("random_crop", x, height, width);
  const Dim n = x.dim(0), c = x.dim(1);
  const Tensor rows = random_run(x, x.size(2), height).reshape({n, 1, height, 1});
  const Tensor columns = random_run(x, x.size(3), width).reshape({n, 1, 1, width});
  return x.gather(2, rows.expand({n, c, height, x.dim(3)}))
      .gather(3, columns.expand({n, c, height, width}));
}

Tensor random_flip(const Tensor& x, double p, CallSite at) {
  const CallSiteScope site(at);
  require_images("random_flip", x, 0, 0);
  return (Tensor::rand({x.dim(0), 1, 1, 1}) < p).where(x.flip(-1), x);
}

std::pair<Tensor, Tensor> cutmix(const Tensor& x, const Tensor& labels, int64_t size, CallSite at) {
  const CallSiteScope site(at);
  require_images("cutmix", x, size, size);
  require_float("cutmix", labels);
  auto inside = [&](int64_t axis) {
    const int64_t length = x.size(axis);
    const Tensor begin = Tensor::randint(0, length - size + 1, {x.dim(0), 1});
    const Tensor place = Tensor::arange(Dim(length));
    return (place >= begin) & (place < begin + size);
  };
  const Dim n = x.dim(0);
  const Tensor box =
      inside(2).reshape({n, 1, x.dim(2), 1}) & inside(3).reshape({n, 1, 1, x.dim(3)});
  const Tensor other = Tensor::randperm(n.value());
  const double share =
      static_cast<double>(size * size) / static_cast<double>(x.size(2) * x.size(3));
  return {box.where(x[other], x), labels * (1 - share) + labels[other] * share};
}

// ---- channels and pixels

Tensor pixel_shuffle(const Tensor& x, int64_t r, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() < 3 || r < 1 || x.size(-3) % (r * r) != 0)
    fail("pixel_shuffle", "shape {} by {}: give (..., channels, h, w) with channels in {}s",
         x.dims().text(), r, r * r);
  const Tensor split = x.unflatten(-3, {-1, r, r});  // (..., c, r, r, h, w)
  return movedim(movedim(split, -4, -2), -4, -1).flatten(-4, -3).flatten(-2, -1);
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() < 3 || r < 1 || x.size(-2) % r != 0 || x.size(-1) % r != 0)
    fail("pixel_unshuffle", "shape {} by {}: give (..., channels, h, w) in multiples of {}",
         x.dims().text(), r, r);
  const Tensor split = x.unflatten(-1, {-1, r}).unflatten(-3, {-1, r});  // (..., c, h, r, w, r)
  return movedim(movedim(split, -3, -4), -1, -3).flatten(-5, -3);
}

Tensor channel_shuffle(const Tensor& x, int64_t groups, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() < 2 || groups < 1 || x.size(1) % groups != 0)
    fail("channel_shuffle", "channels of shape {} are not {} groups", x.dims().text(), groups);
  return x.unflatten(1, {groups, -1}).transpose(1, 2).flatten(1, 2);
}

namespace {

/// n places from -1 to 1: the middles of n parts, or both ends.
Tensor places(int64_t n, bool align_corners, const Tensor& like) {
  std::vector<double> at;
  for (int64_t i = 0; i < n; ++i) {
    const double ends = n > 1 ? 2.0 * static_cast<double>(i) / static_cast<double>(n - 1) - 1 : 0;
    const double middle = static_cast<double>(2 * i + 1) / static_cast<double>(n) - 1;
    at.push_back(align_corners ? ends : middle);
  }
  return constant_table(at, {n}, like).cast(like.dtype());
}

}  // namespace

Tensor affine_grid(const Tensor& theta, int64_t height, int64_t width, bool align_corners,
                   CallSite at) {
  const CallSiteScope site(at);
  if (theta.ndim() != 3 || theta.size(1) != 2 || theta.size(2) != 3)
    fail("affine_grid", "theta {} must be (n, 2, 3)", theta.dims().text());
  if (height < 1 || width < 1) fail("affine_grid", "an image of {} x {}", height, width);
  require_table("affine_grid", std::max(height, width));
  const Tensor x = places(width, align_corners, theta).expand({height, width});
  const Tensor y = places(height, align_corners, theta).unsqueeze(1).expand({height, width});
  const Tensor points = Tensor::stack({x, y, x.ones_like()}, -1).flatten(0, 1);
  return points.matmul(theta.T()).unflatten(1, {height, width});
}

}  // namespace weft
