// Reading images between their pixels: what deformed convolutions and GridSample share.
#pragma once

#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::onnx {

/// The pixels of x (n, c, spatial...) at whole places, one tensor (n, m) for every spatial axis, as
/// (n, c, m); 0 where a place is outside.
Tensor pixels_at(const Tensor& x, const std::vector<Tensor>& places);
/// The same at any places: linear between the neighbours along each axis.
Tensor between_pixels(const Tensor& x, const std::vector<Tensor>& places);

}  // namespace weft::onnx
