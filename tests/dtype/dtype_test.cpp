#include "weft/dtype/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "weft/dtype/value.h"

namespace weft {
namespace {

std::vector<DType> data_types() {
  std::vector<DType> all;
  for (const DTypeRow& r : kDTypes) {
    if (is_data(r.dtype)) all.push_back(r.dtype);
  }
  return all;
}

TEST(DType, NamesRoundTrip) {
  for (const DTypeRow& r : kDTypes) {
    EXPECT_EQ(dtype_from_name(r.name), r.dtype);
    EXPECT_EQ(dtype_from_id(static_cast<uint8_t>(r.dtype)), r.dtype);
    if (!is_data(r.dtype)) continue;
    EXPECT_EQ(dtype_from_name(r.numpy_name), r.dtype);
    EXPECT_EQ(dtype_from_safetensors(r.safetensors_name), r.dtype);
  }
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
  EXPECT_EQ(dtype_from_name("f31"), std::nullopt);
  EXPECT_EQ(dtype_from_safetensors("F8"), std::nullopt);
  EXPECT_EQ(dtype_from_id(200), std::nullopt);
}

TEST(DType, LimitsMatchCpp) {
  EXPECT_EQ(int_min(DType::I8), std::numeric_limits<int8_t>::min());
  EXPECT_EQ(int_max(DType::I8), 127u);
  EXPECT_EQ(int_min(DType::I64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(int_max(DType::I64), static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(int_min(DType::U32), 0);
  EXPECT_EQ(int_max(DType::U32), std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(int_max(DType::U64), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(int_max(DType::Bool), 1u);
  EXPECT_EQ(float_max(DType::F32), static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(float_max(DType::F64), std::numeric_limits<double>::max());
  EXPECT_EQ(bytes_for(DType::F32, 3), 12);
  EXPECT_EQ(bytes_for(DType::Bool, 3), 3);
}

// The lattice, written out: row and column in the order of `order`.
TEST(DType, PromotionTable) {
  const std::vector<std::string> order = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                          "u32",  "u64", "f16", "bf16", "f32", "f64"};
  const std::vector<std::vector<std::string>> table = {
      {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"},
      {"i8", "i8", "i16", "i32", "i64", "i16", "i32", "i64", "f32", "f16", "bf16", "f32", "f64"},
      {"i16", "i16", "i16", "i32", "i64", "i16", "i32", "i64", "f32", "f16", "bf16", "f32", "f64"},
      {"i32", "i32", "i32", "i32", "i64", "i32", "i32", "i64", "f32", "f16", "bf16", "f32", "f64"},
      {"i64", "i64", "i64", "i64", "i64", "i64", "i64", "i64", "f32", "f16", "bf16", "f32", "f64"},
      {"u8", "i16", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"},
      {"u16", "i32", "i32", "i32", "i64", "u16", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"},
      {"u32", "i64", "i64", "i64", "i64", "u32", "u32", "u32", "u64", "f16", "bf16", "f32", "f64"},
      {"u64", "f32", "f32", "f32", "f32", "u64", "u64", "u64", "u64", "f16", "bf16", "f32", "f64"},
      {"f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f32", "f32", "f64"},
      {"bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "f32", "bf16", "f32",
       "f64"},
      {"f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f64"},
      {"f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64"},
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) {
      const DType a = *dtype_from_name(order[i]), b = *dtype_from_name(order[j]);
      EXPECT_EQ(name(promote(a, b)), table[i][j]) << order[i] << " with " << order[j];
    }
  }
}

TEST(DType, EightBitFloatsMeetInTheNextWiderFloat) {
  const DType kinds[] = {DType::F8E4M3, DType::F8E5M2, DType::F8E4M3Fnuz, DType::F8E5M2Fnuz};
  for (DType a : kinds) {
    for (DType b : kinds) EXPECT_EQ(promote(a, b), a == b ? a : DType::F16);
    for (DType b : {DType::F16, DType::BF16, DType::F32, DType::F64}) EXPECT_EQ(promote(a, b), b);
    for (DType b : {DType::Bool, DType::I8, DType::I64, DType::U64}) EXPECT_EQ(promote(a, b), a);
    EXPECT_EQ(promote_weak(a, 1.5), a);
  }
}

TEST(DType, LimitsOfFloats) {
  EXPECT_EQ(float_max(DType::F8E4M3), 448);
  EXPECT_EQ(float_max(DType::F8E5M2), 57344);
  EXPECT_EQ(float_max(DType::F8E4M3Fnuz), 240);
  EXPECT_EQ(float_max(DType::F8E5M2Fnuz), 57344);
  EXPECT_EQ(float_max(DType::F16), 65504);
  EXPECT_EQ(float_max(DType::BF16), 0x1.fep127);
  EXPECT_TRUE(float_holds(DType::F16, DType::F8E5M2));
  EXPECT_TRUE(float_holds(DType::BF16, DType::F8E4M3));
  EXPECT_FALSE(float_holds(DType::F8E4M3, DType::F8E4M3Fnuz)) << "2^-10";
  EXPECT_FALSE(float_holds(DType::F8E5M2Fnuz, DType::F8E5M2)) << "infinity, -0";
  EXPECT_FALSE(float_holds(DType::F16, DType::BF16));
}

TEST(DType, PromotionIsSymmetricAndIndexStandsApart) {
  for (DType a : data_types()) {
    for (DType b : data_types()) EXPECT_EQ(promote(a, b), promote(b, a));
    EXPECT_EQ(promote(a, DType::Index), DType::Void);
    EXPECT_EQ(promote(DType::Index, a), DType::Void);
  }
  EXPECT_EQ(promote(DType::Index, DType::Index), DType::Index);
}

TEST(DType, WeakScalarsKeepTheTensorsType) {
  EXPECT_EQ(promote_weak(DType::I8, 1000), DType::I8);
  EXPECT_EQ(promote_weak(DType::U8, 1.5), DType::F32);
  EXPECT_EQ(promote_weak(DType::F16, 1.5), DType::F16);
  EXPECT_EQ(promote_weak(DType::BF16, 7), DType::BF16);
  EXPECT_EQ(promote_weak(DType::Bool, 7), DType::I32);
  EXPECT_EQ(promote_weak(DType::Bool, true), DType::Bool);
  EXPECT_EQ(promote_weak(DType::Bool, int64_t{1} << 40), DType::I64);
  EXPECT_EQ(promote_weak(DType::I32, true), DType::I32);
  EXPECT_EQ(Scalar(uint64_t{1} << 63).default_dtype(), DType::U64);
  EXPECT_EQ(Scalar(3.5f).as(DType::F64).as_double(), 3.5);
}

}  // namespace
}  // namespace weft
