// DType: the element types, what each can hold, and which type two of them meet in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace weft {

enum class DType : uint8_t {
#define X(id, e, name, bits, kind, c, numpy, safetensors) e = id,
#include "weft/dtype/dtypes.def"
#undef X
};

enum class DTypeKind : uint8_t { Void, Bool, Signed, Unsigned, Float, Index };

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int bits;
  DTypeKind kind;
  std::string_view c_name, numpy_name, safetensors_name;
};

// Indexed by DType.
inline constexpr DTypeRow kDTypes[] = {
#define X(id, e, name, bits, kind, c, numpy, safetensors) \
  {DType::e, name, bits, DTypeKind::kind, c, numpy, safetensors},
#include "weft/dtype/dtypes.def"
#undef X
};
inline constexpr size_t kDTypeCount = sizeof(kDTypes) / sizeof(kDTypes[0]);

constexpr DType kDefaultFloat = DType::F32;
constexpr DType kDefaultInt = DType::I32;

constexpr const DTypeRow& row(DType d) { return kDTypes[static_cast<size_t>(d)]; }
constexpr int bits(DType d) { return row(d).bits; }
constexpr DTypeKind kind(DType d) { return row(d).kind; }
constexpr std::string_view name(DType d) { return row(d).name; }

constexpr bool is_float(DType d) { return kind(d) == DTypeKind::Float; }
constexpr bool is_signed_int(DType d) { return kind(d) == DTypeKind::Signed; }
constexpr bool is_unsigned(DType d) { return kind(d) == DTypeKind::Unsigned; }
// Data integers: neither bool nor index.
constexpr bool is_int(DType d) { return is_signed_int(d) || is_unsigned(d); }
constexpr bool is_bool(DType d) { return d == DType::Bool; }
constexpr bool is_index(DType d) { return d == DType::Index; }
// Can live in a buffer.
constexpr bool is_data(DType d) { return d != DType::Void && d != DType::Index; }

// Bytes of n elements stored densely; n * bits must fit in 64 bits.
constexpr int64_t bytes_for(DType d, int64_t n) { return (n * bits(d) + 7) / 8; }

std::optional<DType> dtype_from_id(uint8_t id);
// By name or NumPy name; the other forms by their own function.
std::optional<DType> dtype_from_name(std::string_view text);
std::optional<DType> dtype_from_safetensors(std::string_view text);

// Limits of the integer types; index is bounded like i64.
constexpr int64_t int_min(DType d) {
  const bool has_sign = is_signed_int(d) || is_index(d);
  return has_sign ? static_cast<int64_t>(~uint64_t{0} << (bits(d) - 1)) : 0;
}
constexpr uint64_t int_max(DType d) {
  if (is_bool(d)) return 1;
  const bool has_sign = is_signed_int(d) || is_index(d);
  return ~uint64_t{0} >> (64 - bits(d) + (has_sign ? 1 : 0));
}
// How the bits of a float type are divided, and what stands for what is not a number. f8e4m3 and
// f8e5m2 are the formats of Micikevicius et al. (2022) and of OCP's OFP8 (2023); the fnuz forms
// (finite, NaN, unsigned zero) those of Noune et al. (2022), with one more in the bias and the bits
// of -0 for NaN.
enum class Specials : uint8_t {
  Ieee,     // the largest exponent: infinities and NaN
  NanOnly,  // all ones: NaN; no infinities
  Fnuz,     // the sign alone: NaN; no infinities and no -0
};
struct FloatFormat {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
};
inline constexpr FloatFormat kFloatFormats[] = {
    {DType::F8E4M3, 4, 3, 7, Specials::NanOnly},  {DType::F8E5M2, 5, 2, 15, Specials::Ieee},
    {DType::F8E4M3Fnuz, 4, 3, 8, Specials::Fnuz}, {DType::F8E5M2Fnuz, 5, 2, 16, Specials::Fnuz},
    {DType::F16, 5, 10, 15, Specials::Ieee},      {DType::BF16, 8, 7, 127, Specials::Ieee},
    {DType::F32, 8, 23, 127, Specials::Ieee},     {DType::F64, 11, 52, 1023, Specials::Ieee},
};
constexpr const FloatFormat& float_format(DType d) {
  for (const FloatFormat& f : kFloatFormats)
    if (f.dtype == d) return f;
  return kFloatFormats[7];
}
// Stored only: computed with in f32, rounded after every op.
constexpr bool is_narrow_float(DType d) { return is_float(d) && bits(d) < 32; }
constexpr bool is_float8(DType d) { return is_float(d) && bits(d) == 8; }
constexpr bool is_half(DType d) { return is_float(d) && bits(d) == 16; }

constexpr double power_of_two(int exponent) {
  double x = 1;
  for (; exponent > 0; --exponent) x *= 2;
  for (; exponent < 0; ++exponent) x /= 2;
  return x;
}
// Bits of the significand with the hidden one: 11, 8, 24, 53.
constexpr int float_digits(DType d) { return float_format(d).mantissa_bits + 1; }
// The bits of the largest finite value.
constexpr uint64_t float_max_bits(DType d) {
  const FloatFormat& f = float_format(d);
  const uint64_t ones = (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.specials == Specials::Ieee) return ones - (uint64_t{1} << f.mantissa_bits);
  return f.specials == Specials::NanOnly ? ones - 1 : ones;
}
// The bits that numbers too large are rounded to, without their sign.
constexpr uint64_t float_overflow_bits(DType d) {
  switch (float_format(d).specials) {
    case Specials::Ieee: return float_max_bits(d) + 1;
    case Specials::NanOnly: return float_max_bits(d);
    default: return 0x80;
  }
}
// Largest finite value of a float type.
constexpr double float_max(DType d) {
  const FloatFormat& f = float_format(d);
  const uint64_t most = float_max_bits(d), hidden = uint64_t{1} << f.mantissa_bits;
  const auto significand = static_cast<double>((most & (hidden - 1)) + hidden);
  return significand *
         power_of_two(static_cast<int>(most >> f.mantissa_bits) - f.bias - f.mantissa_bits);
}
// Nothing is larger: infinity where there is one.
constexpr double float_top(DType d) {
  const bool infinite = float_format(d).specials == Specials::Ieee;
  return infinite ? std::numeric_limits<double>::infinity() : float_max(d);
}
// Every value of `from` is one of `to`, infinities and -0 included.
constexpr bool float_holds(DType to, DType from) {
  const FloatFormat &a = float_format(to), &b = float_format(from);
  const bool specials = a.specials == Specials::Ieee || a.specials == b.specials;
  return specials && a.mantissa_bits >= b.mantissa_bits && float_max(to) >= float_max(from) &&
         a.bias + a.mantissa_bits >= b.bias + b.mantissa_bits;
}

// The type two tensors meet in: the least upper bound of
//   bool < {i8, u8};  i8 < i16 < i32 < i64;  u8 < {i16, u16};  u16 < {i32, u32};  u32 < {i64, u64};
//   integers < floats;  f8 of any kind < {f16, bf16} < f32 < f64, two kinds of f8: f16;
//   u64 with a signed integer: f32.
// Void when there is none (index or void with anything else).
DType promote(DType a, DType b);

}  // namespace weft
