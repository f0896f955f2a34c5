// Elementary and special functions made of exp2, log2, sqrt and rational functions.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/base/error.h"
#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"

namespace weft::elementwise {

namespace {

/// The integer dtype as wide as a float's.
DType bits_dtype(DType d) {
  switch (bits(d)) {
    case 8: return DType::I8;
    case 16: return DType::I16;
    case 32: return DType::I32;
    default: return DType::I64;
  }
}

/// An odd function from its values at |x|; of -0 it is -0, which only the sign bit tells.
template <class F>
Tensor odd(const Tensor& x, F f) {
  const Tensor positive = (x >= 0) & ~elementwise::signbit_of(x), y = f(positive.where(x, -x));
  return positive.where(y, -y);
}

/// Above this the square of a number and the square plus or minus one are the same.
double large(DType d) { return std::ldexp(1.0, float_digits(d) / 2 + 1); }

/// Floats that two operands are computed in, and the dtype of the result.
struct Both {
  Both(const Tensor& x, const Operand& other)
      : out(float_or_default((x + other).dtype())),
        a(x.cast(sum_dtype(out))),
        b(beside(x, other).cast(sum_dtype(out))) {}
  DType out;
  Tensor a, b;
};

}  // namespace

// ---- quotients and signs

Tensor divided(const Tensor& x, const Operand& other, Rounding rounding) {
  if (rounding == Rounding::None) return x / other;
  const Tensor down = x.floor_div(other);
  if (rounding == Rounding::Floor) return down;
  if (is_float(down.dtype())) {
    const DType run = sum_dtype(down.dtype());
    return (x.cast(run) / beside(x, other).cast(run)).trunc().cast(down.dtype());
  }
  // One more where floor rounded a negative quotient away from zero.
  const Tensor y = beside(x, other).cast(down.dtype()), dividend = x.cast(down.dtype());
  const Tensor away = (down * y != dividend) & ((dividend < 0) != (y < 0)) & (y != 0);
  return down + away.cast(down.dtype());
}

Tensor fmod_of(const Tensor& x, const Operand& other) {
  const Tensor remainder = x % other;
  const DType met = remainder.dtype();
  if (is_float(met)) return truncated_rest(x, other, met);
  const Tensor divisor = beside(x, other).cast(met), dividend = x.cast(met);
  const Tensor other_sign = (remainder != 0) & ((remainder < 0) != (dividend < 0));
  return other_sign.where(remainder - divisor, remainder);
}

Tensor signbit_of(const Tensor& x) {
  return is_float(x.dtype()) ? x.bitcast(bits_dtype(x.dtype())) < 0 : x < 0;
}

Tensor copysign_of(const Tensor& x, const Operand& other) {
  const Tensor size = x.cast(float_or_default((x + other).dtype())).abs();
  return signbit_of(beside(x, other)).where(-size, size);
}

Tensor beside(const Tensor& x, const Operand& other) {
  if (other.tensor()) return *other.tensor();
  return Tensor::full({}, other.scalar(), promote_weak(x.dtype(), other.scalar()));
}

Tensor truth_of(const Tensor& x, const Operand& other) { return beside(x, other) != 0; }

Tensor measured(const Tensor& x) {
  if (is_float(x.dtype())) return x;
  return x.cast(bits(x.dtype()) > 16 ? DType::F64 : DType::F32);
}

Operand weak(const Tensor& x, double number) {
  const DType d = x.dtype();
  const DType held = is_bool(d) ? DType::I32 : d;  // what it meets whole numbers in
  const bool whole = !is_float(d) && number == std::trunc(number) &&
                     number >= static_cast<double>(int_min(held)) &&
                     number <= static_cast<double>(std::min<uint64_t>(int_max(held), 1 << 30));
  return whole ? Operand(static_cast<int64_t>(number)) : Operand(number);
}

// ---- exponentials and logarithms

// Kahan: the rounding of u = e^x cancels in (u - 1) / log u, which hardly changes with u.
// https://www.plunk.org/~hatch/rightway.html
Tensor expm1_of(const Tensor& x) {
  const Tensor u = x.exp();
  const Tensor exact = (u == 1) | u.isinf() | (u - 1 == -1);
  const Tensor v = exact.where(2, u), y = (v - 1) * (exact.where(1, x) / v.log());
  return (u == 1).where(x, exact.where(u - 1, y));
}

Tensor log1p_of(const Tensor& x) {
  const Tensor u = 1 + x;
  const Tensor exact = (u == 1) | (u == 0) | u.isinf();
  const Tensor v = exact.where(2, u), y = v.log() * (exact.where(1, x) / (v - 1));
  return (u == 1).where(x, exact.where(u.log(), y));
}

Tensor logaddexp_of(const Tensor& x, const Operand& other) {
  const Both in(x, other);
  const Tensor &a = in.a, &b = in.b, most = a.maximum(b);
  const Tensor far = most.isinf(), gap = far.where(0, a.minimum(b) - most);
  return far.where(most, most + gap.exp().log1p()).cast(in.out);
}

Tensor logaddexp2_of(const Tensor& x, const Operand& other) {
  const Both in(x, other);
  const Tensor &a = in.a, &b = in.b, most = a.maximum(b);
  const Tensor far = most.isinf(), gap = far.where(0, a.minimum(b) - most);
  return far.where(most, most + gap.exp2().log1p() * std::numbers::log2e).cast(in.out);
}

Tensor xlogy_of(const Tensor& x, const Operand& other) {
  const Both in(x, other);
  const Tensor &a = in.a, &b = in.b;
  const Tensor none = (a == 0) & ~b.isnan() & ~((b > 0) & (b < INFINITY));
  return none.where(0, a * none.where(1, b).log()).cast(in.out);
}

// ---- NaN and infinities

Tensor of_numbers(const Tensor& x, const Operand& other, const Tensor& extreme) {
  if (!is_float(extreme.dtype())) return extreme;
  const Tensor a = x.cast(extreme.dtype()), b = beside(x, other).cast(extreme.dtype());
  return a.isnan().where(b, b.isnan().where(a, extreme));
}

Tensor finite_of(const Tensor& x, double nan, double high, double low) {
  if (!is_float(x.dtype())) return x;
  const double top = float_max(x.dtype());
  const auto limited = [&](double number) { return std::clamp(number, -top, top); };
  return x.isnan().where(
      nan, x.isinf(true, false).where(limited(high), x.isinf(false).where(limited(low), x)));
}

// ---- trigonometric

Tensor hypot_of(const Tensor& x, const Operand& other) {
  const Both in(x, other);
  const Tensor a = in.a.abs(), b = in.b.abs(), most = a.maximum(b);
  const Tensor infinite = a.isinf() | b.isinf(), flat = infinite | (most == 0);
  const Tensor ratio = flat.where(0, a.minimum(b) / flat.where(1, most));
  return infinite.where(INFINITY, most * (1 + ratio * ratio).sqrt()).cast(in.out);
}

namespace {

// (atan(x) - x) / x^3 as a quotient of polynomials in x^2 for |x| <= 0.66, highest power first: S.
// L. Moshier, Cephes (1992), atan.c; relative error 2e-16.
constexpr double kAtanTop[] = {-8.750608600031904122785e-1, -1.615753718733365076637e1,
                               -7.500855792314704667340e1, -1.228866684490136173410e2,
                               -6.485021904942025371773e1};
constexpr double kAtanBottom[] = {1,
                                  2.485846490142306297962e1,
                                  1.650270098316988542046e2,
                                  4.328810604912902668951e2,
                                  4.853903996359136964868e2,
                                  1.945506571482613964425e2};

template <size_t N>
Tensor horner(const Tensor& x, const double (&c)[N]) {
  return x.polynomial(std::vector<double>(c, c + N));
}

/// atan of 0 <= x <= 0.66.
Tensor small_atan(const Tensor& x) {
  const Tensor z = x * x;
  if (x.dtype() == DType::F64) return x + x * (z * horner(z, kAtanTop) / horner(z, kAtanBottom));
  // Least maximum error of the rest of the series over [0, tan(pi/8)], 1e-8: Cephes atanf.c.
  return x + x * (z * z.polynomial({8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1,
                                    -3.33329491539e-1}));
}

}  // namespace

Tensor atan_of(const Tensor& x) {
  // tan(a - b) = (tan a - tan b) / (1 + tan a tan b): about 0, pi/4 or pi/2 the rest is small.
  return odd(x, [](const Tensor& a) {
    auto number = [&](double value) { return Tensor::full({}, value, a.dtype()); };
    const double tan_1_8 = std::numbers::sqrt2 - 1, tan_3_8 = std::numbers::sqrt2 + 1;  // of pi
    const Tensor is_steep = a > tan_3_8, is_small = a <= tan_1_8;
    const Tensor about_1 = (a - 1) / (1 + is_steep.where(1, a));
    const Tensor reduced = is_steep.where(-1.0 / is_steep.where(a, 1), about_1);
    const Tensor offset = is_steep.where(number(std::numbers::pi / 2),
                                         is_small.where(0, number(std::numbers::pi / 4)));
    return offset + small_atan(is_small.where(a, reduced));
  });
}

// With the longer side below the quotient is at most 1; signs by bits, as -0 has one.
Tensor atan2_of(const Tensor& x, const Operand& other) {
  const Both in(x, other);
  const Tensor down = signbit_of(in.a), left = signbit_of(in.b);
  const Tensor y = down.where(-in.a, in.a), z = left.where(-in.b, in.b);
  const Tensor steep = y > z, most = steep.where(y, z), least = steep.where(z, y);
  const Tensor corner = y.isinf() & z.isinf(), none = (y == 0) & (z == 0);
  const Tensor ratio = corner.where(1, none.where(0, least / none.where(1, most)));
  const Tensor flat = ratio.atan(), right = steep.where(std::numbers::pi / 2 - flat, flat);
  const Tensor angle = left.where(std::numbers::pi - right, right);
  return down.where(-angle, angle).cast(in.out);
}

// ---- hyperbolic

Tensor sinh_of(const Tensor& x) {
  return odd(x, [](const Tensor& a) {
    const Tensor small = a < 1, e = small.where(a, 0).expm1();
    const Tensor half = (a * 0.5).exp(), other = (a * -0.5).exp();
    return small.where((e + e / (e + 1)) * 0.5, half * (half * 0.5) - other * (other * 0.5));
  });
}

namespace {

// (tanh(x) - x) / x^3 in x^2 for |x| <= 0.625, highest power first: S. L. Moshier, Cephes (1992),
// tanh.c and tanhf.c.
constexpr double kTanhTop[] = {-9.64399179425052238628e-1, -9.92877231001918586564e1,
                               -1.61468768441708447952e3};
constexpr double kTanhBottom[] = {1, 1.12811678491632931402e2, 2.23548839060100448583e3,
                                  4.84406305325125486048e3};
constexpr double kTanhF32[] = {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                               1.33314422036e-1, -3.33332819422e-1};

Tensor small_tanh(const Tensor& x) {
  const Tensor z = x * x;
  if (x.dtype() != DType::F64) return x + x * (z * horner(z, kTanhF32));
  return x + x * (z * horner(z, kTanhTop) / horner(z, kTanhBottom));
}

}  // namespace

// With e = exp(-2|x|) nothing overflows.
Tensor tanh_of(const Tensor& x) {
  return odd(x, [](const Tensor& a) {
    const Tensor small = a < 0.625, e = (a * -2).exp();
    return small.where(small_tanh(small.where(a, 0)), (1 - e) / (1 + e));
  });
}

Tensor asinh_of(const Tensor& x) {
  return odd(x, [](const Tensor& a) {
    const Tensor is_large = a > large(a.dtype());
    const Tensor b = is_large.where(1, a), square = b * b;
    const Tensor near = (b + square / (1 + (square + 1).sqrt())).log1p();
    return is_large.where(is_large.where(a, 1).log() + std::numbers::ln2, near);
  });
}

// The derivative is 1 / (1 - x^2) where the value is NaN, too, as PyTorch has it.
Tensor atanh_of(const Tensor& x) {
  return odd(x, [](const Tensor& a) {
    const Tensor small = a < 0.5, b = small.where(a, 0), c = small.where(0, a);
    return small.where((2 * b / (1 - b)).log1p() * 0.5, ((1 + c).log() - (1 - c).log()) * 0.5);
  });
}

Tensor acosh_of(const Tensor& x) {
  const Tensor is_large = x > large(x.dtype()), outside = x < 1;
  const Tensor t = (is_large | outside).where(1, x - 1);
  const Tensor near = (t + t.sqrt() * (t + 2).sqrt()).log1p();  // infinite slope at 0
  const Tensor far = is_large.where(x, 1).log() + std::numbers::ln2;
  // The logarithm of a negative number, with PyTorch's slope: 1 / sqrt(x^2 - 1), or NaN.
  const Tensor between = outside & (x > -1), below = outside & (x <= -1) & (x > -INFINITY);
  const Tensor y = below.where(x, -2), is_far = y < -large(x.dtype());
  const Tensor root = is_far.where(0, (is_far.where(-2, y).square() - 1).sqrt());
  const Tensor z = between.where(x, 0), nothing = (z - z.detach()).sqrt() * 0;
  const Tensor none = (1.0 / (y - root + nothing)).log();
  return outside.where(none, is_large.where(far, near));
}

// ---- the error function

namespace {

// W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969):
// erf(x) / x in x^2 up to 0.46875, and erfc(x) e^(x^2) in x from there (to 4 for all digits of
// erfc; erf has them to 6, where it is 1); highest power first.
constexpr double kErfTop[] = {1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
                              3.77485237685302021e2, 3.20937758913846947e3};
constexpr double kErfBottom[] = {1, 2.36012909523441209e1, 2.44024637934444173e2,
                                 1.28261652607737228e3, 2.84423683343917062e3};
constexpr double kErfcTop[] = {
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
    6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
    1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
constexpr double kErfcBottom[] = {1,
                                  1.57449261107098347e1,
                                  1.17693950891312499e2,
                                  5.37181101862009858e2,
                                  1.62138957456669019e3,
                                  3.29079923573345963e3,
                                  4.36261909014324716e3,
                                  3.43936767414372164e3,
                                  1.23033935480374942e3};

Tensor double_erf(const Tensor& a) {
  // From 27 on the derivative is 0, too; that of an infinite square is none.
  const Tensor small = a < 0.46875, b = small.where(1, a.minimum(27));
  const Tensor c = small.where(a, 0), z = c * c;
  const Tensor near = c * (horner(z, kErfTop) / horner(z, kErfBottom));
  return small.where(near, 1 - horner(b, kErfcTop) / horner(b, kErfcBottom) * (-(b * b)).exp());
}

/// Up to 1/2 the power series, 2 / sqrt(pi) * (-1)^n / (n! (2n + 1)); above it Abramowitz and
/// Stegun 7.1.26, absolute error 1.5e-7.
Tensor single_erf(const Tensor& a) {
  const Tensor small = a < 0.5, c = small.where(a, 0);
  const Tensor near =
      c * (c * c).polynomial({-8.548327023450852e-4, 5.223977625442188e-3, -2.686617064513125e-2,
                              0.11283791670955126, -0.3761263890318375, 1.1283791670955126});
  const Tensor b = a.minimum(11);  // the derivative is 0 from there on
  const Tensor t = 1.0 / (1 + 0.3275911 * b);
  const Tensor p =
      t.polynomial({1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592});
  return small.where(near, 1 - p * t * (-(b * b)).exp());
}

}  // namespace

Tensor erf_of(const Tensor& x) { return odd(x, x.dtype() == DType::F64 ? double_erf : single_erf); }

namespace {

// The same for erfc(x) x e^(x^2) - 1 / sqrt(pi) in 1 / x^2 above 4, without its sign.
constexpr double kErfcFarTop[] = {1.63153871373020978e-2, 3.05326634961232344e-1,
                                  3.60344899949804439e-1, 1.25781726111229246e-1,
                                  1.60837851487422766e-2, 6.58749161529837803e-4};
constexpr double kErfcFarBottom[] = {1,
                                     2.56852019228982242e0,
                                     1.87295284992346047e0,
                                     5.27905102951428412e-1,
                                     6.05183413124413191e-2,
                                     2.33520497626869185e-3};

/// e^(-x^2), whose exponent would lose digits in one piece.
Tensor gauss(const Tensor& x) {
  const Tensor rough = (x * 16).trunc() * (1.0 / 16);
  return (-(rough * rough)).exp() * (-((x - rough) * (x + rough))).exp();
}

/// Of f64 that are not negative.
Tensor positive_erfc(const Tensor& a) {
  const Tensor near = a < 0.46875, far = a > 4;
  const Tensor b = (near | far).where(1, a), c = far.where(a, 8).minimum(30), z = 1.0 / (c * c);
  const Tensor middle = horner(b, kErfcTop) / horner(b, kErfcBottom) * gauss(b);
  const Tensor rest = z * (horner(z, kErfcFarTop) / horner(z, kErfcFarBottom));
  const Tensor tail = (1 / std::sqrt(std::numbers::pi) - rest) / c * gauss(c);
  return near.where(1 - double_erf(near.where(a, 0)), far.where(tail, middle));
}

}  // namespace

Tensor erfc_of(const Tensor& given) {
  const Tensor x = given.cast(DType::F64), right = x >= 0;
  const Tensor y = positive_erfc(right.where(x, -x));
  return right.where(y, 2 - y).cast(given.dtype());
}

// M. Giles, Approximating the erfinv function (2010), then two steps of Newton's method.
Tensor erfinv_of(const Tensor& given) {
  return odd(given.cast(DType::F64),
             [](const Tensor& a) {
               const Tensor inside = a < 1, x = inside.where(a, 0), rest = 1 - x;
               const Tensor w = -(rest * (1 + x)).log(), near = w < 5;
               const Tensor middle =
                   (near.where(w, 2.5) - 2.5)
                       .polynomial({2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                                    0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
                                    1.50140941});
               const Tensor tail = (near.where(9, w).sqrt() - 3)
                                       .polynomial({-0.000200214257, 0.000100950558, 0.00134934322,
                                                    -0.00367342844, 0.00573950773, -0.0076224613,
                                                    0.00943887047, 1.00167406, 2.83297682});
               Tensor y = near.where(middle, tail) * x;
               for (int step = 0; step < 2; ++step) {
                 const Tensor above = (x > 0.5).where(rest - positive_erfc(y), double_erf(y) - x);
                 y = y - above * (std::sqrt(std::numbers::pi) / 2) * (y * y).exp();
               }
               return inside.where(y, (a == 1).where(INFINITY, NAN));
             })
      .cast(given.dtype());
}

}  // namespace weft::elementwise
