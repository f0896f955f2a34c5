#include "weft/dtype/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weft {
namespace {

// Every value of a 16-bit format as a double, from the definition: significand times power of two.
double defined_value(uint16_t h, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (h >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = h & ((1 << mantissa_bits) - 1);
  const double sign = (h & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

struct Format {
  int exponent_bits, mantissa_bits;
  float (*widen)(uint16_t);
  uint16_t (*from_f32)(float);
  uint16_t (*from_f64)(double);
};

const Format kFormats[] = {
    {5, 10, f16_to_f32, f32_to_f16, f64_to_f16},
    {8, 7, bf16_to_f32, f32_to_bf16, f64_to_bf16},
};

TEST(Convert, WideningIsExactForAllBitPatterns) {
  for (const Format& f : kFormats) {
    for (int h = 0; h < 65536; ++h) {
      const auto bits = static_cast<uint16_t>(h);
      const double want = defined_value(bits, f.exponent_bits, f.mantissa_bits);
      const auto got = static_cast<double>(f.widen(bits));
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << h;
      } else {
        ASSERT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(want)) << h;
      }
    }
  }
}

TEST(Convert, RoundTripsAllBitPatterns) {
  for (const Format& f : kFormats) {
    const int quiet = 1 << (f.mantissa_bits - 1);
    for (int h = 0; h < 65536; ++h) {
      const auto bits = static_cast<uint16_t>(h);
      const float wide = f.widen(bits);
      const int want = std::isnan(wide) ? h | quiet : h;
      ASSERT_EQ(f.from_f32(wide), want);
      ASSERT_EQ(f.from_f64(static_cast<double>(wide)), want);
    }
  }
}

// Between each two neighbours: the tie goes to the even one, a hair off the tie to the nearer.
TEST(Convert, RoundsToNearestEvenAtEveryTie) {
  for (const Format& f : kFormats) {
    const int infinity = ((1 << f.exponent_bits) - 1) << f.mantissa_bits;
    for (int h = 0; h < infinity; ++h) {
      const double low = defined_value(static_cast<uint16_t>(h), f.exponent_bits, f.mantissa_bits);
      // Past the largest finite value the next step would be 2^(max exponent + 1).
      const double high = h + 1 == infinity ? std::ldexp(1.0, 1 << (f.exponent_bits - 1))
                                            : defined_value(static_cast<uint16_t>(h + 1),
                                                            f.exponent_bits, f.mantissa_bits);
      const double tie = low + (high - low) / 2;
      const int even = h % 2 == 0 ? h : h + 1;
      ASSERT_EQ(f.from_f64(tie), even) << h;
      ASSERT_EQ(f.from_f64(-tie), even | 0x8000) << h;
      ASSERT_EQ(f.from_f64(std::nextafter(tie, 0.0)), h);
      ASSERT_EQ(f.from_f64(std::nextafter(tie, INFINITY)), h + 1);
      const auto tie32 = static_cast<float>(tie);
      if (static_cast<double>(tie32) != tie) continue;
      ASSERT_EQ(f.from_f32(tie32), even) << h;
      ASSERT_EQ(f.from_f32(std::nextafterf(tie32, 0.0f)), h);
      ASSERT_EQ(f.from_f32(std::nextafterf(tie32, INFINITY)), h + 1);
    }
  }
}

TEST(Convert, NoDoubleRounding) {
  // Just above a tie of f16, but within half an f32 step of it: through f32 it would round down.
  const double x = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(f64_to_f16(x), 0x3c01);
  EXPECT_EQ(f32_to_f16(static_cast<float>(x)), 0x3c00);
}

TEST(Convert, SpecialsAndExtremes) {
  for (const Format& f : kFormats) {
    const uint16_t infinity =
        static_cast<uint16_t>(((1 << f.exponent_bits) - 1) << f.mantissa_bits);
    EXPECT_EQ(f.from_f32(INFINITY), infinity);
    EXPECT_EQ(f.from_f32(-INFINITY), infinity | 0x8000);
    EXPECT_EQ(f.from_f64(1e300), infinity);
    EXPECT_EQ(f.from_f64(-1e-300), 0x8000);
    EXPECT_EQ(f.from_f32(-0.0f), 0x8000);
    EXPECT_EQ(f.from_f64(5e-324), 0);
    EXPECT_TRUE(std::isnan(f.widen(f.from_f32(NAN))));
    // A NaN whose payload lies only in bits that are dropped stays a NaN.
    EXPECT_TRUE(std::isnan(f.widen(f.from_f32(std::bit_cast<float>(0x7f800001u)))));
    EXPECT_TRUE(std::isnan(f.widen(f.from_f64(std::bit_cast<double>(0x7ff0000000000001u)))));
  }
  static_assert(f32_to_f16(65519.0f) == 0x7bff && f32_to_f16(65520.0f) == 0x7c00);
}

TEST(Convert, FloatToIntTruncatesAndSaturates) {
  EXPECT_EQ(float_to_int<int8_t>(-1.9), -1);
  EXPECT_EQ(float_to_int<int8_t>(127.9), 127);
  EXPECT_EQ(float_to_int<int8_t>(1e9), 127);
  EXPECT_EQ(float_to_int<int8_t>(-1e9), -128);
  EXPECT_EQ(float_to_int<uint8_t>(-0.5), 0);
  EXPECT_EQ(float_to_int<uint8_t>(-5.0), 0);
  EXPECT_EQ(float_to_int<int32_t>(NAN), 0);
  EXPECT_EQ(float_to_int<int64_t>(0x1p63), INT64_MAX);
  EXPECT_EQ(float_to_int<int64_t>(-0x1p63), INT64_MIN);
  EXPECT_EQ(float_to_int<uint64_t>(0x1p64), UINT64_MAX);
  EXPECT_EQ(float_to_int<uint64_t>(0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(float_to_int<int64_t>(INFINITY), INT64_MAX);
}

}  // namespace
}  // namespace weft
