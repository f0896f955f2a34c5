// Resize and Upsample. Semantics: the ONNX operator specification.
#include <algorithm>
#include <cmath>

#include "weft/onnx/axes.h"
#include "weft/onnx/image_operators.h"
#include "weft/onnx/resize_taps.h"

namespace weft::onnx {

namespace {

/// Column k of the taps, as an index.
template <class T>
std::vector<T> column(const std::vector<T>& all, size_t count, size_t k) {
  std::vector<T> one;
  for (size_t i = k; i < all.size(); i += count) one.push_back(all[i]);
  return one;
}

/// How often every element occurs, one after the other; 0 where it is not so.
int64_t repeats(const ResizeTaps& taps, int64_t n) {
  const auto outputs = static_cast<int64_t>(taps.at.size());
  if (taps.count != 1 || outputs % n != 0) return 0;
  const int64_t each = outputs / n;
  for (int64_t i = 0; i < outputs; ++i)
    if (taps.at[static_cast<size_t>(i)] != i / each) return 0;
  return each;
}

/// The matrix (outputs, n) of the weights.
Tensor matrix_of(const ResizeTaps& taps, int64_t n, const Tensor& x) {
  const size_t outputs = taps.outside.size();
  std::vector<double> m(outputs * static_cast<size_t>(n));
  for (size_t i = 0; i < taps.at.size(); ++i)
    m[i / taps.count * static_cast<size_t>(n) + static_cast<size_t>(taps.at[i])] += taps.weight[i];
  return table(m, {outputs, n}, x).cast(x.dtype());
}

constexpr size_t kMostTaps = 8;  // as many slices added up; a product with a matrix beyond

Tensor resized_along(const Tensor& x, int64_t axis, const ResizeTaps& taps) {
  const int64_t n = x.size(axis);
  if (const int64_t each = repeats(taps, n); each > 0)
    return each == 1 ? x : x.repeat_interleave(each, axis);
  const Dims outputs{taps.outside.size()};
  if (taps.count == 1) return x.index_select(axis, table(taps.at, outputs, x));
  if (taps.count > kMostTaps)
    return x.transpose(axis, -1).matmul(matrix_of(taps, n, x).T()).transpose(axis, -1);
  Tensor sum;
  for (size_t k = 0; k < taps.count; ++k) {
    const Tensor weight = table(column(taps.weight, taps.count, k), outputs, x).cast(x.dtype());
    const Tensor taken = x.index_select(axis, table(column(taps.at, taps.count, k), outputs, x));
    const Tensor part = taken * along_axis(weight, x.ndim(), axis);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

constexpr ResizedAxis kKept{1, 1, 1};  // of a symbolic size

struct Plan {
  ResizeRule rule;
  std::vector<int64_t> axes;
  std::vector<ResizedAxis> sizes;  ///< of these axes
  double extrapolation = 0;
};

/// Integers are what is in front of the point, or, as image libraries have it, the nearest of means
/// over areas.
Tensor as_dtype(const Tensor& y, DType dtype, bool nearest) {
  return (nearest && is_int(dtype) && is_float(y.dtype()) ? (y + 0.5).floor() : y).cast(dtype);
}

Values resized(const Tensor& x, const Plan& plan) {
  const bool weighs = plan.rule.mode != "nearest";
  Tensor y = weighs ? x.cast(wide_float(x.dtype())) : x;
  Tensor outside;
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const ResizedAxis& size = plan.sizes[i];
    const int64_t axis = plan.axes[i];
    const bool crops = plan.rule.coordinates == "tf_crop_and_resize";
    if (size.n == size.outputs && size.scale == 1 && !crops) continue;
    const ResizeTaps taps = taps_of(plan.rule, size);
    y = resized_along(y, axis, taps);
    if (std::ranges::find(taps.outside, 1) == taps.outside.end()) continue;
    const Tensor beyond =
        along_axis(table(taps.outside, {taps.outside.size()}, x), x.ndim(), axis) != 0;
    outside = outside.defined() ? outside | beyond : beyond;
  }
  if (outside.defined()) y = outside.where(plan.extrapolation, y).cast(y.dtype());
  return {as_dtype(y, x.dtype(), plan.rule.antialias)};
}

// ---- what nodes say

/// Sizes from scales, rounded down.
ResizedAxis by_scale(const NodeCall& call, int64_t n, double scale) {
  constexpr double kMost = 1e9;
  const double outputs = std::floor(scale * static_cast<double>(n));
  if (!(scale > 0) || outputs > kMost) call.refuse("scale {} for an axis of {}", scale, n);
  return {n, static_cast<int64_t>(outputs), scale};
}

ResizedAxis by_size(const NodeCall& call, int64_t n, int64_t outputs) {
  if (n < 1 || outputs < 0) call.refuse("size {} for an axis of {}", outputs, n);
  return {n, outputs, static_cast<double>(outputs) / static_cast<double>(n)};
}

/// One scale for all axes, so that the result is inside of the sizes asked for, or around them.
void keep_aspect(const NodeCall& call, const std::string& policy, std::vector<ResizedAxis>& sizes) {
  if (policy == "stretch" || sizes.empty()) return;
  if (policy != "not_larger" && policy != "not_smaller")
    call.refuse("keep_aspect_ratio_policy is '{}': give stretch, not_larger or not_smaller",
                policy);
  const auto less = [](const ResizedAxis& a, const ResizedAxis& b) { return a.scale < b.scale; };
  const double scale = policy == "not_larger" ? std::ranges::min_element(sizes, less)->scale
                                              : std::ranges::max_element(sizes, less)->scale;
  for (ResizedAxis& a : sizes) {
    a.scale = scale;
    a.outputs = static_cast<int64_t>(std::floor(scale * static_cast<double>(a.n) + 0.5));
  }
}

bool is_given(const NodeCall& call, size_t i) {
  return call.has(i) && !(call.input(i).dims().product() == Dim(0));
}

std::vector<int64_t> axes_of(const NodeCall& call, const Tensor& x) {
  std::vector<int64_t> axes;
  for (const int64_t a : call.ints("axes")) axes.push_back(call.axis(a, x.ndim()));
  if (axes.empty())
    for (size_t i = 0; i < x.ndim(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

void require_count(const NodeCall& call, std::string_view what, size_t count, size_t axes) {
  if (count != axes) call.refuse("{} {} for {} axes", count, what, axes);
}

void set_scales(const NodeCall& call, const Tensor& x, const std::vector<double>& scales, Plan& p) {
  require_count(call, "scales", scales.size(), p.axes.size());
  for (size_t i = 0; i < scales.size(); ++i)
    p.sizes.push_back(scales[i] == 1 && !x.dim(p.axes[i]).is_static()
                          ? kKept
                          : by_scale(call, x.size(p.axes[i]), scales[i]));
}

void set_sizes(const NodeCall& call, const Tensor& x, Plan& p) {
  const Dims sizes = call.sizes(3);
  require_count(call, "sizes", sizes.size(), p.axes.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    p.sizes.push_back(sizes[i] == x.dim(p.axes[i]) && !sizes[i].is_static()
                          ? kKept
                          : by_size(call, x.size(p.axes[i]), sizes[i].value()));
  keep_aspect(call, call.text("keep_aspect_ratio_policy", "stretch"), p.sizes);
}

void set_region(const NodeCall& call, Plan& p) {
  if (p.rule.coordinates != "tf_crop_and_resize") return;
  const std::vector<double> region = call.numbers(1);
  require_count(call, "numbers of roi", region.size(), 2 * p.axes.size());
  for (size_t i = 0; i < p.axes.size(); ++i) {
    p.sizes[i].begin = region[i];
    p.sizes[i].end = region[p.axes.size() + i];
  }
}

template <size_t count>
void require_one_of(const NodeCall& call, std::string_view what, const std::string& given,
                    const std::string_view (&names)[count]) {
  if (std::ranges::find(names, given) == std::end(names))
    call.refuse("{} '{}' is not known", what, given);
}

constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
constexpr std::string_view kCoordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
constexpr std::string_view kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                         "ceil"};

ResizeRule rule_of(const NodeCall& call) {
  ResizeRule r{.mode = call.text("mode", "nearest"),
               .coordinates = call.text("coordinate_transformation_mode", "half_pixel"),
               .nearest = call.text("nearest_mode", "round_prefer_floor"),
               .cubic = call.number("cubic_coeff_a", -0.75),
               .antialias = call.integer("antialias", 0) != 0,
               .exclude_outside = call.integer("exclude_outside", 0) != 0};
  require_one_of(call, "mode", r.mode, kModes);
  require_one_of(call, "coordinate_transformation_mode", r.coordinates, kCoordinates);
  require_one_of(call, "nearest_mode", r.nearest, kNearest);
  return r;
}

/// Of the first opsets: pixels are points at their upper left corners.
Values resized_simply(const NodeCall& call, const std::vector<double>& scales) {
  const Tensor& x = call.tensor(0);
  std::string mode = call.text("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  require_one_of(call, "mode", mode, kModes);
  Plan p{{.mode = mode, .coordinates = "asymmetric", .nearest = "simple"}, axes_of(call, x), {}};
  set_scales(call, x, scales, p);
  return resized(x, p);
}

}  // namespace

Values resize(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  Plan p{rule_of(call), axes_of(call, x), {}, call.number("extrapolation_value", 0)};
  if (is_given(call, 3))
    set_sizes(call, x, p);
  else if (is_given(call, 2))
    set_scales(call, x, call.numbers(2), p);
  else
    call.refuse("neither scales nor sizes are given: give one of them");
  set_region(call, p);
  return resized(x, p);
}

Values resize_10(const NodeCall& call) { return resized_simply(call, call.numbers(1)); }

Values upsample(const NodeCall& call) {
  if (call.opset() >= 9) return resized_simply(call, call.numbers(1));
  if (call.opset() >= 7) return resized_simply(call, call.numbers("scales"));
  return resized_simply(call, {1, 1, call.number("height_scale"), call.number("width_scale")});
}

}  // namespace weft::onnx
