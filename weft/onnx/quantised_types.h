// Integers that numbers are quantised to.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

/// Whole numbers of any dtype as an integer type, in dtype_of(type): what is outside saturates.
Value clamped_to(const Tensor& whole, ElementType type);

}  // namespace weft::onnx
