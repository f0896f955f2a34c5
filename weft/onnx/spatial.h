// Kernels, strides, dilations and padding of convolutions and pools, from a node's attributes.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

struct Spatial {
  Ints kernel, stride, dilation, before, after;

  /// Of x (n, channels, spatial...), with auto_pad worked out. `kernel` is what the attribute says
  /// where it is given: an Error where both are and differ.
  static Spatial of(const NodeCall& call, const Tensor& x, const Ints& kernel = {});
  size_t axes() const { return kernel.size(); }
  /// How far a kernel reaches along an axis.
  int64_t reach(size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  /// As ConvOptions and PoolOptions take it: pairs from the last axis to the first.
  Ints padding() const;
  bool is_padded() const;
};

/// Sizes of the spatial axes of a weight (out, in, kernel...).
Ints kernel_of(const NodeCall& call, const Tensor& weight);
/// ceil_mode, which says nothing where auto_pad does.
bool rounds_up(const NodeCall& call);
/// "NOTSET", "VALID", "SAME_UPPER" or "SAME_LOWER".
std::string auto_pad(const NodeCall& call);

}  // namespace weft::onnx
