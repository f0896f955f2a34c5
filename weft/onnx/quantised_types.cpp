#include "weft/onnx/quantised_types.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/onnx/axes.h"

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

bool are_same(const Value& a, const Value& b) {
  if (!a || !b) return !a && !b;
  const auto x = a.constant(), y = b.constant();
  return x && y && x->dtype == y->dtype && x->numel() == 1 && y->numel() == 1 &&
         std::ranges::equal(x->bytes, y->bytes);
}

const Range* range_of(ElementType type) {
  const auto* const found = std::ranges::find(kRanges, type, &Range::type);
  return found == std::end(kRanges) ? nullptr : found;
}

}  // namespace

Value clamped_to(const Tensor& whole, ElementType type) {
  const Range* r = range_of(type);
  return {(r ? whole.clamp(r->low, r->high) : whole).cast(dtype_of(type)), type};
}

// Numbers below 2^22 and this one have a sum whose last bit is 1: adding rounds to even, and leaves
// the whole number in the low bits of the sum.
Value quantised_to(const Tensor& x, const Tensor& zero, ElementType type) {
  constexpr int32_t kBits = 0x4B400000;
  constexpr double kShift = 12582912;  // 1.5 * 2^23, what these bits stand for
  const Range* r = range_of(type);
  WEFT_CHECK(r && r->high < kShift / 4 && x.dtype() == DType::F32, "{} of {}", name(type),
             weft::name(x.dtype()));
  Tensor inside;
  if (zero.defined()) {
    const Tensor z = zero.cast(DType::F32);
    const Tensor low = r->low - z, high = r->high - z;
    inside = (x < low).where(low, x);
    inside = (inside > high).where(high, inside);
  } else {
    inside = x.clamp(r->low, r->high);
  }
  Tensor whole = (inside + kShift).bitcast(DType::I32) - kBits;
  if (zero.defined()) whole = whole + zero.cast(DType::I32);
  return {whole.cast(dtype_of(type)), type};
}

Value dequantised(Dequantised from, ElementType to) {
  const DType run = wide(dtype_of(to));
  Tensor y = from.x.tensor();
  if (from.zero) y = y.cast(DType::I32) - from.zero.tensor().reshape({}).cast(DType::I32);
  y = (y.cast(run) * from.scale.tensor().reshape({}).cast(run)).cast(dtype_of(to));
  return Value::dequantised(std::move(y), to, std::move(from));
}

bool comes_from(const Value& x, const Value& scale, const Value& zero) {
  const Dequantised* from = x.dequantised_from();
  return from && bits(from->x.dtype()) == 8 && are_same(from->scale, scale) &&
         are_same(from->zero, zero);
}

}  // namespace weft::onnx
