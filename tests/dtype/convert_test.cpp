#include "weft/dtype/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

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

// By search: the nearest of all finite values, of two the one with the even code; half a step
// beyond the largest counts as beyond: infinite, NaN, or the largest in f8e4m3.
uint8_t nearest_f8(const FloatFormat& f, double x) {
  const auto most = static_cast<int>(float_max_bits(f.dtype));
  const double a = std::fabs(x), last = f8_to_f64(f, static_cast<uint8_t>(most));
  const double step = last - f8_to_f64(f, static_cast<uint8_t>(most - 1));
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const uint8_t nan = f.specials == Specials::Fnuz ? 0x80 : sign | 0x7f;
  if (std::isnan(x)) return nan;
  // The code of the largest is even for f8e4m3 and odd for the others.
  if (a > last + step / 2 || (a == last + step / 2 && most % 2 == 1)) {
    if (f.specials == Specials::Fnuz) return nan;
    return static_cast<uint8_t>(sign | (f.specials == Specials::Ieee ? most + 1 : most));
  }
  int best = 0;
  for (int code = 1; code <= most; ++code) {
    const double now = std::fabs(f8_to_f64(f, static_cast<uint8_t>(code)) - a);
    const double before = std::fabs(f8_to_f64(f, static_cast<uint8_t>(best)) - a);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best == 0 && f.specials == Specials::Fnuz ? 0 : static_cast<uint8_t>(sign | best);
}

TEST(Convert, EightBitFloatsAreTheNearest) {
  std::mt19937_64 random(8);
  for (const FloatFormat& f : kFloatFormats) {
    if (!is_float8(f.dtype)) continue;
    std::vector<double> inputs = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e300, -1e-300};
    for (int code = 0; code < 256; ++code) {
      const double x = f8_to_f64(f, static_cast<uint8_t>(code));
      const double y = f8_to_f64(f, static_cast<uint8_t>(code ^ 1)), middle = (x + y) / 2;
      for (double z : {x, middle, std::nextafter(middle, x), std::nextafter(middle, y)})
        inputs.push_back(z);
      if (!std::isnan(x)) {
        EXPECT_EQ(f64_to_f8(f, x), code) << name(f.dtype);
      }
    }
    for (int i = 0; i < 2000; ++i)
      inputs.push_back(
          std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 40) - 84));
    for (double x : inputs)
      ASSERT_EQ(f64_to_f8(f, x), nearest_f8(f, x)) << name(f.dtype) << " of " << x;
  }
}

// OCP OFP8 table 1: values that the definition names.
TEST(Convert, EightBitFloatsByName) {
  const FloatFormat &e4 = float_format(DType::F8E4M3), &e5 = float_format(DType::F8E5M2);
  EXPECT_EQ(f8_to_f64(e4, 0x7e), 448);
  EXPECT_EQ(f64_to_f8(e4, INFINITY), 0x7e);
  EXPECT_EQ(f64_to_f8(e4, -1e9), 0xfe);
  EXPECT_EQ(f8_to_f64(e4, 0x08), 0x1p-6);
  EXPECT_EQ(f8_to_f64(e4, 0x01), 0x1p-9);
  EXPECT_TRUE(std::isnan(f8_to_f64(e4, 0xff)));
  EXPECT_EQ(f8_to_f64(e5, 0x7b), 57344);
  EXPECT_EQ(f8_to_f64(e5, 0x04), 0x1p-14);
  EXPECT_EQ(f8_to_f64(e5, 0x01), 0x1p-16);
  EXPECT_EQ(f8_to_f64(e5, 0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(f8_to_f64(e5, 0x7d)));
  EXPECT_TRUE(std::isnan(f8_to_f64(float_format(DType::F8E4M3Fnuz), 0x80)));
  EXPECT_EQ(f8_to_f64(float_format(DType::F8E4M3Fnuz), 0x01), 0x1p-10);
}

}  // namespace
}  // namespace weft
