// Resizing along one axis: which elements an output is made of, with which weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::onnx {

/// How a place of the output becomes one of the input, and what is read there. The modes by their
/// names in ONNX.
struct ResizeRule {
  std::string mode = "nearest";  ///< nearest, linear, cubic
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";  ///< or "simple", that of opset 10
  double cubic = -0.75;
  bool antialias = false, exclude_outside = false;
};
/// One axis: n elements to `outputs` by a scale, of the region [begin, end] (shares of the axis).
struct ResizedAxis {
  int64_t n, outputs;
  double scale, begin = 0, end = 1;
};
/// As many elements and weights for every output: (outputs, count), row-major.
struct ResizeTaps {
  size_t count = 1;
  std::vector<int32_t> at;
  std::vector<double> weight;
  std::vector<int32_t> outside;  ///< per output: 1 where a cropping mode reads beyond the ends
};
ResizeTaps taps_of(const ResizeRule& rule, const ResizedAxis& axis);

}  // namespace weft::onnx
