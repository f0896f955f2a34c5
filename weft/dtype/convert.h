// Number conversions, defined for every input: floats round to nearest even, float to int truncates
// and saturates (NaN is 0), int to int keeps the low bits.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "weft/dtype/dtype.h"

namespace weft {

// x rounded once, to nearest even, to a 16-bit format with these field widths. NaN stays NaN (made
// quiet, the payload's high bits kept).
template <int kExponentBits, int kMantissaBits, class Float>
constexpr uint16_t narrow_float(Float x) {
  using Bits = std::conditional_t<sizeof(Float) == 4, uint32_t, uint64_t>;
  constexpr int kFromMantissa = std::numeric_limits<Float>::digits - 1;
  constexpr int kFromBias = std::numeric_limits<Float>::max_exponent - 1;
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr int kShift = kFromMantissa - kMantissaBits;
  constexpr uint32_t kInfinity = ((1u << kExponentBits) - 1) << kMantissaBits;
  constexpr auto exponent = [](int e) { return static_cast<Bits>(e) << kFromMantissa; };
  constexpr int kTop = sizeof(Float) * 8 - 1;

  Bits u = std::bit_cast<Bits>(x);
  const uint32_t sign = static_cast<uint32_t>(u >> kTop) << 15;
  u &= ~(Bits{1} << kTop);
  uint32_t magnitude;
  if (u > exponent(2 * kFromBias + 1)) {  // NaN
    const uint32_t payload = static_cast<uint32_t>(u >> kShift) & ((1u << kMantissaBits) - 1);
    magnitude = kInfinity | 1u << (kMantissaBits - 1) | payload;
  } else if (u >= exponent(kFromBias + kBias + 1)) {
    magnitude = kInfinity;
  } else if (kFromBias != kBias && u < exponent(kFromBias - kBias + 1)) {
    // Subnormal result: the sum's last bit is the format's least step, so the FPU does the
    // rounding.
    constexpr Bits kMagic = exponent(kFromBias + kFromMantissa + 1 - kBias - kMantissaBits);
    const Float sum = std::bit_cast<Float>(u) + std::bit_cast<Float>(kMagic);
    magnitude = static_cast<uint32_t>(std::bit_cast<Bits>(sum) - kMagic);
  } else {
    u += (Bits{1} << (kShift - 1)) - 1 + ((u >> kShift) & 1);
    magnitude = static_cast<uint32_t>((u - exponent(kFromBias - kBias)) >> kShift);
  }
  return static_cast<uint16_t>(sign | magnitude);
}

constexpr uint16_t f32_to_f16(float x) { return narrow_float<5, 10>(x); }
constexpr uint16_t f64_to_f16(double x) { return narrow_float<5, 10>(x); }
constexpr uint16_t f32_to_bf16(float x) { return narrow_float<8, 7>(x); }
constexpr uint16_t f64_to_bf16(double x) { return narrow_float<8, 7>(x); }

constexpr float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

constexpr float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t exponent = (h >> 10) & 0x1f, mantissa = h & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t widened = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | widened << 23 | mantissa << 13);
}

// To 8 bits, rounded once to nearest even. What is too large becomes infinite; the largest number
// in f8e4m3, which saturates infinities too; NaN in the fnuz formats. NaN becomes the one with all
// bits set (the sign kept), or the only one.
constexpr uint8_t f64_to_f8(const FloatFormat& f, double x) {
  const uint64_t u = std::bit_cast<uint64_t>(x), magnitude = u & ~(uint64_t{1} << 63);
  const auto sign = static_cast<uint8_t>(u >> 63 << 7);
  const bool fnuz = f.specials == Specials::Fnuz;
  const uint8_t nan = fnuz ? 0x80 : sign | 0x7f;
  if (magnitude > std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity())) return nan;
  // A step of the result at this exponent; below the least normal number steps stay as they are.
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const int step = (exponent > 1 - f.bias ? exponent : 1 - f.bias) - f.mantissa_bits;
  // The FPU rounds a sum whose last bit is a step.
  const double large = std::bit_cast<double>(static_cast<uint64_t>(step + 52 + 1023) << 52);
  const double whole = exponent > 100 ? 0 : (std::bit_cast<double>(magnitude) + large - large);
  const uint64_t code =
      exponent > 100
          ? 0xff
          : static_cast<uint64_t>(whole / power_of_two(step)) +
                (static_cast<uint64_t>(step + f.mantissa_bits + f.bias - 1) << f.mantissa_bits);
  if (code > float_max_bits(f.dtype))
    return fnuz ? nan : static_cast<uint8_t>(sign | float_overflow_bits(f.dtype));
  return fnuz && code == 0 ? 0 : static_cast<uint8_t>(sign | code);
}

constexpr double f8_to_f64(const FloatFormat& f, uint8_t pattern) {
  const int magnitude = pattern & 0x7f;
  const double sign = (pattern & 0x80) != 0 ? -1 : 1;
  if (f.specials == Specials::Fnuz && pattern == 0x80)
    return std::numeric_limits<double>::quiet_NaN();
  if (static_cast<uint64_t>(magnitude) > float_max_bits(f.dtype)) {
    const bool infinite = f.specials == Specials::Ieee &&
                          static_cast<uint64_t>(magnitude) == float_max_bits(f.dtype) + 1;
    return infinite ? sign * std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  }
  const int hidden = 1 << f.mantissa_bits, exponent = magnitude >> f.mantissa_bits;
  const int significand = (magnitude & (hidden - 1)) + (exponent > 0 ? hidden : 0);
  return sign * significand *
         power_of_two((exponent > 0 ? exponent : 1) - f.bias - f.mantissa_bits);
}

// Towards zero; what does not fit becomes the nearest limit, NaN becomes 0.
template <class Int>
constexpr Int float_to_int(double x) {
  constexpr Int kLeast = std::numeric_limits<Int>::min(), kMost = std::numeric_limits<Int>::max();
  if (x != x) return 0;
  if (x <= static_cast<double>(kLeast)) return kLeast;
  // kMost + 1 is a power of two, hence exact; kMost itself may not be.
  if (x >= 2.0 * static_cast<double>(kMost / 2 + 1)) return kMost;
  return static_cast<Int>(x);
}

}  // namespace weft
