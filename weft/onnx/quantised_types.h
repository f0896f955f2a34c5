// Integers that numbers are quantised to.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

/// Whole numbers of any dtype as an integer type, in dtype_of(type): what is outside saturates.
Value clamped_to(const Tensor& whole, ElementType type);
/// round(x) + zero, ties to even, as an integer type of up to 16 bits; what is outside saturates.
/// x in f32; the zero point may be undefined.
Value quantised_to(const Tensor& x, const Tensor& zero, ElementType type);
/// (x - zero) * scale of one scale and integers of up to 16 bits, as this type; it knows where it
/// came from.
Value dequantised(Dequantised from, ElementType to);
/// Whether x was made of bytes by this scale and zero point, known ones: then it is quantised by
/// them to these bytes again.
bool comes_from(const Value& x, const Value& scale, const Value& zero);

}  // namespace weft::onnx
