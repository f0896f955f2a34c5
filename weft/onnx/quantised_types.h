// Types that numbers are quantised to: ranges, and rounding to the floats of few bits.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

bool is_float_type(ElementType type);
/// x, of a float dtype, as the nearest number of a type, in dtype_of(type). Integers: halves to
/// even, what is outside saturates. Floats of 8 bits saturate too, or become infinite or NaN; those
/// of 4 bits (OCP Microscaling, 2023) always saturate.
Value rounded_to(const Tensor& x, ElementType type, bool saturate = true);
/// Numbers of an integer type that are whole already.
Value clamped_to(const Tensor& whole, ElementType type);

}  // namespace weft::onnx
