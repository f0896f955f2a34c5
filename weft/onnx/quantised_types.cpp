#include "weft/onnx/quantised_types.h"

#include <cmath>

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

/// 0, 1/2, 1, 3/2, 2, 3, 4, 6 and their negatives: steps of 1/2, 1 and 2, halves to even.
Tensor rounded_to_float4(const Tensor& x) {
  const Tensor size = x.abs().clamp_max(6);
  const Tensor step = (size < 2).where(0.5, (size < 4).where(1.0, 2.0)).cast(size.dtype());
  return ((size / step).round() * step).copysign(x).cast(DType::F32);
}

/// Numbers from here on are nearer to what would come after the largest than to that.
double first_too_large(DType dtype) {
  const FloatFormat& f = float_format(dtype);
  const double most = float_max(dtype);
  const int exponent = std::ilogb(most);
  return most + std::ldexp(0.5, exponent - f.mantissa_bits);
}

Tensor rounded_to_float8(const Tensor& x, DType dtype, bool saturate) {
  const double most = float_max(dtype);
  if (saturate) return x.clamp(-most, most).cast(dtype);
  if (float_format(dtype).specials == Specials::Ieee) return x.cast(dtype);
  return (x.abs() > first_too_large(dtype)).where(NAN, x).cast(x.dtype()).cast(dtype);
}

}  // namespace

bool is_float_type(ElementType type) { return is_float(dtype_of(type)); }

Value clamped_to(const Tensor& whole, ElementType type) {
  for (const Range& r : kRanges)
    if (r.type == type) return {whole.clamp(r.low, r.high).cast(dtype_of(type)), type};
  return {whole.cast(dtype_of(type)), type};
}

Value rounded_to(const Tensor& x, ElementType type, bool saturate) {
  const DType dtype = dtype_of(type);
  if (type == ElementType::Float4E2M1) return {rounded_to_float4(x), type};
  if (is_float8(dtype)) return {rounded_to_float8(x, dtype, saturate), type};
  if (is_float(dtype)) return {x.cast(dtype), type};
  return clamped_to(x.round(), type);
}

}  // namespace weft::onnx
