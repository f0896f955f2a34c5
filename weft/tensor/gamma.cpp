// The gamma function's logarithm, of f32 and f64, and its derivative, in f64 whatever it is of.
#include <cmath>
#include <numbers>

#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/transforms.h"

namespace weft::elementwise {

namespace {

// C. Lanczos, A precision approximation of the gamma function (1964), for g = 7: relative error
// 1e-15. Its sum of 0.99999999999980993 and c[k] / (x + k) with c = 676.5203681218851,
// -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
// -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7 as one quotient, highest power
// first.
constexpr double kLanczosTop[] = {0.9999999999998099, 52.45833333334355,  1203.8342013886463,
                                  15784.880456697452, 129347.25852873056, 678289.7015023341,
                                  2222880.4194936417, 4162387.8912255666, 3409662.655334301};
constexpr double kLanczosBottom[] = {1, 28, 322, 1960, 6769, 13132, 13068, 5040, 0};

// 1 / x + 1 / (x + 1) + ... + 1 / (x + 9) as one quotient: x (x + 1) ... (x + 9) is below.
constexpr double kTenTop[] = {10,      405,     6960,    66150,   379638,
                              1346625, 2894720, 3518100, 2053152, 362880};
constexpr double kTenBottom[] = {1,      45,      870,     9450,   63273, 269325,
                                 723680, 1172700, 1026576, 362880, 0};

// Below it 1 / x is digamma(x) within f64's rounding but for the sign, and the logarithm lgamma(x).
constexpr double kTiny = 1e-20;

Tensor quotient(const Tensor& x, std::span<const double> top, std::span<const double> bottom) {
  return horner(x, top) / horner(x, bottom);
}

// Bernoulli numbers, highest power first.
constexpr double kFarDigamma[] = {1.0 / 12,  -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                  1.0 / 252, -1.0 / 120,     1.0 / 12};

/// Of x from 10 on.
Tensor far_digamma(const Tensor& x) {
  const Tensor z = 1.0 / (x * x);
  return x.log() - 0.5 / x - z * horner(z, kFarDigamma);
}

/// pi x without whole turns, which sin and tan of large x would not see.
Tensor pi_times(const Tensor& x) { return (x - x.trunc()) * std::numbers::pi; }

// From 1/2 on log gamma(x) is (x - 1/2) log(x + 13/2) - (x + 13/2) + log(2 pi) / 2 + log sum; below
// it by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x); next to 0 it is -log |x|.
Tensor double_lgamma(const Tensor& given) {
  const Tensor infinite = given.isinf(), x = infinite.where(1, given), size = x.abs();
  const Tensor left = x < 0.5, a = left.where(1 - x, x), t = a + 6.5;
  // Beyond 1e17 the sum is what it is there, and its powers do not overflow.
  const Tensor sum = quotient(a.minimum(1e17), kLanczosTop, kLanczosBottom);
  const Tensor main = (a - 0.5) * t.log() - t + 0.9189385332046727;
  const Tensor sine = pi_times(left.where(x, 0.5)).sin().abs();
  const Tensor tiny = size < kTiny, far = left.where(std::numbers::pi / sine / sum, sum);
  const Tensor rest = tiny.where(size, far).log();
  return infinite.where(INFINITY, tiny.where(-rest, left.where(rest - main, main + rest)));
}

// tools/minimax, highest power first. log gamma(2 + x) / (x (x + 1)) on [-1, 1]: relative error
// 2^-25.1; (log gamma(x) - (x - 1/2) (log x - 1) - (log(2 pi) - 1) / 2) x in 1 / x^2 from 3 on:
// 2^-29.7; -log(sin(pi x) / (pi x)) / x^2 in x^2 to 1/2: 2^-31.2.
constexpr double kNearLgamma[] = {0x1.441fd4p-16, -0x1.45010ep-15, 0x1.533614p-16, -0x1.b7831ap-15,
                                  0x1.9ab100p-13, -0x1.be4546p-12, 0x1.dd5bdep-11, -0x1.13851cp-9,
                                  0x1.47a56cp-8,  -0x1.95d4b8p-7,  0x1.0e0c80p-5,  -0x1.9ae648p-4,
                                  0x1.b0ee60p-2};
constexpr double kFarLgamma[] = {0x1.641e9cp-11, -0x1.6b0fa4p-9, 0x1.555528p-4};
constexpr double kSineLgamma[] = {0x1.a2dd9cp-2, 0x1.b6318ep-6, 0x1.e10306p-3, 0x1.f8c510p-3,
                                  0x1.5b9304p-2, 0x1.1511cep-1, 0x1.a51a68p+0};

/// Of f32 that are not negative: about 1 and 2, where it is 0, by a polynomial, below by gamma(x +
/// 1) = x gamma(x), from 3 on by Stirling's series.
Tensor positive_lgamma(const Tensor& a) {
  const auto number = [&](double value) { return Tensor::full({}, value, a.dtype()); };
  const Tensor least = a < 1, y = least.where(a, a - 1), rest = least.where(a - 1, a - 2);
  const Tensor near = y * rest * horner(rest, kNearLgamma), logarithm = a.log();
  const Tensor w = 1 / a, tail = add_product(w, horner(w * w, kFarLgamma), number(0.4189385332));
  const Tensor far = add_product(a - 0.5, logarithm - 1, tail);
  return (a < 3).where(near - least.where(logarithm, -0.0), far);  // at 1: not -0
}

/// Of f32; below 0 by reflection: with the distance r from a whole number, |sin(pi x)| is that of
/// pi r.
Tensor single_lgamma(const Tensor& x) {
  // What is far on the left is a whole number, of which it is infinite.
  const Tensor left = x < 0, right = positive_lgamma(left.where((1 - x).minimum(1e30), x));
  const Tensor whole = x.round(), r = (x == whole).where(0, x - whole), z = r * r;
  const Tensor sine = z * horner(z, kSineLgamma) - size_by_bits(r).log();
  return left.where(sine - right, right);
}

}  // namespace

Tensor lgamma_of(const Tensor& given) {
  const auto value = [](const Tensors& in) {
    return Tensors{in[0].dtype() == DType::F64 ? double_lgamma(in[0]) : single_lgamma(in[0])};
  };
  const auto gradient = [](const Tensors& in, const Tensors&, const Tensors& upstream) {
    return Tensors{upstream[0] * in[0].digamma()};
  };
  return with_gradient(value, gradient, {given})[0];
}

// digamma(x) = digamma(x + 1) - 1 / x; on the left digamma(1 - x) - pi / tan(pi x). At the poles it
// is minus one by the distance, 0: NaN but for x = 0, where zero has a sign, and its slope is
// infinite.
Tensor digamma_of(const Tensor& given) {
  const Tensor exact = given.cast(DType::F64), tiny = exact.abs() < kTiny;
  const Tensor pole = (exact < 0) & (exact == exact.trunc()), at_pole = tiny | pole;
  const Tensor x = at_pole.where(1, exact);
  const Tensor left = x < 0, a = left.where(1 - x, x), near = a < 10;
  const Tensor below = near.where(quotient(near.where(a, 1), kTenTop, kTenBottom), 0);
  const Tensor right = far_digamma(near.where(a + 10, a)) - below;
  const Tensor tangent = pi_times(left.where(x, 0.5)).tan();
  const Tensor y = left.where(right - std::numbers::pi / tangent, right);
  const Tensor distance = at_pole.where(tiny.where(exact, exact - exact.trunc()), 1);
  const Tensor steep = -1 / distance + tiny.where(0.0, NAN).cast(DType::F64);
  return at_pole.where(steep, y).cast(given.dtype());
}

}  // namespace weft::elementwise
