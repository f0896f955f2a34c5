// Rows of image_operators.cpp that have files of their own.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

// resize_operators.cpp
Values resize(const NodeCall& call);
Values resize_10(const NodeCall& call);
Values upsample(const NodeCall& call);
// grid_operators.cpp
Values grid_sample(const NodeCall& call);
Values affine_grid(const NodeCall& call);
// region_operators.cpp
Values roi_align(const NodeCall& call);
Values crop_and_resize(const NodeCall& call);
Values non_max_suppression(const NodeCall& call);

}  // namespace weft::onnx
