#include "weft/tensor/butterflies.h"

#include <cmath>
#include <numbers>

namespace weft::fft {

namespace {

Complex plus(const Complex& a, const Complex& b) {
  if (!a.im.defined()) return {a.re + b.re, b.im};
  return {a.re + b.re, b.im.defined() ? a.im + b.im : a.im};
}
Complex minus(const Complex& a, const Complex& b) {
  if (!a.im.defined()) return {a.re - b.re, b.im.defined() ? -b.im : b.im};
  return {a.re - b.re, b.im.defined() ? a.im - b.im : a.im};
}

/// a exp(2 pi i turn / n).
Complex turned_by(const Complex& a, int64_t turn, int64_t n) {
  turn = (turn % n + n) % n;
  if (turn == 0) return a;
  if (2 * turn == n) return {-a.re, a.im.defined() ? -a.im : a.im};
  const double angle = 2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(n);
  const double c = std::cos(angle), s = std::sin(angle);
  if (!a.im.defined()) return {a.re * c, a.re * s};
  if (4 * turn == n) return {-a.im, a.re};
  if (4 * turn == 3 * n) return {a.im, -a.re};
  return {a.re * c - a.im * s, a.re * s + a.im * c};
}

/// Of a prime number of them: what terms t and p - t have in common is computed once.
Numbers prime_transform(const Numbers& x, int sign) {
  const auto p = static_cast<int64_t>(x.size());
  const auto at = [](const Numbers& z, int64_t i) -> const Complex& {
    return z[static_cast<size_t>(i)];
  };
  if (p == 2) return {plus(x[0], x[1]), minus(x[0], x[1])};
  Numbers sums, differences, y(x.size());
  y[0] = x[0];
  for (int64_t t = 1; 2 * t < p; ++t) {
    sums.push_back(plus(at(x, t), at(x, p - t)));
    differences.push_back(minus(at(x, t), at(x, p - t)));
    y[0] = plus(y[0], sums.back());
  }
  const auto scaled = [](const Complex& z, double by) {
    return z.each([by](const Tensor& r) { return r * by; });
  };
  for (int64_t k = 1; 2 * k < p; ++k) {
    Complex even = x[0], odd;
    for (int64_t t = 1; 2 * t < p; ++t) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(k * t % p) / static_cast<double>(p);
      even = plus(even, scaled(at(sums, t - 1), std::cos(angle)));
      const Complex term = scaled(at(differences, t - 1), sign * std::sin(angle));
      odd = t == 1 ? term : plus(odd, term);
    }
    const Complex beside = turned_by(odd, 1, 4);
    y[static_cast<size_t>(k)] = plus(even, beside);
    y[static_cast<size_t>(p - k)] = minus(even, beside);
  }
  return y;
}

}  // namespace

Numbers transform_of(const Numbers& x, int sign) {
  const auto n = static_cast<int64_t>(x.size());
  int64_t p = 2;
  while (n % p != 0) ++p;
  if (p == n) return prime_transform(x, sign);
  const int64_t m = n / p;
  std::vector<Numbers> some;
  for (int64_t r = 0; r < p; ++r) {
    Numbers every;
    for (int64_t t = r; t < n; t += p) every.push_back(x[static_cast<size_t>(t)]);
    some.push_back(transform_of(every, sign));
  }
  Numbers y(x.size());
  for (int64_t k = 0; k < m; ++k) {
    Numbers terms;
    for (int64_t r = 0; r < p; ++r)
      terms.push_back(
          turned_by(some[static_cast<size_t>(r)][static_cast<size_t>(k)], sign * r * k, n));
    const Numbers found = prime_transform(terms, sign);
    for (int64_t q = 0; q < p; ++q)
      y[static_cast<size_t>(k + m * q)] = found[static_cast<size_t>(q)];
  }
  return y;
}

}  // namespace weft::fft
