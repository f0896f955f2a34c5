#include "weft/eval/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::eval {
namespace {

Value f(double x) { return Value::of(DType::F32, x); }
Value i8(int x) { return Value::of(DType::I8, x); }

Value apply2(Op op, Value a, Value b) {
  const Value v[] = {a, b};
  return apply(op, a.dtype(), v);
}
int64_t int2(Op op, DType d, int64_t a, int64_t b) {
  return apply2(op, Value::of(d, a), Value::of(d, b)).as_int();
}

TEST(EvalScalar, IntegersWrap) {
  EXPECT_EQ(int2(Op::Add, DType::I8, 127, 1), -128);
  EXPECT_EQ(int2(Op::Mul, DType::U8, 200, 2), 144);
  EXPECT_EQ(int2(Op::Mul, DType::I64, INT64_MAX, INT64_MAX), 1);
  EXPECT_EQ(int2(Op::Mul, DType::U64, -1, -1), 1);
  const Value least[] = {i8(-128)};
  EXPECT_EQ(apply(Op::Neg, DType::I8, least).as_int(), -128);
}

TEST(EvalScalar, DivisionFloorsAndByZeroIsZero) {
  EXPECT_EQ(int2(Op::IDiv, DType::I32, -7, 2), -4);
  EXPECT_EQ(int2(Op::Mod, DType::I32, -7, 2), 1);
  EXPECT_EQ(int2(Op::Mod, DType::I32, 7, -2), -1);
  EXPECT_EQ(int2(Op::IDiv, DType::I32, 7, 0), 0);
  EXPECT_EQ(int2(Op::Mod, DType::I32, 7, 0), 0);
  EXPECT_EQ(int2(Op::IDiv, DType::I32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(int2(Op::IDiv, DType::I64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(int2(Op::IDiv, DType::U64, -1, 2), INT64_MAX);
}

TEST(EvalScalar, ShiftsOutOfRange) {
  EXPECT_EQ(int2(Op::Shl, DType::I8, 1, 7), -128);
  EXPECT_EQ(int2(Op::Shl, DType::I8, 1, 8), 0);
  EXPECT_EQ(int2(Op::Shl, DType::I8, 1, -1), 0);
  EXPECT_EQ(int2(Op::Shr, DType::I8, -100, 9), -1);
  EXPECT_EQ(int2(Op::Shr, DType::I8, -100, 2), -25);
  EXPECT_EQ(int2(Op::Shr, DType::U8, 200, 9), 0);
}

TEST(EvalScalar, BoolsAreLogic) {
  const auto b = [](bool x) { return Value::boolean(x); };
  EXPECT_EQ(apply2(Op::Add, b(true), b(true)), b(true));
  EXPECT_EQ(apply2(Op::Mul, b(true), b(false)), b(false));
  EXPECT_EQ(apply2(Op::Xor, b(true), b(true)), b(false));
  const Value one[] = {b(true)};
  EXPECT_EQ(apply(Op::Not, DType::Bool, one), b(false));
}

TEST(EvalScalar, ExtremesPropagateNan) {
  EXPECT_TRUE(apply2(Op::Max, f(NAN), f(1)).is_nan());
  EXPECT_TRUE(apply2(Op::Min, f(1), f(NAN)).is_nan());
  EXPECT_EQ(apply2(Op::Max, f(-1), f(1)), f(1));
  EXPECT_EQ(int2(Op::Max, DType::U64, -1, 1), -1);  // the largest u64
}

TEST(EvalScalar, ComparisonsWithNan) {
  EXPECT_FALSE(apply2(Op::Le, f(NAN), f(NAN)).as_bool());
  EXPECT_FALSE(apply2(Op::Eq, f(NAN), f(NAN)).as_bool());
  EXPECT_TRUE(apply2(Op::Ne, f(NAN), f(NAN)).as_bool());
}

TEST(EvalScalar, F32IsRoundedToF32) {
  EXPECT_EQ(apply2(Op::Add, f(0x1p24), f(1)), f(0x1p24));
  EXPECT_EQ(apply2(Op::Div, f(1), f(3)).as_double(), static_cast<double>(1.0f / 3.0f));
  const Value fma[] = {f(1 + 0x1p-23), f(1 - 0x1p-23), f(-1)};
  EXPECT_EQ(apply(Op::MulAcc, DType::F32, fma).as_double(), -0x1p-46);
}

TEST(EvalScalar, TranscendentalsAreTheNearestFloat) {
  const Value x[] = {f(22)};
  EXPECT_EQ(apply(Op::Sin, DType::F32, x).as_double(), static_cast<double>(-0.00885130929f));
  const Value big[] = {f(1e30)};
  EXPECT_EQ(apply(Op::Sin, DType::F32, big).as_double(),
            static_cast<double>(static_cast<float>(sinl(static_cast<double>(1e30f)))));
  const Value third[] = {f(0.5)};
  EXPECT_EQ(apply(Op::Exp2, DType::F32, third).as_double(), static_cast<double>(std::sqrt(2.0f)));
  const Value zero[] = {f(0)};
  EXPECT_EQ(apply(Op::Log2, DType::F32, zero).as_double(),
            -std::numeric_limits<double>::infinity());
}

TEST(EvalScalar, CastsSaturate) {
  const Value x[] = {f(300)}, nan[] = {f(NAN)}, wide[] = {Value::of(DType::I32, 300)};
  EXPECT_EQ(apply(Op::Cast, DType::I8, x).as_int(), 127);
  EXPECT_EQ(apply(Op::Cast, DType::I8, nan).as_int(), 0);
  EXPECT_EQ(apply(Op::Cast, DType::I8, wide).as_int(), 44);
}

TEST(EvalScalar, IdentitiesLeaveEveryValue) {
  for (const DTypeRow& row : kDTypes) {
    if (!is_data(row.dtype)) continue;
    for (const Fold kind : {Fold::Add, Fold::Mul, Fold::Max, Fold::Min, Fold::And, Fold::Or}) {
      if (is_float(row.dtype) && (kind == Fold::And || kind == Fold::Or)) continue;
      for (const int64_t x : {0, 1, 100, -100}) {
        const Value v = Value::of(row.dtype, x);
        EXPECT_EQ(fold(kind, fold_identity(kind, row.dtype), v), v)
            << row.name << " " << fold_name(kind) << " " << x;
      }
    }
  }
}

}  // namespace
}  // namespace weft::eval
