#include "weft/onnx/quantised_types.h"

namespace weft::onnx {

namespace {

struct Range {
  ElementType type;
  double low, high;
};

constexpr Range kRanges[] = {
    {ElementType::Uint2, 0, 3},
    {ElementType::Int2, -2, 1},
    {ElementType::Uint4, 0, 15},
    {ElementType::Int4, -8, 7},
    {ElementType::Uint8, 0, 255},
    {ElementType::Int8, -128, 127},
    {ElementType::Uint16, 0, 65535},
    {ElementType::Int16, -32768, 32767},
    {ElementType::Int32, -2147483648.0, 2147483647.0},
};

}  // namespace

Value clamped_to(const Tensor& whole, ElementType type) {
  for (const Range& r : kRanges)
    if (r.type == type) return {whole.clamp(r.low, r.high).cast(dtype_of(type)), type};
  return {whole.cast(dtype_of(type)), type};
}

}  // namespace weft::onnx
