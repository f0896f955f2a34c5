// The gamma function's logarithm and its derivative, in f64 whatever they are of.
#include <cmath>
#include <numbers>

#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"

namespace weft::elementwise {

namespace {

// C. Lanczos, A precision approximation of the gamma function (1964), for g = 7: relative error
// 1e-15.
constexpr double kLanczos[] = {676.5203681218851,     -1259.1392167224028,  771.32342877765313,
                               -176.61502916214059,   12.507343278686905,   -0.13857109526572012,
                               9.9843695780195716e-6, 1.5056327351493116e-7};

/// Of x from 1/2 on.
Tensor right_lgamma(const Tensor& x) {
  Tensor sum = 0.99999999999980993 + x * 0, at = x;
  for (const double c : kLanczos) {
    sum = sum + c / at;
    at = at + 1;
  }
  const Tensor t = x + 6.5;
  return (x - 0.5) * t.log() - t + sum.log() + 0.9189385332046727;  // log(2 pi) / 2
}

/// Of x from 10 on: Bernoulli numbers, highest power first.
Tensor far_digamma(const Tensor& x) {
  const Tensor z = 1.0 / (x * x);
  return x.log() - 0.5 / x -
         z * z.polynomial({1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120,
                           1.0 / 12});
}

/// pi x without whole turns, which sin and tan of large x would not see.
Tensor pi_times(const Tensor& x) { return (x - x.trunc()) * std::numbers::pi; }

}  // namespace

// Below 1/2 by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x).
Tensor lgamma_of(const Tensor& given) {
  const Tensor infinite = given.isinf(), x = infinite.where(1, given).cast(DType::F64);
  const Tensor left = x < 0.5, mirrored = right_lgamma(left.where(1 - x, x));
  const Tensor sine = pi_times(left.where(x, 0.5)).sin().abs();
  const Tensor y = left.where((std::numbers::pi / sine).log() - mirrored, mirrored);
  return infinite.where(INFINITY, y).cast(given.dtype());
}

// digamma(x) = digamma(x + 1) - 1 / x; on the left digamma(1 - x) - pi / tan(pi x).
Tensor digamma_of(const Tensor& given) {
  const Tensor x = given.cast(DType::F64), left = x < 0, a = left.where(1 - x, x), near = a < 10;
  Tensor below = a * 0;
  for (int k = 0; k < 10; ++k) below = below + 1.0 / (near.where(a, 1) + k);
  const Tensor right = near.where(far_digamma(near.where(a, 0) + 10) - below, far_digamma(a));
  const Tensor pole = left & (x == x.trunc());
  const Tensor tangent = pi_times((left & ~pole).where(x, 0.5)).tan();
  const Tensor y = left.where(right - std::numbers::pi / tangent, right);
  return pole.where(NAN, y).cast(given.dtype());
}

}  // namespace weft::elementwise
