#include "weft/dtype/value.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "weft/base/error.h"
#include "weft/dtype/convert.h"

namespace weft {
namespace {

TEST(Value, RoundsToItsType) {
  EXPECT_EQ(Value::of(DType::F32, 0.1).as_double(), static_cast<double>(0.1f));
  EXPECT_EQ(Value::of(DType::F64, 0.1).as_double(), 0.1);
  EXPECT_EQ(Value::of(DType::F16, 1e6).as_double(), INFINITY);
  EXPECT_EQ(Value::of(DType::BF16, 257.0).as_double(), 256.0);
  EXPECT_EQ(Value::of(DType::I8, 300).as_int(), 44);
  EXPECT_EQ(Value::of(DType::U8, -1).as_int(), 255);
  EXPECT_EQ(Value::of(DType::I8, 300.0).as_int(), 127);
  EXPECT_EQ(Value::of(DType::U32, -3.0).as_int(), 0);
  EXPECT_EQ(Value::of(DType::Bool, 0.5).as_int(), 1);
  EXPECT_EQ(Value::of(DType::Bool, 256).as_int(), 1);
  EXPECT_EQ(Value::of(DType::I32, NAN).as_int(), 0);
  EXPECT_THROW(Value::of(DType::Void, 1), InternalError);
}

TEST(Value, LargeIntegersAreRoundedOnce) {
  // 2^24+1 steps above a tie of bf16 and f32 alike.
  const int64_t x = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
  EXPECT_EQ(Value::of(DType::BF16, x).as_double(), 0x1p60 + 0x1p53);
  EXPECT_EQ(Value::of(DType::F32, (int64_t{1} << 60) + (int64_t{1} << 36) + 1).as_double(),
            0x1p60 + 0x1p37);
  EXPECT_EQ(Value::of(DType::F64, UINT64_MAX).as_double(), 0x1p64);
  EXPECT_EQ(Value::of(DType::F32, INT64_MIN).as_double(), -0x1p63);
  EXPECT_EQ(Value::of(DType::BF16, INT64_MIN).as_double(), -0x1p63);
}

TEST(Value, EqualityIsByBits) {
  const Value zero = Value::of(DType::F32, 0.0), minus_zero = Value::of(DType::F32, -0.0);
  EXPECT_FALSE(zero == minus_zero);
  EXPECT_NE(zero.hash(), minus_zero.hash());
  EXPECT_TRUE(minus_zero.is_zero());
  const Value nan = Value::of(DType::F32, NAN);
  EXPECT_TRUE(nan == Value::of(DType::F32, NAN));
  EXPECT_TRUE(nan.is_nan());
  EXPECT_TRUE(nan.as_bool());
  EXPECT_FALSE(Value::of(DType::I32, 1) == Value::of(DType::I64, 1));
  EXPECT_FALSE(Value::of(DType::I32, 1) == Value::of(DType::F32, 1));
}

TEST(Value, CastsLikeConversions) {
  EXPECT_EQ(Value::of(DType::I64, INT64_MAX).cast(DType::I32).as_int(), -1);
  EXPECT_EQ(Value::of(DType::U64, UINT64_MAX).cast(DType::F32).as_double(), 0x1p64);
  EXPECT_EQ(Value::of(DType::F64, 1e10).cast(DType::I32).as_int(), INT32_MAX);
  EXPECT_EQ(Value::of(DType::F64, 1e30).cast(DType::U64).as_uint(), UINT64_MAX);
  EXPECT_EQ(Value::of(DType::F64, 1 + 0x1p-11 + 0x1p-40).cast(DType::F16).as_double(), 1 + 0x1p-10);
}

// All 16-bit patterns of every narrow type, random ones of the wide: load and store are inverse,
// text and raw bits come back equal.
TEST(Value, LoadStoreTextAndRawBitsRoundTrip) {
  std::mt19937_64 random(7);
  for (const DTypeRow& row : kDTypes) {
    if (!is_data(row.dtype)) continue;
    const int patterns = row.dtype == DType::Bool ? 2
                         : row.bits == 8          ? 256
                         : row.bits == 16         ? 65536
                                                  : 4000;
    for (int i = 0; i < patterns; ++i) {
      const uint64_t pattern = row.bits <= 16 ? static_cast<uint64_t>(i) : random();
      const Value value = Value::load(row.dtype, &pattern);
      uint64_t back = 0;
      value.store(&back);
      const uint64_t mask = ~uint64_t{0} >> (64 - row.bits);
      if (!value.is_nan()) {
        ASSERT_EQ(back, pattern & mask) << row.name;
      }
      const Value again = Value::load(row.dtype, &back);
      ASSERT_TRUE(again == value) << row.name << " " << value.text();
      const auto parsed = Value::parse(row.dtype, value.text());
      ASSERT_TRUE(parsed && *parsed == value) << row.name << " " << value.text();
      const auto raw = Value::from_raw_bits(row.dtype, value.raw_bits());
      ASSERT_TRUE(raw && *raw == value) << row.name;
    }
  }
}

TEST(Value, StoreTouchesOnlyItsBytes) {
  unsigned char memory[9];
  for (const DTypeRow& row : kDTypes) {
    if (!is_data(row.dtype)) continue;
    std::memset(memory, 0xee, sizeof(memory));
    Value::of(row.dtype, 1).store(memory);
    EXPECT_EQ(memory[row.bits / 8], 0xee) << row.name;
  }
}

TEST(Value, TextIsShortAndStrict) {
  EXPECT_EQ(Value::of(DType::F32, 0.1).text(), "0.1");
  EXPECT_EQ(Value::of(DType::F64, NAN).text(), "nan");
  EXPECT_EQ(Value::of(DType::F16, -INFINITY).text(), "-inf");
  EXPECT_EQ(Value::of(DType::F32, -0.0).text(), "-0");
  EXPECT_EQ(Value::index(-3).text(), "-3");
  EXPECT_EQ(Value::boolean(true).text(), "true");
  EXPECT_EQ(Value::parse(DType::I8, "128"), std::nullopt);
  EXPECT_EQ(Value::parse(DType::U8, "-1"), std::nullopt);
  EXPECT_EQ(Value::parse(DType::I32, "1.5"), std::nullopt);
  EXPECT_EQ(Value::parse(DType::F32, "1.5x"), std::nullopt);
  EXPECT_EQ(Value::parse(DType::F32, ""), std::nullopt);
  EXPECT_EQ(Value::parse(DType::Bool, "1"), std::nullopt);
  EXPECT_EQ(Value::parse(DType::F64, "nan(0x0)"), std::nullopt);
}

TEST(Value, RawBitsMustBeCanonical) {
  EXPECT_EQ(Value::from_raw_bits(DType::I8, 128), std::nullopt);
  EXPECT_EQ(Value::from_raw_bits(DType::Bool, 2), std::nullopt);
  EXPECT_EQ(Value::from_raw_bits(DType::F32, std::bit_cast<uint64_t>(0.1)), std::nullopt);
  EXPECT_EQ(Value::from_raw_bits(DType::Void, 0), std::nullopt);
}

}  // namespace
}  // namespace weft
