// The gamma function's logarithm and its derivative, in f64 whatever they are of.
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

}  // namespace

// From 1/2 on log gamma(x) is (x - 1/2) log(x + 13/2) - (x + 13/2) + log(2 pi) / 2 + log sum; below
// it by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x).
Tensor lgamma_of(const Tensor& given) {
  const auto value = [](const Tensors& in) {
    const Tensor infinite = in[0].isinf(), x = infinite.where(1, in[0]).cast(DType::F64);
    const Tensor left = x < 0.5, a = left.where(1 - x, x), t = a + 6.5;
    // Beyond 1e17 the sum is what it is there, and its powers do not overflow.
    const Tensor sum = quotient(a.minimum(1e17), kLanczosTop, kLanczosBottom);
    const Tensor main = (a - 0.5) * t.log() - t + 0.9189385332046727;
    const Tensor sine = pi_times(left.where(x, 0.5)).sin().abs();
    const Tensor rest = left.where(std::numbers::pi / sine / sum, sum).log();
    return Tensors{
        infinite.where(INFINITY, left.where(rest - main, main + rest)).cast(in[0].dtype())};
  };
  const auto gradient = [](const Tensors& in, const Tensors&, const Tensors& upstream) {
    return Tensors{upstream[0] * in[0].digamma()};
  };
  return with_gradient(value, gradient, {given})[0];
}

// digamma(x) = digamma(x + 1) - 1 / x; on the left digamma(1 - x) - pi / tan(pi x).
Tensor digamma_of(const Tensor& given) {
  const Tensor x = given.cast(DType::F64), left = x < 0, a = left.where(1 - x, x), near = a < 10;
  const Tensor below = near.where(quotient(near.where(a, 1), kTenTop, kTenBottom), 0);
  const Tensor right = far_digamma(near.where(a + 10, a)) - below;
  const Tensor pole = left & (x == x.trunc());
  const Tensor tangent = pi_times((left & ~pole).where(x, 0.5)).tan();
  const Tensor y = left.where(right - std::numbers::pi / tangent, right);
  return pole.where(NAN, y).cast(given.dtype());
}

}  // namespace weft::elementwise
