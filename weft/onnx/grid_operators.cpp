// GridSample and AffineGrid. Semantics: the ONNX operator specification.
#include <array>

#include "weft/onnx/axes.h"
#include "weft/onnx/image_operators.h"
#include "weft/onnx/sampling.h"
#include "weft/tensor/image.h"

namespace weft::onnx {

namespace {

struct Sampling {
  std::string mode;  ///< linear, nearest, cubic
  Outside outside;
  bool align_corners;
};

Sampling sampling_of(const NodeCall& call) {
  std::string mode = call.text("mode", call.opset() < 20 ? "bilinear" : "linear");
  if (mode.starts_with("bi")) mode = mode.substr(2);
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    call.refuse("mode is '{}': give linear, nearest or cubic", mode);
  const std::string padding = call.text("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    call.refuse("padding_mode is '{}': give zeros, border or reflection", padding);
  const Outside outside = padding == "zeros"    ? Outside::Zeros
                          : padding == "border" ? Outside::Border
                                                : Outside::Reflection;
  return {mode, outside, call.integer("align_corners", 0) != 0};
}

/// A place moved inside of an axis of n, as its padding says.
Tensor moved_inside(const Tensor& place, int64_t n, const Sampling& s) {
  if (s.outside == Outside::Zeros) return place;
  const auto size = static_cast<double>(n);
  Tensor at = place;
  if (s.outside == Outside::Reflection) {
    // A triangle wave between the two borders, `span` apart.
    const double low = s.align_corners ? 0 : -0.5, span = s.align_corners ? size - 1 : size;
    const Tensor turn = span == 0 ? at * 0 : (at - low).abs() % (2 * span);
    at = turn.minimum(2 * span - turn) + low;
  }
  return at.clamp(0, size - 1);
}

/// Keys' weights (a = -3/4) of the elements -1, 0, 1, 2 after a whole place.
std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto near = [](const Tensor& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [](const Tensor& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

/// Four elements along each of two axes, each of them moved inside by itself.
Tensor cubic_between(const Tensor& x, const std::vector<Tensor>& places, const Sampling& s) {
  const Tensor top = places[0].floor().detach(), left = places[1].floor().detach();
  const auto down = cubic_weights(places[0] - top), right = cubic_weights(places[1] - left);
  Tensor sum;
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j) {
      const double row = static_cast<double>(i) - 1, column = static_cast<double>(j) - 1;
      const Tensor pixels = pixels_at(
          x, {moved_inside(top + row, x.size(2), s), moved_inside(left + column, x.size(3), s)});
      const Tensor part = pixels * (down[i] * right[j]).unsqueeze(1);
      sum = sum.defined() ? sum + part : part;
    }
  return sum;
}

Tensor sampled(const Tensor& x, std::vector<Tensor> places, const Sampling& s) {
  if (s.mode == "cubic") return cubic_between(x, places, s);
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = moved_inside(places[i], x.size(static_cast<int64_t>(i) + 2), s);
  if (s.mode == "linear") return between_pixels(x, places);
  for (Tensor& place : places) place = place.round();
  return pixels_at(x, places);
}

}  // namespace

Values grid_sample(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& grid = call.tensor(1);
  const Sampling s = sampling_of(call);
  const auto axes = static_cast<int64_t>(x.ndim()) - 2;
  if (axes < 1 || grid.ndim() != x.ndim() || !(grid.dim(-1) == Dim(axes)) ||
      !(grid.dim(0) == x.dim(0)))
    call.refuse("image {} and grid {}: give (n, c, spatial...) and (n, places..., {})",
                x.dims().text(), grid.dims().text(), axes);
  if (s.mode == "cubic" && axes != 2) call.refuse("cubic sampling along {} axes: give 2", axes);
  // The grid lists the last axis first: -1 and 1 are its ends.
  std::vector<Tensor> places;
  for (int64_t i = 0; i < axes; ++i) {
    const Tensor at = grid.index({kEllipsis, axes - 1 - i}).flatten(1).cast(wide(grid.dtype()));
    const auto n = static_cast<double>(x.size(i + 2));
    places.push_back(s.align_corners ? (at + 1) * ((n - 1) / 2) : ((at + 1) * n - 1) * 0.5);
  }
  Dims shape{x.dim(0), x.dim(1)};
  for (int64_t i = 1; i <= axes; ++i) shape.push_back(grid.dim(i));
  const Tensor pixels = is_float(x.dtype()) ? x.cast(wide(x.dtype())) : x;
  return {sampled(pixels, places, s).reshape(shape).cast(x.dtype())};
}

namespace {

/// n places from -1 to 1: the middles of n parts, or both ends.
std::vector<double> places_of(int64_t n, bool align_corners) {
  std::vector<double> at;
  for (int64_t i = 0; i < n; ++i) {
    const double ends = n > 1 ? 2.0 * static_cast<double>(i) / static_cast<double>(n - 1) - 1 : 0;
    at.push_back(align_corners ? ends
                               : static_cast<double>(2 * i + 1) / static_cast<double>(n) - 1);
  }
  return at;
}

}  // namespace

Values affine_grid(const NodeCall& call) {
  const Tensor& theta = call.tensor(0);
  const std::vector<int64_t> size = call.ints(1);
  const size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  if (theta.ndim() != 3 || (axes != 2 && axes != 3) ||
      !(theta.dim(1) == Dim(axes) && theta.dim(2) == Dim(axes + 1)))
    call.refuse("theta {} for {} sizes: give (n, 2, 3) and 4, or (n, 3, 4) and 5",
                theta.dims().text(), size.size());
  const bool align_corners = call.integer("align_corners", 0) != 0;
  constexpr int64_t kMostPlaces = int64_t{1} << 24;
  Dims shape(std::vector<Dim>(size.begin() + 2, size.end()));
  std::vector<Tensor> parts;  // the last axis first, then 1
  for (size_t i = axes; i-- > 0;) {
    const int64_t n = size[i + 2];
    if (n < 1 || n > kMostPlaces) call.refuse("size {}: give 1 to {}", n, kMostPlaces);
    const Tensor at = table(places_of(n, align_corners), {n}, theta).cast(theta.dtype());
    parts.push_back(along_axis(at, axes, static_cast<int64_t>(i)).expand(shape));
  }
  parts.push_back(parts[0].ones_like());
  const Tensor points = Tensor::stack(parts, -1).flatten(0, -2);
  Dims grid = shape;
  grid.insert(0, theta.dim(0));
  grid.push_back(axes);
  return {points.matmul(theta.transpose(1, 2)).reshape(grid)};
}

}  // namespace weft::onnx
