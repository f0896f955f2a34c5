// Images of bytes lie with their channels side by side in memory: sums of products of bytes take
// neighbours along the channels.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::onnx {

/// Channels from the last axis to axis 1, and back. Views.
Tensor channels_first(const Tensor& x);
Tensor channels_last(const Tensor& x);

/// Whether x (n, channels, spatial...) is a view, or made of views, of what has channels last.
bool has_channels_last(const Tensor& x);
/// The same values, with channels last in memory of their own if those that they are made of have.
Tensor in_image_order(const Tensor& x);

}  // namespace weft::onnx
