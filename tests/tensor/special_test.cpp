// Elementwise functions: accuracy against the C library in f64, f32 and f16, signs of zero, limits.
#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Special : public TensorTest {};

struct Function {
  const char* name;
  Tensor (*f)(const Tensor&);
  double (*reference)(double);
  double low, high;  // where it is compared
  double ulps;       // of the value in f64 and f32, f16 rounds once
};

const Function kFunctions[] = {
    {"exp", [](const Tensor& x) { return x.exp(); }, std::exp, -9, 9, 16},
    {"expm1", [](const Tensor& x) { return x.expm1(); }, std::expm1, -9, 9, 16},
    {"log1p", [](const Tensor& x) { return x.log1p(); }, std::log1p, -0.99, 50, 8},
    {"asin", [](const Tensor& x) { return x.asin(); }, std::asin, -1, 1, 8},
    {"acos", [](const Tensor& x) { return x.acos(); }, std::acos, -1, 1, 8},
    {"atan", [](const Tensor& x) { return x.atan(); }, std::atan, -50, 50, 8},
    {"sinh", [](const Tensor& x) { return x.sinh(); }, std::sinh, -9, 9, 16},
    {"cosh", [](const Tensor& x) { return x.cosh(); }, std::cosh, -9, 9, 16},
    {"asinh", [](const Tensor& x) { return x.asinh(); }, std::asinh, -1000, 1000, 8},
    {"acosh", [](const Tensor& x) { return x.acosh(); }, std::acosh, 1, 1000, 8},
    {"atanh", [](const Tensor& x) { return x.atanh(); }, std::atanh, -0.99, 0.99, 8},
    {"erfc", [](const Tensor& x) { return x.erfc(); }, std::erfc, -3, 4, 16},
    {"erf", [](const Tensor& x) { return x.erf(); }, std::erf, -5, 5, 8},
    {"tanh", [](const Tensor& x) { return x.tanh(); }, std::tanh, -12, 12, 8},
};

/// Small numbers of both signs and numbers of every size within the range.
std::vector<double> points(const Function& f) {
  std::vector<double> all;
  for (int i = 0; i <= 64; ++i) all.push_back(f.low + (f.high - f.low) * i / 64);
  for (double x = 1e-6; x < 1; x *= 2.7)
    for (const double s : {x, -x})
      if (s > f.low && s < f.high) all.push_back(s);
  return all;
}

TEST_F(Special, FunctionsAreAsExactAsTheyClaim) {
  for (const Function& f : kFunctions) {
    for (const DType dtype : {DType::F64, DType::F32, DType::F16}) {
      SCOPED_TRACE(std::string(f.name) + " " + std::string(name(dtype)));
      const std::vector<double> at = points(f);
      const Tensor x = Tensor::from(at, {at.size()}).cast(dtype);
      const std::vector<double> given = values(x), got = values(f.f(x));
      const double ulps = dtype == DType::F16 ? 1.01 : f.ulps;
      for (size_t i = 0; i < at.size(); ++i) {
        const double expected = f.reference(given[i]);
        // Below f16's smallest normal number steps are 2^-24.
        const double least = dtype == DType::F16 ? 0x1p-24 : 0;
        const double ulp = std::ldexp(std::fabs(expected), 1 - float_digits(dtype));
        EXPECT_NEAR(got[i], expected, ulps * std::max(ulp, least)) << "at " << given[i];
      }
    }
  }
}

TEST_F(Special, ErfIsExactInDoublePrecision) {
  std::vector<double> at;
  for (double x = 1e-9; x < 8; x = x * 1.3 + 1e-3) at.insert(at.end(), {x, -x});
  const std::vector<double> exact = values(Tensor::from(at, {at.size()}).erf());
  const std::vector<double> single = values(Tensor::from(at, {at.size()}).cast(DType::F32).erf());
  for (size_t i = 0; i < at.size(); ++i) {
    EXPECT_NEAR(exact[i] / std::erf(at[i]), 1, 2e-15) << at[i];
    EXPECT_NEAR(single[i] / std::erf(at[i]), 1, 5e-7) << at[i];
  }
}

TEST_F(Special, ErfcKeepsItsDigitsWhereItIsSmall) {
  std::vector<double> at;
  for (double x = 4; x < 9; x += 0.01) at.push_back(static_cast<float>(x));
  const std::vector<double> got = values(Tensor::from(at, {at.size()}).cast(DType::F32).erfc());
  for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(got[i] / std::erfc(at[i]), 1, 1e-6) << at[i];
}

// Between whole numbers below 0 it is 0 twice: there what is left of its terms counts.
TEST_F(Special, LgammaOfSingles) {
  std::vector<double> at;
  for (double x = 1e-30; x < 1e30; x *= 1.7) at.push_back(static_cast<float>(x));
  for (double x = 0.01; x < 12; x += 0.0137) at.insert(at.end(), {x, -x});
  for (const double x : {1.0, 2.0}) at.insert(at.end(), {x + 1e-6, x - 1e-6, x + 1e-3, x - 1e-3});
  const Tensor x = Tensor::from(at, {at.size()}).cast(DType::F32);
  const std::vector<double> given = values(x), got = values(x.lgamma());
  for (size_t i = 0; i < at.size(); ++i) {
    const double exact = std::lgamma(given[i]), size = std::fabs(exact);
    EXPECT_NEAR(got[i], exact, 1e-6 * (given[i] < 0 ? size + std::lgamma(1 - given[i]) + 1 : size))
        << given[i];
  }
  EXPECT_EQ(
      shown(Tensor::of({0.0f, -0.0f, -1.0f, -3e9f, 1.0f, 2.0f, INFINITY, -INFINITY, NAN}).lgamma()),
      "f32 (9) [inf, inf, inf, inf, 0, 0, inf, inf, nan]");
}

/// Some 20,000 f32: nothing is beyond 1, and -0 stays.
TEST_F(Special, BoundedFunctionsOfSingles) {
  std::vector<double> at;
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 99'991)
    at.insert(at.end(), {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)});
  const Tensor x = Tensor::from(at, {at.size()}).cast(DType::F32);
  const std::vector<double> bent = values(x.tanh()), error = values(x.erf());
  for (size_t i = 0; i < at.size(); ++i) {
    EXPECT_NEAR(bent[i], std::tanh(at[i]), 4e-7 * std::fabs(std::tanh(at[i]))) << at[i];
    EXPECT_NEAR(error[i], std::erf(at[i]), 1.5e-7 * std::fabs(std::erf(at[i])) + 1e-44) << at[i];
    EXPECT_TRUE(std::fabs(bent[i]) <= 1 && std::fabs(error[i]) <= 1) << at[i];
    EXPECT_EQ(std::signbit(bent[i]), std::signbit(at[i])) << at[i];
  }
  EXPECT_EQ(shown(Tensor::of({-INFINITY, INFINITY, NAN}).tanh()), "f32 (3) [-1, 1, nan]");
}

/// What erf makes of it is what was given, to some ulps of the inverse.
TEST_F(Special, ErfinvUndoesErf) {
  for (const DType dtype : {DType::F64, DType::F32}) {
    std::vector<double> at{1e-300, 1e-6};
    for (double x = 0.001; x < 1; x += 0.0097) at.insert(at.end(), {x, -x});
    const double least = std::ldexp(1.0, -float_digits(dtype));
    for (double rest = 0.01; rest > least; rest /= 1.7) at.push_back(1 - rest);
    const Tensor x = Tensor::from(at, {at.size()}).cast(dtype);
    const std::vector<double> given = values(x), got = values(x.erfinv());
    const double ulps = std::ldexp(8.0, -float_digits(dtype));
    for (size_t i = 0; i < at.size(); ++i) {
      const double y = got[i], slope = 2 / std::sqrt(std::numbers::pi) * std::exp(-y * y);
      const double off = given[i] > 0.5 ? (1 - given[i]) - std::erfc(y) : std::erf(y) - given[i];
      EXPECT_LE(std::fabs(off), ulps * std::fabs(y) * slope + 1e-18) << name(dtype) << " " << at[i];
    }
  }
}

TEST_F(Special, LargeAndSmallArguments) {
  for (const DType dtype : {DType::F64, DType::F32}) {
    const double most = dtype == DType::F64 ? 1e308 : 3e38;
    const double few = dtype == DType::F64 ? 1e-15 : 1e-6;
    const std::vector<double> at{1e-30, 1, 30, most};
    const Tensor x = Tensor::from(at, {at.size()}).cast(dtype);
    const std::vector<double> given = values(x), bound = values(x.asinh());
    for (size_t i = 0; i < given.size(); ++i)
      EXPECT_NEAR(bound[i] / std::asinh(given[i]), 1, few) << given[i];
    EXPECT_NEAR(values(x.acosh())[3] / std::acosh(given[3]), 1, few);
    EXPECT_NEAR(values(Tensor::full({1}, 1e30, dtype).lgamma())[0] / std::lgamma(1e30), 1, 1e-6);
    EXPECT_EQ(values(x.mish())[3], given[3]);
    EXPECT_NEAR(values((-x).mish())[2] / (-30 * std::exp(-30.0)), 1, 1e-5);
  }
}

TEST_F(Special, Limits) {
  const Tensor x = Tensor::of({-INFINITY, 0.0f, INFINITY, NAN});
  EXPECT_EQ(shown(x.expm1()), "f32 (4) [-1, 0, inf, nan]");
  EXPECT_EQ(shown(x.log1p()), "f32 (4) [nan, 0, inf, nan]");
  expect_near(x.sinh(), {-INFINITY, 0, INFINITY, NAN});
  expect_near(x.asinh(), {-INFINITY, 0, INFINITY, NAN});
  EXPECT_EQ(shown(x.acosh()), "f32 (4) [nan, nan, inf, nan]");
  expect_near(x.erf(), {-1, 0, 1, NAN});
  expect_near(x.atan(), {-std::numbers::pi / 2, 0, std::numbers::pi / 2, NAN});
  expect_near(Tensor::of({-1.0f, 1.0f, 1.5f}).acos(), {std::numbers::pi, 0, NAN});
  expect_near(Tensor::of({-1.0f, 1.0f, 3.0f, -3.0f}).atanh(), {-INFINITY, INFINITY, NAN, NAN});
  expect_near(Tensor::of({1e30f, -1e30f}).asinh(), {69.770693, -69.770693});
  // e^89 is no f32, half of it is.
  expect_near(Tensor::of({89.0f}).sinh(), {std::sinh(89.0)}, 1e-5);
  EXPECT_EQ(shown(Tensor::of({-1e10f}).acosh()), "f32 (1) [nan]");
}

TEST_F(Special, GradientsStayFiniteWhereTheyAre) {
  const Tensor x = Tensor::of({0.0f, 100.0f, -100.0f});
  auto slope = [&](const Tensor& y) { return values(y.sum().gradient({x})[0]); };
  EXPECT_EQ(slope(x.log1p())[0], 1);
  EXPECT_EQ(slope(x.expm1())[0], 1);
  EXPECT_TRUE(std::isinf(slope(x.expm1())[1]));
  EXPECT_EQ(slope(x.asinh())[0], 1);
  EXPECT_NEAR(slope(x.asinh())[1], 0.01, 1e-5);
  EXPECT_NEAR(slope(x.atan())[2], 1e-4, 1e-8);
  EXPECT_NEAR(slope(x.erf())[0], 2 / std::sqrt(std::numbers::pi), 1e-6);
  EXPECT_EQ(slope(x.abs()), (std::vector<double>{0, 1, -1}));
}

TEST_F(Special, SlopesAtPoles) {
  const Tensor x =
      Tensor::from(std::vector<double>{5e-324, 0.0, -0.0, -1, -7, -1e20, INFINITY}, {7});
  const auto slopes = [&](const Tensor& y) { return values(y.sum().gradient({x})[0]); };
  expect_near(x.digamma(), {-INFINITY, -INFINITY, INFINITY, NAN, NAN, NAN, INFINITY});
  const std::vector<double> steep = slopes(x.digamma());
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(steep[i], INFINITY) << i;
  EXPECT_EQ(slopes(x.lgamma())[2], INFINITY);  // falls from infinity on the right of 0, rises to it
  const Tensor single = Tensor::of({1e-45f, 0.0f, -1.0f});
  for (const double slope : values(single.digamma().sum().gradient({single})[0]))
    EXPECT_EQ(slope, INFINITY);
  for (const double slope : values(single.sinc().sum().gradient({single})[0])) {
    EXPECT_TRUE(std::isfinite(slope));
  }
  EXPECT_EQ(slopes(x.sinc())[0], 0);
}

TEST_F(Special, LgammaOfSubnormals) {
  const std::vector<double> at{5e-324, 1e-310, -1e-310, 1e-300, -1e-20, 2e-20, 1e-19};
  const std::vector<double> found = values(Tensor::from(at, {at.size()}).lgamma());
  for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(found[i] / std::lgamma(at[i]), 1, 1e-14) << i;
}

TEST_F(Special, SignsOfZero) {
  const Tensor zeros = Tensor::of({0.0f, -0.0f, -NAN});
  EXPECT_EQ(shown(zeros.signbit()), "bool (3) [false, true, true]");
  expect_near(1 / zeros.abs(), {INFINITY, INFINITY, NAN});
  EXPECT_EQ(shown(Tensor::of({2.0f, 3.0f, 4.0f}).copysign(zeros)), "f32 (3) [2, -3, -4]");
  EXPECT_EQ(shown(1 / Tensor::of({0.0f}).copysign(-1.0)), "f32 (1) [-inf]");
  EXPECT_EQ(shown(Tensor::of({2, -3}).copysign(-1)), "f32 (2) [-2, -3]");
  EXPECT_EQ(shown(Tensor::of({2, -3}).signbit()), "bool (2) [false, true]");
  EXPECT_EQ(shown(zeros.cast(DType::F16).signbit()), "bool (3) [false, true, true]");
}

/// Where the C library gives a zero, it is the same zero.
TEST_F(Special, FunctionsKeepTheSignOfZero) {
  std::vector<Function> all(std::begin(kFunctions), std::end(kFunctions));
  all.push_back({"tanh", [](const Tensor& x) { return x.tanh(); }, std::tanh, 0, 0, 0});
  all.push_back({"tan", [](const Tensor& x) { return x.tan(); }, std::tan, 0, 0, 0});
  all.push_back({"round", [](const Tensor& x) { return x.round(); }, std::nearbyint, 0, 0, 0});
  all.push_back({"trunc", [](const Tensor& x) { return x.trunc(); }, std::trunc, 0, 0, 0});
  all.push_back({"ceil", [](const Tensor& x) { return x.ceil(); }, std::ceil, 0, 0, 0});
  all.push_back({"floor", [](const Tensor& x) { return x.floor(); }, std::floor, 0, 0, 0});
  const std::vector<double> at{0.0, -0.0, 0.25, -0.25, 0.5, -0.5};
  for (const Function& f : all)
    for (const DType dtype : {DType::F64, DType::F32, DType::F16}) {
      const std::vector<double> got = values(f.f(Tensor::from(at, {at.size()}).cast(dtype)));
      for (size_t i = 0; i < at.size(); ++i) {
        const double zero = f.reference(at[i]);
        if (zero != 0) continue;
        EXPECT_EQ(std::signbit(got[i]), std::signbit(zero))
            << f.name << " " << name(dtype) << " at " << at[i];
      }
    }
  const Tensor root = Tensor::full({}, -0.0).pow(Tensor::full({}, 0.3));
  EXPECT_FALSE(std::signbit(values(root)[0]));
}

/// +0 is above -0, whichever comes first and however many there are.
TEST_F(Special, ExtremesOrderZeros) {
  for (const DType dtype : {DType::F64, DType::F32, DType::F16}) {
    const Tensor minus = Tensor::full({40}, -0.0, dtype).contiguous(),
                 plus = Tensor::full({40}, 0.0, dtype).contiguous();
    for (const Tensor& t : {minus.maximum(plus), plus.maximum(minus), minus.maximum(0.0),
                            Tensor::cat({minus, plus}).max({}, true)})
      for (const double v : values(t)) EXPECT_FALSE(std::signbit(v));
    for (const Tensor& t : {minus.minimum(plus), plus.minimum(minus), plus.minimum(-0.0),
                            Tensor::cat({plus, minus}).min({}, true)})
      for (const double v : values(t)) EXPECT_TRUE(std::signbit(v));
    // A sum starts from +0, however it is computed.
    for (const Tensor& t : {minus.sum({}, true), minus.reshape({40, 1}).sum({1}), minus.cumsum(0)})
      for (const double v : values(t)) EXPECT_FALSE(std::signbit(v));
  }
}

TEST_F(Special, QuotientsThatAreRounded) {
  const Tensor x = Tensor::of({-7, -1, 1, 7});
  EXPECT_EQ(shown(x.div(2, Rounding::Trunc)), "i32 (4) [-3, 0, 0, 3]");
  EXPECT_EQ(shown(x.div(-2, Rounding::Trunc)), "i32 (4) [3, 0, 0, -3]");
  EXPECT_EQ(shown(x.div(2, Rounding::Floor)), "i32 (4) [-4, -1, 0, 3]");
  EXPECT_EQ(shown(x.div(0, Rounding::Trunc)), "i32 (4) [0, 0, 0, 0]");
  EXPECT_EQ(shown(x.div(2)), "f32 (4) [-3.5, -0.5, 0.5, 3.5]");
  EXPECT_EQ(shown(x.div(2.0, Rounding::Trunc) + 0), "f32 (4) [-3, 0, 0, 3]");
  EXPECT_EQ(shown(x.div(2.0, Rounding::Floor)), "f32 (4) [-4, -1, 0, 3]");
  const Tensor least = Tensor::full({1}, INT32_MIN, DType::I32);
  EXPECT_EQ(shown(least.fmod(7)), "i32 (1) [-2]");
  EXPECT_EQ(shown(least.div(7, Rounding::Trunc)), "i32 (1) [-306783378]");
}

TEST_F(Special, RemaindersByInfinity) {
  const Tensor x = Tensor::of({-5.0f, 0.0f, 5.0f, INFINITY});
  expect_near(x % INFINITY, {INFINITY, 0, 5, NAN});
  expect_near(x % -INFINITY, {-5, 0, -INFINITY, NAN});
  expect_near(x.fmod(INFINITY), {-5, 0, 5, NAN});
  expect_near(x.mod(4), {3, 0, 1, NAN});
}

TEST_F(Special, RemaindersOfLargeQuotientsAreExact) {
  const std::vector<double> at = {1e9, -1e9, 123456789, 3e38, 1e-45, 7.5, -0.0};
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (const double divisor : {3.0, -3.0, 0.1, 1e-38, 1e30}) {
      const Tensor x = Tensor::from(at, {at.size()}).cast(dtype);
      const Tensor y = Tensor::full({}, divisor, dtype);
      const double by = values(y.cast(DType::F64))[0];
      const std::vector<double> dividends = values(x.cast(DType::F64));
      const std::vector<double> rests = values(x.fmod(y).cast(DType::F64));
      for (size_t i = 0; i < at.size(); ++i) {
        const double exact = std::fmod(dividends[i], by);
        if (std::isnan(exact)) continue;
        EXPECT_EQ(rests[i], exact) << dividends[i] << " " << by;
        EXPECT_EQ(std::signbit(rests[i]), std::signbit(exact)) << dividends[i] << " " << by;
      }
    }
  EXPECT_EQ(shown(Tensor::of({1e9f, 6.0f, -6.0f}) % 3), "f32 (3) [1, 0, 0]");
  EXPECT_EQ(shown(Tensor::of({6.0f, -6.0f}) % -3), "f32 (2) [-0, -0]");
}

/// Dividends that are about 2^by times their divisors.
std::pair<Tensor, Tensor> quotients_near(DType dtype, int by, std::mt19937& random) {
  constexpr size_t kCount = 64;
  std::uniform_real_distribution<double> mantissa(1, 2);
  const int least = 1 - float_format(dtype).bias - float_format(dtype).mantissa_bits;
  const int range = static_cast<int>(std::log2(float_max(dtype))) - least;
  std::vector<double> x, y;
  for (size_t i = 0; i < kCount; ++i) {
    const int low = least + static_cast<int>(random() % static_cast<unsigned>(range - by));
    y.push_back(std::ldexp(mantissa(random), low) * (i % 2 ? 1 : -1));
    x.push_back(std::ldexp(mantissa(random), low + by) * (i % 3 ? 1 : -1));
  }
  for (size_t i = 0; i < 4; ++i) x[i] = y[i] * std::ldexp(i % 2 ? 1 : -1, by);  // no rest
  return {Tensor::from(x, {kCount}).cast(dtype), Tensor::from(y, {kCount}).cast(dtype)};
}

double floored(double x, double y) {
  const double rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

TEST_F(Special, RemaindersAreExactWhateverTheQuotient) {
  std::mt19937 random(1);
  const auto expect_same = [](double got, double expected, double x, double y) {
    const bool same = std::isnan(got)
                          ? std::isnan(expected)
                          : got == expected && std::signbit(got) == std::signbit(expected);
    EXPECT_TRUE(same) << x << " " << y << ": " << got << " not " << expected;
  };
  for (const DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16})
    for (const int by :
         {-3, 0, 1, 7, 11, 22, 23, 24, 25, 35, 52, 53, 54, 100, 200, 270, 1074, 2000}) {
      if (by > 2 * float_format(dtype).bias + float_format(dtype).mantissa_bits - 2) continue;
      SCOPED_TRACE(std::string(name(dtype)) + " 2^" + std::to_string(by));
      const auto [x, y] = quotients_near(dtype, by, random);
      const std::vector<double> a = values(x), b = values(y), rest = values(x.fmod(y));
      const std::vector<double> down = values(x % y);
      for (size_t i = 0; i < a.size(); ++i) {
        expect_same(rest[i], std::fmod(a[i], b[i]), a[i], b[i]);
        const double exact = Value::of(dtype, floored(a[i], b[i])).as_double();
        expect_same(down[i], exact, a[i], b[i]);
      }
    }
}

TEST_F(Special, RemaindersOfANumber) {
  const Tensor y = Tensor::arange(40).cast(DType::F32) + 0.75;
  for (const double x : {7.5, -1e30}) {
    const std::vector<double> rest = values(Tensor::full({}, x, DType::F32).fmod(y));
    for (size_t i = 0; i < rest.size(); ++i)
      EXPECT_EQ(rest[i], std::fmod(static_cast<float>(x), static_cast<double>(i) + 0.75));
  }
}

TEST_F(Special, RemaindersOfWhatIsNoNumber) {
  for (const DType dtype : {DType::F64, DType::F32, DType::F16}) {
    const Tensor x = Tensor::of({INFINITY, 1.0f, NAN, 1.0f, -0.0f, 0.0f, -3.0f}).cast(dtype);
    const Tensor y = Tensor::of({1.0f, 0.0f, 1.0f, NAN, 2.0f, -2.0f, -INFINITY}).cast(dtype);
    const Tensor rest = x.fmod(y).cast(DType::F32), down = (x % y).cast(DType::F32);
    for (const Tensor& t : {rest, down})
      EXPECT_EQ(shown(t.isnan()), "bool (7) [true, true, true, true, false, false, false]");
    EXPECT_EQ(shown(rest.index({Slice(4, 7)})), "f32 (3) [-0, 0, -3]");
    EXPECT_EQ(shown(down.index({Slice(4, 7)})), "f32 (3) [0, -0, -3]");
  }
}

TEST_F(Special, SlopesOfRemaindersAreWhatWasTakenOff) {
  const Tensor x = Tensor::of({7.0f, -7.0f, 6.0f, 0.5f}).requires_grad_();
  const Tensor y = Tensor::of({2.0f, 2.0f, -3.0f, INFINITY}).requires_grad_();
  (x.fmod(y) * Tensor::of({1.0f, 2.0f, 3.0f, 4.0f})).sum().backward();
  EXPECT_EQ(shown(x.grad()), "f32 (4) [1, 2, 3, 4]");
  EXPECT_EQ(shown(y.grad() + 0.0), "f32 (4) [-3, 6, 6, 0]");
  const Tensor z = Tensor::of({2.0f, 2.0f, -3.0f}).requires_grad_();
  (Tensor::of({7.0f, -7.0f, 5.0f}) % z).sum().backward();
  EXPECT_EQ(shown(z.grad()), "f32 (3) [-3, 4, 2]");
}

TEST_F(Special, TheSignOfZeroStays) {
  const Tensor x = Tensor::of({-0.0f, 0.0f}), y = Tensor::of({-0.4f, -0.5f, -1.5f, 2.5f});
  for (const Tensor& odd : {x.sinh(), x.asinh(), x.tanh(), x.atan(), x.atanh(), x.asin(), x.sin(),
                            x.tan(), x.round(), x.pow(Tensor::of({3.0f, 3.0f}))})
    EXPECT_EQ(shown(odd), "f32 (2) [-0, 0]");
  EXPECT_EQ(shown(y.round()), "f32 (4) [-0, -0, -2, 2]");
  const Tensor base = Tensor::of({-0.0f, -INFINITY, -INFINITY, -1e30f});
  EXPECT_EQ(shown(base.pow(Tensor::of({0.5f, -1.0f, -2.0f, -3.0f}))), "f32 (4) [0, -0, 0, -0]");
}

TEST_F(Special, NamedOperators) {
  const Tensor x = Tensor::of({1, 2, 3});
  EXPECT_EQ(shown(x.add(1).sub(2).mul(3)), "i32 (3) [0, 3, 6]");
  EXPECT_EQ(shown(x.eq(2)), "bool (3) [false, true, false]");
  EXPECT_EQ(shown(x.ne(2)), "bool (3) [true, false, true]");
  EXPECT_EQ(shown(x.bitwise_and(2)), "i32 (3) [0, 2, 2]");
  EXPECT_EQ(shown(x.bitwise_or(4).bitwise_xor(1)), "i32 (3) [4, 7, 6]");
  EXPECT_EQ(shown(x.lshift(2).rshift(1)), "i32 (3) [2, 4, 6]");
  EXPECT_EQ(shown(x.clip(2, 2)), "i32 (3) [2, 2, 2]");
}

TEST_F(Special, InfinitiesOfOneSign) {
  const Tensor x = Tensor::of({-INFINITY, 0.0f, INFINITY, NAN});
  EXPECT_EQ(shown(x.isinf()), "bool (4) [true, false, true, false]");
  EXPECT_EQ(shown(x.isinf(true, false)), "bool (4) [false, false, true, false]");
  EXPECT_EQ(shown(x.isinf(false, true)), "bool (4) [true, false, false, false]");
  EXPECT_EQ(shown(x.isinf(false, false)), "bool (4) [false, false, false, false]");
  EXPECT_EQ(shown(Tensor::of({1}).isinf()), "bool (1) [false]");
  expect_near(x.logaddexp(x), {-INFINITY, std::log(2.0), INFINITY, NAN});
}

TEST_F(Special, IntegersInterpolateToTheNearest) {
  const Tensor x = Tensor::of({10, 0, 255}).cast(DType::U8);
  EXPECT_EQ(shown(x.lerp(Tensor::of({5, 255, 0}).cast(DType::U8), 0.5)), "u8 (3) [8, 128, 128]");
}

TEST_F(Special, IntegerPowersAreExact) {
  const Tensor three = Tensor::full({4}, 3, DType::I64);
  EXPECT_EQ(shown(three.pow(Tensor::of({0, 1, 33, -1}).cast(DType::I64))),
            "i64 (4) [1, 3, 5559060566555523, 0]");
  EXPECT_EQ(shown(Tensor::of({-1, -1, 1, 2}).pow(Tensor::of({-3, -2, -5, -1}))),
            "i32 (4) [-1, 1, 1, 0]");
  EXPECT_EQ(shown(Tensor::of({true, false}).pow(Tensor::of({false, true}))),
            "bool (2) [true, false]");
  // Halves are raised in f32: 10^-0.5 to f16's last place.
  expect_near(Tensor::full({1}, 10.0, DType::F16).pow(Tensor::full({1}, -2.5, DType::F16)),
              {0.00316228}, 2e-6);
}

}  // namespace
}  // namespace weft
