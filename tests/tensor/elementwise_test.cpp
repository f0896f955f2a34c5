#include <cmath>
#include <string>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Elementwise : public TensorTest {};

/// Every exponent and sign beside numbers near 1: some lanes of a vector take the long way.
template <class T>
std::vector<T> small_and_large_angles() {
  std::vector<T> x{0, INFINITY, T(1), -INFINITY, NAN, -T(0), T(1 << 20), -T(1 << 20)};
  const int lowest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  for (int e = lowest; e < std::numeric_limits<T>::max_exponent; ++e)
    for (const double digits : {1.0, 1.4142135623730951, 1.9473829183})
      x.insert(x.end(), {static_cast<T>(std::ldexp(digits, e)), static_cast<T>(digits),
                         static_cast<T>(-std::ldexp(digits, e)), static_cast<T>(-digits * 3)});
  return x;
}

template <class T>
void expect_sines() {
  const auto sines = [](const std::vector<T>& of) {
    return Tensor::from(of).sin().template to_vector<T>();
  };
  const std::vector<T> x = small_and_large_angles<T>(), y = sines(x);
  for (size_t i = 0; i < x.size(); ++i) {
    const long double exact = sinl(static_cast<long double>(x[i]));
    const T rounded = static_cast<T>(exact);
    if (std::isnan(rounded) || std::isnan(y[i])) {
      EXPECT_TRUE(std::isnan(rounded) && std::isnan(y[i])) << x[i] << ": " << y[i];
      continue;
    }
    const T ulp = std::nextafter(std::fabs(rounded), T(INFINITY)) - std::fabs(rounded);
    EXPECT_LE(std::fabs(static_cast<long double>(y[i]) - exact), static_cast<long double>(ulp))
        << x[i] << ": " << y[i];
    EXPECT_EQ(std::signbit(y[i]), std::signbit(rounded)) << x[i];
    // What its neighbours are decides about the way, not about the result.
    if (i % 97 == 0) {
      EXPECT_EQ(sines({x[i]})[0], y[i]) << x[i];
    }
  }
}

TEST_F(Elementwise, SinesOfSmallAndLargeAnglesSideBySide) {
  expect_sines<float>();
  expect_sines<double>();
}

TEST_F(Elementwise, SinesInsideOfReductionsAndRunningFolds) {
  std::vector<float> x(6 * 40, 0.5f);
  for (size_t i = 0; i < x.size(); i += 7) x[i] = 1e9f + static_cast<float>(i) * 4096;
  const Tensor rows = Tensor::from(x, {6, 40}), sines = rows.sin().contiguous();
  EXPECT_EQ(shown((rows.sin().sum(1) * 64).round()), shown((sines.sum(1) * 64).round()));
  EXPECT_EQ(shown(rows.sin().max(0)), shown(sines.max(0)));
  EXPECT_EQ(shown(rows.sin().cummax(1)), shown(sines.cummax(1)));
  EXPECT_EQ(shown((rows.sum(1).sin() + rows.sin().max(1)).isnan()),
            "bool (6) [false, false, false, false, false, false]");
}

TEST_F(Elementwise, NumbersAreWeak) {
  const Tensor i8 = Tensor::of({1, 2}).cast(DType::I8);
  EXPECT_EQ((i8 + 1).dtype(), DType::I8);
  EXPECT_EQ((1 - i8).dtype(), DType::I8);
  EXPECT_EQ((i8 * 0.5).dtype(), DType::F32);
  EXPECT_EQ((i8 / 2).dtype(), DType::F32);
  EXPECT_EQ((i8 < 1.5).dtype(), DType::Bool);
  EXPECT_EQ((Tensor::ones({2}, DType::F16) * 2.0).dtype(), DType::F16);
  EXPECT_EQ((Tensor::ones({2}, DType::Bool) + 1).dtype(), DType::I32);
  EXPECT_EQ((i8 + Tensor::ones({2}, DType::I32)).dtype(), DType::I32);
  EXPECT_EQ((i8 + Tensor::ones({2}, DType::BF16)).dtype(), DType::BF16);
}

TEST_F(Elementwise, OperatorsBroadcast) {
  const Tensor row = Tensor::of({1, 2, 3}), column = Tensor::of({{10}, {20}});
  EXPECT_EQ(shown(row + column), "i32 (2, 3) [11, 12, 13, 21, 22, 23]");
  EXPECT_EQ(shown(column - row), "i32 (2, 3) [9, 8, 7, 19, 18, 17]");
  EXPECT_EQ(shown(row > 1), "bool (3) [false, true, true]");
  EXPECT_EQ(shown(3 >= row), "bool (3) [true, true, true]");
  EXPECT_EQ(shown(row == 2), "bool (3) [false, true, false]");
  EXPECT_EQ(shown(row != 2), "bool (3) [true, false, true]");
  EXPECT_EQ(shown(row & 1), "i32 (3) [1, 0, 1]");
  EXPECT_EQ(shown((row | 4) ^ 1), "i32 (3) [4, 7, 6]");
  EXPECT_EQ(shown((row << 2) >> 1), "i32 (3) [2, 4, 6]");
  EXPECT_EQ(shown(-row), "i32 (3) [-1, -2, -3]");
  EXPECT_EQ(shown(~(row > 1)), "bool (3) [true, false, false]");
  EXPECT_EQ(shown(row / 2), "f32 (3) [0.5, 1, 1.5]");
  EXPECT_EQ(shown(Tensor::zeros({2, 3}) + 1), "f32 (2, 3) [1, 1, 1, 1, 1, 1]");
}

TEST_F(Elementwise, RemaindersFollowPython) {
  const Tensor x = Tensor::of({-7, -1, 1, 7});
  EXPECT_EQ(shown(x % 3), "i32 (4) [2, 2, 1, 1]");
  EXPECT_EQ(shown(x % -3), "i32 (4) [-1, -1, -2, -2]");
  EXPECT_EQ(shown(x.floor_div(3)), "i32 (4) [-3, -1, 0, 2]");
  EXPECT_EQ(shown(x.fmod(3)), "i32 (4) [-1, -1, 1, 1]");
  EXPECT_EQ(shown(x.cast(DType::F32) % 4), "f32 (4) [1, 3, 1, 3]");
  EXPECT_EQ(shown(x.cast(DType::F32).fmod(4)), "f32 (4) [-3, -1, 1, 3]");
}

TEST_F(Elementwise, SelectingAndLimiting) {
  const Tensor x = Tensor::of({-2.0f, 0.5f, 3.0f});
  EXPECT_EQ(shown(x.clamp(-1, 1)), "f32 (3) [-1, 0.5, 1]");
  EXPECT_EQ(shown((x > 0).where(x, 0)), "f32 (3) [0, 0.5, 3]");
  EXPECT_EQ(shown((x > 0).where(1, 2)), "i32 (3) [2, 1, 1]");
  EXPECT_EQ(shown(x.maximum(Tensor::of({{0.0f}, {1.0f}}))), "f32 (2, 3) [0, 0.5, 3, 1, 1, 3]");
  EXPECT_EQ(shown(x.masked_fill(x < 0, 9)), "f32 (3) [9, 0.5, 3]");
  EXPECT_EQ(shown(x.lerp(1, 0.5)), "f32 (3) [-0.5, 0.75, 2]");
  EXPECT_EQ(shown(x.copysign(-1)), "f32 (3) [-2, -0.5, -3]");
}

TEST_F(Elementwise, Rounding) {
  const Tensor x = Tensor::of({-1.5f, -0.5f, 0.5f, 1.5f, 2.5f, -1.2f});
  EXPECT_EQ(shown(x.floor()), "f32 (6) [-2, -1, 0, 1, 2, -2]");
  EXPECT_EQ(shown(x.ceil() + 0), "f32 (6) [-1, 0, 1, 2, 3, -1]");
  EXPECT_EQ(shown(x.round() + 0), "f32 (6) [-2, 0, 0, 2, 2, -1]");
  EXPECT_EQ(shown(x.round().signbit().cast(DType::I32)), "i32 (6) [1, 1, 0, 0, 0, 1]");
  const Tensor large = Tensor::of({8388607.5f, -8388609.0f, 1e30f, INFINITY, NAN, -0.0f});
  EXPECT_EQ(shown(large.round()), "f32 (6) [8388608, -8388609, 1e+30, inf, nan, -0]");
  for (const DType half : {DType::F16, DType::BF16})
    EXPECT_EQ(shown(Tensor::of({2.5f, -3.5f, 100.0f}).cast(half).round().cast(DType::F32)),
              "f32 (3) [2, -4, 100]");
  EXPECT_EQ(shown(x.trunc() + 0), "f32 (6) [-1, 0, 0, 1, 2, -1]");
  EXPECT_EQ(shown(x.sign()), "f32 (6) [-1, -1, 1, 1, 1, -1]");
  EXPECT_EQ(shown(Tensor::of({-3, 0, 4}).sign()), "i32 (3) [-1, 0, 1]");
  EXPECT_EQ(shown(Tensor::of({-3, 0, 4}).abs()), "i32 (3) [3, 0, 4]");
}

TEST_F(Elementwise, WhatIsANumber) {
  const Tensor x = Tensor::of({1.0f, INFINITY, -INFINITY, NAN});
  EXPECT_EQ(shown(x.isnan()), "bool (4) [false, false, false, true]");
  EXPECT_EQ(shown(x.isinf()), "bool (4) [false, true, true, false]");
  EXPECT_EQ(shown(x.isfinite()), "bool (4) [true, false, false, false]");
  EXPECT_EQ(shown(x.isclose(x)), "bool (4) [true, true, true, false]");
  EXPECT_EQ(shown(Tensor::of({1, 2}).isclose(2.0000001)), "bool (2) [false, true]");
  EXPECT_EQ(shown(Tensor::of({1.0f, INFINITY}).isclose(INFINITY)), "bool (2) [false, true]");
  EXPECT_EQ(shown(x.isclose(x, 1e-5, 1e-8, true)), "bool (4) [true, true, true, true]");
  EXPECT_EQ(shown(Tensor::of({1, 2}).isfinite()), "bool (2) [true, true]");
}

TEST_F(Elementwise, CastsAndBits) {
  EXPECT_EQ(shown(Tensor::of({1.9f, -1.9f, 300.0f}).cast(DType::I8)), "i8 (3) [1, -1, 127]");
  EXPECT_EQ(shown(Tensor::of({1.0f}).bitcast(DType::U32)), "u32 (1) [1065353216]");
  EXPECT_EQ(shown(Tensor::of({1.0f, -2.0f}).bitcast(DType::U8)),
            "u8 (8) [0, 0, 128, 63, 0, 0, 0, 192]");
  EXPECT_EQ(shown(Tensor::of({1.0f, -2.0f}).bitcast(DType::U8).bitcast(DType::F32)),
            "f32 (2) [1, -2]");
  EXPECT_EQ(shown(Tensor::of({true, false})), "bool (2) [true, false]");
}

/// Halfway between neighbouring halves and one to each side, of every size.
TEST_F(Elementwise, IntegersBecomeHalvesRoundedOnce) {
  std::vector<int64_t> at{0, 1, -1, INT32_MAX, INT32_MIN, INT32_MIN + 1};
  for (int size = 1; size < 31; ++size)
    for (const int digits : {8, 11})
      for (const int64_t last : {0, 1}) {
        const int64_t step = int64_t{1} << std::max(0, size - digits + 1);
        const int64_t tie = (int64_t{1} << size) + last * step + step / 2;
        for (const int64_t beside : {-1, 0, 1})
          at.push_back(tie + beside), at.push_back(-tie - beside);
      }
  for (const DType from : {DType::I32, DType::I64, DType::F64, DType::I16})
    for (const DType to : {DType::BF16, DType::F16}) {
      const Tensor x = Tensor::from(at).cast(from).contiguous().realize();
      const std::vector<double> got = x.cast(to).to_vector<double>();
      const std::vector<int64_t> of = x.cast(DType::I64).to_vector<int64_t>();
      for (size_t i = 0; i < at.size(); ++i) {
        const double want = Value::of(DType::I64, of[i]).cast(to).as_double();
        EXPECT_EQ(got[i], want) << name(from) << " " << of[i] << " to " << name(to);
      }
    }
}

struct Derived {
  const char* name;
  Tensor (*f)(const Tensor&);
  double (*reference)(double);
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }

const Derived kDerived[] = {
    {"exp", [](const Tensor& x) { return x.exp(); }, std::exp},
    {"log", [](const Tensor& x) { return (x * x + 0.1).log(); },
     [](double x) { return std::log(x * x + 0.1); }},
    {"log10", [](const Tensor& x) { return (x * x + 0.1).log10(); },
     [](double x) { return std::log10(x * x + 0.1); }},
    {"sin", [](const Tensor& x) { return x.sin(); }, std::sin},
    {"cos", [](const Tensor& x) { return x.cos(); }, std::cos},
    {"tan", [](const Tensor& x) { return x.tan(); }, std::tan},
    {"asin", [](const Tensor& x) { return (x * 0.3).asin(); },
     [](double x) { return std::asin(x * 0.3); }},
    {"acos", [](const Tensor& x) { return (x * 0.3).acos(); },
     [](double x) { return std::acos(x * 0.3); }},
    {"atan", [](const Tensor& x) { return x.atan(); }, std::atan},
    {"sinh", [](const Tensor& x) { return x.sinh(); }, std::sinh},
    {"cosh", [](const Tensor& x) { return x.cosh(); }, std::cosh},
    {"tanh", [](const Tensor& x) { return x.tanh(); }, std::tanh},
    {"asinh", [](const Tensor& x) { return x.asinh(); }, std::asinh},
    {"acosh", [](const Tensor& x) { return (x * x + 1.5).acosh(); },
     [](double x) { return std::acosh(x * x + 1.5); }},
    {"atanh", [](const Tensor& x) { return (x * 0.3).atanh(); },
     [](double x) { return std::atanh(x * 0.3); }},
    {"erf", [](const Tensor& x) { return x.erf(); }, std::erf},
    {"square", [](const Tensor& x) { return x.square(); }, [](double x) { return x * x; }},
    {"reciprocal", [](const Tensor& x) { return x.reciprocal(); }, [](double x) { return 1 / x; }},
    {"rsqrt", [](const Tensor& x) { return (x * x).rsqrt(); },
     [](double x) { return 1 / std::fabs(x); }},
    {"sigmoid", [](const Tensor& x) { return x.sigmoid(); }, sigmoid},
    {"logsigmoid", [](const Tensor& x) { return x.logsigmoid(); },
     [](double x) { return std::log(sigmoid(x)); }},
    {"relu", [](const Tensor& x) { return x.relu(); }, [](double x) { return std::max(x, 0.0); }},
    {"relu6", [](const Tensor& x) { return (x * 5).relu6(); },
     [](double x) { return std::min(std::max(x * 5, 0.0), 6.0); }},
    {"leaky_relu", [](const Tensor& x) { return x.leaky_relu(0.1); },
     [](double x) { return x < 0 ? 0.1 * x : x; }},
    {"hardsigmoid", [](const Tensor& x) { return x.hardsigmoid(); },
     [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
    {"hardswish", [](const Tensor& x) { return x.hardswish(); },
     [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
    {"silu", [](const Tensor& x) { return x.silu(); }, [](double x) { return x * sigmoid(x); }},
    {"elu", [](const Tensor& x) { return x.elu(); },
     [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"celu", [](const Tensor& x) { return x.celu(2); },
     [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }},
    {"selu", [](const Tensor& x) { return x.selu(); },
     [](double x) {
       return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
     }},
    {"gelu tanh", [](const Tensor& x) { return x.gelu(); },
     [](double x) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     }},
    {"gelu erf", [](const Tensor& x) { return x.gelu(false); },
     [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"quick_gelu", [](const Tensor& x) { return x.quick_gelu(); },
     [](double x) { return x * sigmoid(1.702 * x); }},
    {"softplus", [](const Tensor& x) { return x.softplus(2); },
     [](double x) { return softplus(2 * x) / 2; }},
    {"mish", [](const Tensor& x) { return x.mish(); },
     [](double x) { return x * std::tanh(softplus(x)); }},
    {"softsign", [](const Tensor& x) { return x.softsign(); },
     [](double x) { return x / (1 + std::fabs(x)); }},
    {"logaddexp", [](const Tensor& x) { return x.logaddexp(0.5); },
     [](double x) { return std::log(std::exp(x) + std::exp(0.5)); }},
    {"pow 3", [](const Tensor& x) { return x.pow(3); }, [](double x) { return x * x * x; }},
    {"pow -2", [](const Tensor& x) { return x.pow(-2); }, [](double x) { return 1 / (x * x); }},
    {"pow 1.5", [](const Tensor& x) { return x.abs().pow(1.5); },
     [](double x) { return std::pow(std::fabs(x), 1.5); }},
};

TEST_F(Elementwise, DerivedOpsEqualTheirReferences) {
  const std::vector<double> at = {-3, -1.7, -0.4, -1e-3, 1e-3, 0.25, 0.9, 2.2, 3.1};
  const Tensor x = Tensor::from(at, {at.size()});
  for (const Derived& op : kDerived) {
    SCOPED_TRACE(op.name);
    std::vector<double> expected;
    for (const double v : at) expected.push_back(op.reference(v));
    expect_near(op.f(x), expected, 3e-7);  // the fits of asin and erf
  }
}

TEST_F(Elementwise, DerivedOpsHaveTheirDerivatives) {
  for (const Derived& op : kDerived) {
    SCOPED_TRACE(op.name);
    // Against the reference's own slope, so that a wrong value cannot hide a wrong gradient.
    const Tensor x = sample({6});
    const auto at = values(x), got = values(op.f(x).sum().gradient({x})[0]);
    for (size_t i = 0; i < at.size(); ++i) {
      const double slope = (op.reference(at[i] + 1e-6) - op.reference(at[i] - 1e-6)) / 2e-6;
      EXPECT_NEAR(got[i], slope, 1e-5 * std::max(1.0, std::fabs(slope))) << "at " << at[i];
    }
  }
}

TEST_F(Elementwise, DerivativesAtKinksAndFarOut) {
  auto slope = [](Tensor (*f)(const Tensor&), float at) {
    const Tensor x = Tensor::of({at});
    return values(f(x).sum().gradient({x})[0])[0];
  };
  EXPECT_EQ(slope([](const Tensor& x) { return x.relu(); }, 0), 0);
  EXPECT_EQ(slope([](const Tensor& x) { return x.abs(); }, 0), 0);
  EXPECT_EQ(slope([](const Tensor& x) { return x.tanh(); }, 0), 1);
  EXPECT_EQ(slope([](const Tensor& x) { return x.sigmoid(); }, 0), 0.25);
  EXPECT_EQ(slope([](const Tensor& x) { return x.sigmoid(); }, -200), 0);
  EXPECT_EQ(slope([](const Tensor& x) { return x.sigmoid(); }, 200), 0);
  EXPECT_EQ(slope([](const Tensor& x) { return x.softplus(); }, 200), 1);
  EXPECT_EQ(slope([](const Tensor& x) { return x.pow(1.5); }, 0), 0);
  EXPECT_EQ(slope([](const Tensor& x) { return x.pow(0.3); }, 0), INFINITY);
  EXPECT_EQ(slope([](const Tensor& x) { return x.pow(-0.3); }, 0), -INFINITY);
  EXPECT_TRUE(std::isnan(slope([](const Tensor& x) { return x.pow(0.3); }, -1)));
  EXPECT_EQ(slope([](const Tensor& x) { return x.clamp(-1, 1); }, 1), 1);
  EXPECT_EQ(slope([](const Tensor& x) { return x.clamp(-1, 1); }, 1.5), 0);
  EXPECT_EQ(shown(Tensor::of({NAN}).relu()), "f32 (1) [nan]");
}

TEST_F(Elementwise, PowersOfAwkwardNumbers) {
  const Tensor x = Tensor::of({-2.0f, 0.0f, 2.0f, 4.0f});
  EXPECT_EQ(shown(x.pow(0)), "f32 (4) [1, 1, 1, 1]");
  EXPECT_EQ(shown(x.pow(Tensor::of({3.0f, 0.0f, -1.0f, 0.5f}))), "f32 (4) [-8, 1, 0.5, 2]");
  // The sign of a NaN is the machine's.
  const Tensor roots = x.pow(Tensor::of({0.5f, 1.0f, 1.0f, 2.0f}));
  EXPECT_EQ(shown(roots.isnan().where(-1, roots)), "f32 (4) [-1, 0, 2, 16]");
  EXPECT_EQ(shown(Tensor::of({-3, 2}).pow(Tensor::of({3, 10}))), "i32 (2) [-27, 1024]");
}

/// A number as exponent gives what a tensor of it gives, also where C99's pow is no root, product
/// or quotient.
TEST_F(Elementwise, PowersOfANumberAreThoseOfATensor) {
  const float inf = INFINITY;
  for (const DType dtype : {DType::F16, DType::F32, DType::F64})
    for (const float e : {0.f, 0.5f, -0.5f, 1.f, 1.5f, -1.5f, 2.f, -2.f, 3.f, -3.f, inf, -inf}) {
      const Tensor x =
          Tensor::of({0.f, -0.f, 1.f, -1.f, 0.25f, -0.25f, 9.f, -9.f, inf, -inf, NAN}).cast(dtype);
      const auto number = x.pow(e).to_vector<double>(),
                 tensor = x.pow(Tensor(e).cast(dtype)).to_vector<double>();
      for (size_t i = 0; i < number.size(); ++i) {
        const std::string what = std::to_string(i) + " to the power " + std::to_string(e);
        EXPECT_EQ(std::isnan(number[i]), std::isnan(tensor[i])) << what;
        if (std::isnan(number[i])) continue;
        EXPECT_EQ(std::signbit(number[i]), std::signbit(tensor[i])) << what;
        if (number[i] != tensor[i]) {
          EXPECT_NEAR(number[i] / tensor[i], 1, 1e-3) << what;
        }
      }
    }
}

}  // namespace
}  // namespace weft
