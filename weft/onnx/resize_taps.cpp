#include "weft/onnx/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace weft::onnx {

namespace {

/// Where output i lies in the input. `length` is the size by the scale, which `outputs` is rounded
/// down from.
double place_of(const ResizeRule& r, const ResizedAxis& a, int64_t i) {
  const auto x = static_cast<double>(i), n = static_cast<double>(a.n),
             outputs = static_cast<double>(a.outputs);
  const double length = a.scale * n, middle = (x + 0.5) / a.scale - 0.5;
  if (r.coordinates == "align_corners") return length == 1 ? 0 : x * (n - 1) / (length - 1);
  if (r.coordinates == "asymmetric") return x / a.scale;
  if (r.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (r.coordinates == "pytorch_half_pixel") return length == 1 ? -0.5 : middle;
  if (r.coordinates == "half_pixel_symmetric") return n / 2 * (1 - outputs / length) + middle;
  if (r.coordinates == "tf_crop_and_resize")
    return length == 1 ? (a.begin + a.end) * (n - 1) / 2
                       : a.begin * (n - 1) + x * (a.end - a.begin) * (n - 1) / (length - 1);
  return middle;
}

double nearest_of(const ResizeRule& r, const ResizedAxis& a, double x) {
  if (r.nearest == "floor") return std::floor(x);
  if (r.nearest == "ceil") return std::ceil(x);
  if (r.nearest == "simple") return a.scale < 1 ? std::ceil(x) : std::trunc(x);
  if (r.nearest == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

/// Keys' kernel.
double cubic(double t, double a) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

double weight_of(const ResizeRule& r, double distance) {
  if (r.mode == "cubic") return cubic(distance, r.cubic);
  return std::max(0.0, 1 - std::fabs(distance));
}

/// Elements that the kernel reaches around a place, stretched by `stretch`.
void add_kernel(const ResizeRule& r, const ResizedAxis& a, double place, double stretch,
                ResizeTaps& taps) {
  const double reach = (r.mode == "cubic" ? 2 : 1) * stretch;
  const auto first = static_cast<int64_t>(std::ceil(place - reach));
  const size_t begin = taps.weight.size();
  double sum = 0;
  for (size_t k = 0; k < taps.count; ++k) {
    const int64_t at = first + static_cast<int64_t>(k);
    const bool inside = at >= 0 && at < a.n;
    const double w = weight_of(r, (place - static_cast<double>(at)) / stretch);
    taps.at.push_back(static_cast<int32_t>(std::clamp<int64_t>(at, 0, a.n - 1)));
    taps.weight.push_back(r.exclude_outside && !inside ? 0 : w);
    sum += taps.weight.back();
  }
  // Weights of a stretched kernel and of a part of one do not add up to 1.
  const bool uneven = (r.exclude_outside || stretch > 1) && sum != 0;
  for (size_t k = begin; uneven && k < taps.weight.size(); ++k) taps.weight[k] /= sum;
}

}  // namespace

ResizeTaps taps_of(const ResizeRule& r, const ResizedAxis& a) {
  ResizeTaps taps;
  const double stretch = r.antialias && a.scale < 1 ? 1 / a.scale : 1;
  const bool nearest = r.mode == "nearest";
  if (!nearest)
    taps.count = static_cast<size_t>(std::ceil(2 * (r.mode == "cubic" ? 2 : 1) * stretch)) +
                 (stretch > 1 ? 1 : 0);
  for (int64_t i = 0; i < a.outputs; ++i) {
    const double place = place_of(r, a, i);
    const bool crops = r.coordinates == "tf_crop_and_resize";
    taps.outside.push_back(crops && (place < 0 || place > static_cast<double>(a.n - 1)));
    if (!nearest) {
      add_kernel(r, a, place, stretch, taps);
      continue;
    }
    const double at = std::clamp(nearest_of(r, a, place), 0.0, static_cast<double>(a.n - 1));
    taps.at.push_back(static_cast<int32_t>(at));
    taps.weight.push_back(1);
  }
  return taps;
}

}  // namespace weft::onnx
