// Elementary and special functions made of exp2, log2, sqrt and rational functions.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "weft/base/error.h"
#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/tracing.h"
#include "weft/tensor/transforms.h"

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

/// An odd function from its values at |x|, which are not negative; of -0 it is -0. Without a
/// derivative, either.
template <class F>
Tensor odd(const Tensor& x, F f) {
  const DType whole = bits_dtype(x.dtype());
  const Tensor sign = x.bitcast(whole) & int_min(whole), y = f(size_by_bits(x));
  return (y.bitcast(whole) | sign).bitcast(x.dtype());
}

/// f(x), whose derivative is slope(x, f(x)).
template <class F, class Slope>
Tensor with_slope(const Tensor& x, F f, Slope slope) {
  const auto value = [f](const Tensors& in) { return Tensors{f(in[0])}; };
  const auto gradient = [slope](const Tensors& in, const Tensors& out, const Tensors& upstream) {
    return Tensors{upstream[0] * slope(in[0], out[0])};
  };
  return with_gradient(value, gradient, {x})[0];
}

/// 2 x overflows above it, x^2 above its root.
double large(DType d) { return float_max(d) / 4; }

/// What both meet in; an Error where they do not.
DType dtype_of_sum(const Tensor& x, const Operand& other) {
  const Tensor* y = other.tensor();
  const bool alike = y && y->dtype() == x.dtype() && y->node()->shape == x.node()->shape;
  return alike ? x.dtype() : (x + other).dtype();
}

/// Floats that two operands are computed in, and the dtype of the result.
struct Both {
  Both(const Tensor& x, const Operand& other)
      : out(float_or_default(dtype_of_sum(x, other))),
        a(x.cast(sum_dtype(out))),
        b(beside(x, other).cast(sum_dtype(out))) {}
  /// f of both in the result's dtype, as one node.
  template <class F>
  Tensor traced(const char* name, F f) const {
    const TensorFunction body = [&f](const Tensors& in) { return Tensors{f(in[0], in[1])}; };
    return called(name, {}, {a, b}, body)[0].cast(out);
  }
  DType out;
  Tensor a, b;
};

}  // namespace

// ---- quotients and signs

Tensor size_by_bits(const Tensor& x) {
  const DType whole = bits_dtype(x.dtype());
  return (x.bitcast(whole) & static_cast<int64_t>(int_max(whole))).bitcast(x.dtype());
}

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
  const DType met = dtype_of_sum(x, other);
  if (is_float(met)) return truncated_rest(x, other, met);
  const Tensor remainder = x % other;
  const Tensor divisor = beside(x, other).cast(met), dividend = x.cast(met);
  const Tensor other_sign = (remainder != 0) & ((remainder < 0) != (dividend < 0));
  return other_sign.where(remainder - divisor, remainder);
}

Tensor signbit_of(const Tensor& x) {
  return is_float(x.dtype()) ? x.bitcast(bits_dtype(x.dtype())) < 0 : x < 0;
}

Tensor copysign_of(const Tensor& x, const Operand& other) {
  const Tensor sized = x.cast(float_or_default(dtype_of_sum(x, other)));
  return called("copysign", {}, {sized, beside(x, other)}, [](const Tensors& in) {
    const Tensor size = in[0].abs();
    return Tensors{signbit_of(in[1]).where(-size, size)};
  })[0];
}

Tensor traced(const char* name, const Tensor& x, std::initializer_list<double> numbers,
              const std::function<Tensor(const Tensor&)>& f) {
  Ints options;
  for (const double number : numbers) options.push_back(std::bit_cast<int64_t>(number));
  const TensorFunction body = [&f](const Tensors& in) { return Tensors{f(in[0])}; };
  return called(name, options, {x}, body)[0];
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

// The power series near 0, where e^x - 1 cancels: up to 1/2 what follows is 2^-26 of the sum (f64:
// 2^-59).
Tensor expm1_of(const Tensor& x) {
  const bool wide = x.dtype() == DType::F64;
  const Tensor small = x.abs() < 0.5, near = small.where(x, 0);
  std::vector<double> series;
  for (int n = wide ? 15 : 8; n > 0; --n) series.push_back(1 / std::tgamma(n + 1));
  return small.where(near * horner(near, series), x.exp() - 1);
}

/// log u and what the rounding of u = 1 + x lost of it, to first order: the slope is that of log u.
Tensor log1p_of(const Tensor& x) {
  const Tensor u = 1 + x, lost = ((x - (u - 1)) / u).detach();
  // Of infinities and of log 0: NaN.
  const Tensor some = (lost * lost < 1).where(lost, 0);
  return (u == 1).where(x, u.log() + some);
}

namespace {

// (log(1 + x) - x) / x^2 on [0, 1], highest power first: tools/minimax, relative error 2^-27.5.
constexpr double kLog1pF32[] = {-0.003290468594059348, 0.020086241886019707, -0.05745723098516464,
                                0.10661128163337708,   -0.15344880521297455, 0.19692102074623108,
                                -0.24958018958568573,  0.33330464363098145,  -0.4999993145465851};

}  // namespace

Tensor log1p_of_fraction(const Tensor& x) {
  if (x.dtype() == DType::F64) return x.log1p();
  return x + x * x * horner(x, kLog1pF32);
}

Tensor logaddexp_of(const Tensor& x, const Operand& other) {
  return Both(x, other).traced("logaddexp", [](const Tensor& a, const Tensor& b) {
    const Tensor most = a.maximum(b);
    const Tensor far = most.isinf(), gap = far.where(0, a.minimum(b) - most);
    return far.where(most, most + log1p_of_fraction(gap.exp()));
  });
}

Tensor logaddexp2_of(const Tensor& x, const Operand& other) {
  return Both(x, other).traced("logaddexp2", [](const Tensor& a, const Tensor& b) {
    const Tensor most = a.maximum(b);
    const Tensor far = most.isinf(), gap = far.where(0, a.minimum(b) - most);
    return far.where(most, most + log1p_of_fraction(gap.exp2()) * std::numbers::log2e);
  });
}

Tensor xlogy_of(const Tensor& x, const Operand& other) {
  return Both(x, other).traced("xlogy", [](const Tensor& a, const Tensor& b) {
    const Tensor none = (a == 0) & ~b.isnan() & ~((b > 0) & (b < INFINITY));
    return none.where(0, a * none.where(1, b).log());
  });
}

// ---- NaN and infinities

Tensor of_numbers(const Tensor& x, const Operand& other, const Tensor& extreme) {
  if (!is_float(extreme.dtype())) return extreme;
  const Tensor a = x.cast(extreme.dtype()), b = beside(x, other).cast(extreme.dtype());
  return a.isnan().where(b, b.isnan().where(a, extreme));
}

Tensor finite_of(const Tensor& x, double nan, double high, double low) {
  if (!is_float(x.dtype())) return unshared(x);
  return traced("nan_to_num", x, {nan, high, low}, [=](const Tensor& y) {
    const double top = float_max(y.dtype());
    const auto limited = [top](double number) { return std::clamp(number, -top, top); };
    return y.isnan().where(
        nan, y.isinf(true, false).where(limited(high), y.isinf(false).where(limited(low), y)));
  });
}

// ---- trigonometric

// With slopes of their own: at -1 and 1 those of the bodies would be 0 * inf.
Tensor asin_of(const Tensor& x) {
  const auto slope = [](const Tensor& a, const auto&...) { return ((1 - a) * (1 + a)).rsqrt(); };
  return with_slope(x, [&](const Tensor& a) { return (a * slope(a)).atan(); }, slope);
}

Tensor acos_of(const Tensor& x) {
  const auto value = [](const Tensor& a) { return 2 * ((1 - a) / (1 + a)).sqrt().atan(); };
  return with_slope(x, value,
                    [](const Tensor& a, const Tensor&) { return -((1 - a) * (1 + a)).rsqrt(); });
}

Tensor hypot_of(const Tensor& x, const Operand& other) {
  return Both(x, other).traced("hypot", [](const Tensor& a, const Tensor& b) {
    // One of both and not their maximum, whose second derivative where they are equal is none of
    // this function's; the other with its sign, which has a slope at 0.
    const Tensor p = a.abs(), q = b.abs(), first = ~(p < q);  // NaN too
    const Tensor most = first.where(p, q), least = first.where(b, a);
    const Tensor infinite = p.isinf() | q.isinf(), flat = infinite | ((p == 0) & (q == 0));
    const Tensor ratio = flat.where(0, least / flat.where(1, most));
    return infinite.where(INFINITY, most * (1 + ratio * ratio).sqrt());
  });
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

// The same of f32 over [0, tan(pi/8)], absolute error of the whole 1e-8: Cephes, atanf.c.
constexpr double kAtanF32[] = {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1,
                               -3.33329491539e-1};

/// atan of 0 <= x <= 0.66.
Tensor small_atan(const Tensor& x) {
  const Tensor z = x * x;
  if (x.dtype() == DType::F64) return x + x * (z * horner(z, kAtanTop) / horner(z, kAtanBottom));
  return add_product(x, z * horner(z, kAtanF32), x);
}

/// Of what is not negative. tan(a - b) = (tan a - tan b) / (1 + tan a tan b): about 0, pi/4 or pi/2
/// the rest is small.
Tensor positive_atan(const Tensor& a) {
  auto number = [&](double value) { return Tensor::full({}, value, a.dtype()); };
  const double tan_1_8 = std::numbers::sqrt2 - 1, tan_3_8 = std::numbers::sqrt2 + 1;  // of pi
  const Tensor is_steep = a > tan_3_8, is_small = a <= tan_1_8;
  const Tensor top = is_steep.where(-1, a - 1), bottom = is_steep.where(a, a + 1);
  const Tensor offset =
      is_steep.where(number(std::numbers::pi / 2), is_small.where(0, number(std::numbers::pi / 4)));
  return offset + small_atan(is_small.where(a, top / bottom));
}

}  // namespace

Tensor atan_of(const Tensor& x) {
  const auto value = [](const Tensor& given) { return odd(given, positive_atan); };
  return with_slope(x, value, [](const Tensor& a, const Tensor&) { return 1 / (a * a + 1); });
}

// With the longer side below the quotient is at most 1; signs by bits, as -0 has one.
Tensor atan2_of(const Tensor& x, const Operand& other) {
  return Both(x, other).traced("atan2", [](const Tensor& a, const Tensor& b) {
    const Tensor down = signbit_of(a), left = signbit_of(b);
    const Tensor y = down.where(-a, a), z = left.where(-b, b);
    const Tensor steep = y > z, most = steep.where(y, z), least = steep.where(z, y);
    const Tensor corner = y.isinf() & z.isinf(), none = (y == 0) & (z == 0);
    const Tensor ratio = corner.where(1, none.where(0, least / none.where(1, most)));
    const Tensor flat = ratio.atan(), right = steep.where(std::numbers::pi / 2 - flat, flat);
    const Tensor angle = left.where(std::numbers::pi - right, right);
    return down.where(-angle, angle);
  });
}

// ---- hyperbolic

namespace {

// Up to 1 the power series, of which 2^-32 is left out (f64: 2^-65).
Tensor sinh_value(const Tensor& x) {
  std::vector<double> series;
  for (int n = x.dtype() == DType::F64 ? 19 : 11; n > 0; n -= 2)
    series.push_back(1 / std::tgamma(n + 1));
  return odd(x, [&](const Tensor& a) {
    const Tensor half = (a * 0.5).exp(), other = (a * -0.5).exp();
    return (a < 1).where(a * horner(a * a, series), half * (half * 0.5) - other * (other * 0.5));
  });
}

Tensor cosh_value(const Tensor& x) {
  const Tensor half = (x * 0.5).exp(), other = (x * -0.5).exp();
  return half * (half * 0.5) + other * (other * 0.5);
}

}  // namespace

Tensor sinh_of(const Tensor& x) {
  return with_slope(x, sinh_value, [](const Tensor& a, const Tensor&) { return cosh_value(a); });
}

Tensor cosh_of(const Tensor& x) {
  return with_slope(x, cosh_value, [](const Tensor& a, const Tensor&) { return sinh_value(a); });
}

namespace {

// (tanh(x) - x) / x^3 in x^2 for |x| <= 0.625, highest power first: S. L. Moshier, Cephes (1992),
// tanh.c.
constexpr double kTanhTop[] = {-9.64399179425052238628e-1, -9.92877231001918586564e1,
                               -1.61468768441708447952e3};
constexpr double kTanhBottom[] = {1, 1.12811678491632931402e2, 2.23548839060100448583e3,
                                  4.84406305325125486048e3};
// tanh(x) / x in x^2 to 9.1, highest power first: tools/minimax, relative error 2^-27.7.
constexpr double kTanhTopF32[] = {-0x1.aabf60p-36, 0x1.0516e8p-24, 0x1.d2d5a6p-15,
                                  0x1.f79cdcp-8,   0x1.163d94p-2,  0x1.fc769ep+0};
constexpr double kTanhBottomF32[] = {0x1.576140p-19, 0x1.9a41d4p-11, 0x1.bb5a48p-5, 0x1.de1888p-1,
                                     0x1.fc769ep+0};

/// With e = exp(-2|x|) nothing overflows.
Tensor double_tanh(const Tensor& a) {
  const Tensor e = (a * -2).exp(), z = a * a;
  const Tensor near = a + a * (z * horner(z, kTanhTop) / horner(z, kTanhBottom));
  return (a < 0.625).where(near, (1 - e) / (1 + e));
}

/// At the limit the quotient is 1, however its steps round.
Tensor single_tanh(const Tensor& x) {
  const Tensor a = x.maximum(-9.140625).minimum(9.140625), z = a * a;
  return (a * horner(z, kTanhTopF32) / horner(z, kTanhBottomF32)).maximum(-1).minimum(1);
}

}  // namespace

Tensor tanh_of(const Tensor& x) {
  const auto value = [](const Tensor& given) {
    return given.dtype() == DType::F64 ? odd(given, double_tanh) : single_tanh(given);
  };
  return with_slope(x, value, [](const Tensor&, const Tensor& y) { return 1 - y * y; });
}

namespace {

/// log(1 + near), and log(2 a) where a is large. (Of two numbers `where` makes f32's.)
Tensor above_log1p(const Tensor& is_large, const Tensor& a, const Tensor& near) {
  const Tensor y = is_large.where(a, near).log1p();
  return is_large.where(y + std::numbers::ln2, y);
}

}  // namespace

Tensor asinh_of(const Tensor& x) {
  const auto value = [](const Tensor& given) {
    return odd(given, [](const Tensor& a) {
      const Tensor is_large = a > std::sqrt(large(a.dtype())), b = is_large.where(1, a);
      const Tensor square = b * b, near = b + square / (1 + (square + 1).sqrt());
      return above_log1p(is_large, a, near);
    });
  };
  return with_slope(x, value, [](const Tensor& a, const Tensor&) { return (a * a + 1).rsqrt(); });
}

// The derivatives of atanh and acosh are those formulas where the value is NaN, too, as PyTorch has
// it.
Tensor atanh_of(const Tensor& x) {
  const auto value = [](const Tensor& given) {
    return odd(given, [](const Tensor& a) { return (2 * a / (1 - a)).log1p() * 0.5; });
  };
  return with_slope(x, value,
                    [](const Tensor& a, const Tensor&) { return 1 / ((1 - a) * (1 + a)); });
}

Tensor acosh_of(const Tensor& x) {
  const auto value = [](const Tensor& given) {
    const Tensor is_large = given > large(given.dtype()), t = is_large.where(1, given - 1);
    const Tensor near = t + t.sqrt() * (t + 2).sqrt();
    return (given < 1).where(NAN, above_log1p(is_large, given, near));
  };
  const auto slope = [](const Tensor& a, const Tensor&) { return ((a - 1) * (a + 1)).rsqrt(); };
  return with_slope(x, value, slope);
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

// erf(x) / x - 1 in x^2 up to 0.92, and log2(erfc(x)) / x in x from there to 3.95, where erf is 1;
// highest power first: tools/minimax, relative errors of erf 2^-30.1 and 2^-28.3.
constexpr double kErfNearF32[] = {0x1.4f562ep-14, -0x1.a606c2p-11, 0x1.5449e4p-8, -0x1.b80118p-6,
                                  0x1.ce2d64p-4,  -0x1.812740p-2,  0x1.06eba8p-3};
constexpr double kErfFarF32[] = {0x1.439dccp-12, -0x1.2febacp-8, 0x1.0e81c4p-5,
                                 -0x1.3700d0p-3, -0x1.d594c0p-1, -0x1.a0cb3ep+0};

Tensor single_erf(const Tensor& a) {
  const Tensor b = a.minimum(4), far = 1 - (b * horner(b, kErfFarF32)).exp2();
  return (a < 0.921875).where(add_product(a, horner(a * a, kErfNearF32), a), far);
}

/// The derivative of erf; from 28 on it is 0, and so is its own.
Tensor bell(const Tensor& x) {
  const Tensor a = x.clamp(-28, 28);
  return (2 / std::sqrt(std::numbers::pi)) * (-(a * a)).exp();
}

/// The derivative of erfinv, where that is y.
Tensor steepness(const Tensor& y) { return (std::sqrt(std::numbers::pi) / 2) * (y * y).exp(); }

}  // namespace

Tensor erf_of(const Tensor& x) {
  const auto value = [](const Tensor& given) {
    return odd(given, given.dtype() == DType::F64 ? double_erf : single_erf);
  };
  return with_slope(x, value, [](const Tensor& a, const Tensor&) { return bell(a); });
}

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

// erfc(x) e^(x^2) / t in t = 1 / (1 + x / 2) for x up to 10.1, highest power first: tools/minimax,
// relative error 2^-24.8.
constexpr double kErfcF32[] = {0.011977018788456917, -0.12162509560585022, 0.42520061135292053,
                               -0.6652070879936218,  0.41741153597831726,  -0.0963282361626625,
                               0.22488635778427124,  0.23877762258052826,  0.28284206986427307,
                               0.282065212726593};

/// Of f32 that are not negative; from 11 on it is 0. What x^2 and its product with log2 e lose in
/// rounding is put right.
Tensor single_erfc(const Tensor& a) {
  const auto number = [&](double value) { return Tensor::full({}, value, a.dtype()); };
  const Tensor high = number(-0x1.715476p+0), rest = number(-0x1.4ae0cp-26);  // log2 e
  const Tensor b = a.minimum(11), t = 1 / (1 + 0.5 * b), square = b * b, main = square * high;
  const Tensor of_square = multiply_add(b, b, -square), of_main = multiply_add(square, high, -main);
  const Tensor lost = add_product(square, rest, add_product(of_square, high, of_main));
  const Tensor y = t * horner(t, kErfcF32) * main.exp2();
  return add_product(y, lost * std::numbers::ln2, y);
}

// M. Giles, Approximating the erfinv function (2010).
constexpr double kErfinvNear[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                  -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                  -0.00417768164,  0.246640727,    1.50140941};
constexpr double kErfinvFar[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                 -0.00367342844,  0.00573950773,  -0.0076224613,
                                 0.00943887047,   1.00167406,     2.83297682};

// erfinv(x) / x in w - 3.125, where w = -log(1 - x^2), to w = 6.25, and erfinv(x) in sqrt(w) - 4.25
// from there to the last number below 1; highest power first: tools/minimax, relative errors
// 2^-54.1 and 2^-52.4.
constexpr double kErfinvNearF64[] = {
    0x1.fe224b364d856p-69,  -0x1.30d31b6c7b767p-70, -0x1.a61f4801c7002p-62, 0x1.51c35e1c439b3p-60,
    0x1.22b797ca427a2p-56,  -0x1.2bd9309955c53p-53, -0x1.8b5e5cc9d2628p-55, 0x1.db329de9356efp-48,
    -0x1.6832253fb2384p-45, -0x1.6d8eadcf1a27bp-44, 0x1.723082b541d44p-39,  -0x1.c8960d1f7325ep-37,
    -0x1.dc3dd2d6120f0p-35, 0x1.20f4eb29fdcadp-30,  -0x1.1a9eb6f35de3fp-28, -0x1.f36ce5428a6afp-26,
    0x1.c6b4f8af2faa8p-22,  -0x1.6e8a53ee32b1dp-20, -0x1.d1d1f7cb07ef9p-17, 0x1.879c2a20d6b89p-13,
    -0x1.8457694834112p-11, -0x1.8b6c33114ee3fp-8,  0x1.ebd80d9b13df7p-3,   0x1.a755e7c99ae86p+0};
constexpr double kErfinvFarF64[] = {
    0x1.c1b4d74c4897dp-47,  -0x1.b18c44f1418d7p-45, -0x1.297c06ceaa43fp-43, 0x1.02d6b2ed27ee9p-40,
    -0x1.51052bd6379acp-40, -0x1.0e896070872d3p-39, 0x1.d08449dc44668p-37,  -0x1.c2ff75c9cbe41p-35,
    0x1.1be7067c93288p-33,  -0x1.8b4071a6b7eecp-34, -0x1.92e032caf4d3cp-31, 0x1.0ead3fc80502ap-28,
    -0x1.9e5f3bd86d0b2p-27, 0x1.ba69c0fb0d093p-26,  -0x1.02b3dae3a4dc1p-25, -0x1.03fc181df42d3p-24,
    0x1.51ec76293260ep-21,  -0x1.b8e818e5b3639p-19, 0x1.e4df9a21d0e52p-17,  -0x1.e4b35eef91f4ap-15,
    0x1.b338f6d02cd83p-13,  -0x1.3d67723a5304fp-11, 0x1.752de9e3c14f9p-11,  0x1.028df3c3c464ap+0,
    0x1.05e6fcf3b6452p+2};

/// Of f32, 0 <= x < 1, and w as above, to 2^-21.
Tensor single_erfinv(const Tensor& x, const Tensor& w) {
  const Tensor middle = horner(w - 2.5, kErfinvNear), tail = horner(w.sqrt() - 3, kErfinvFar);
  return (w < 5).where(middle, tail) * x;
}

Tensor double_erfinv(const Tensor& x, const Tensor& w) {
  const Tensor far = horner(w.sqrt() - 4.25, kErfinvFarF64);
  return (w < 6.25).where(horner(w - 3.125, kErfinvNearF64) * x, far);
}

}  // namespace

Tensor erfc_of(const Tensor& x) {
  const auto value = [](const Tensor& given) {
    const Tensor a = size_by_bits(given);
    const Tensor y = given.dtype() == DType::F64 ? positive_erfc(a) : single_erfc(a);
    return (given < 0).where(2 - y, y);
  };
  return with_slope(x, value, [](const Tensor& a, const Tensor&) { return -bell(a); });
}

Tensor erfinv_of(const Tensor& x) {
  const auto value = [](const Tensor& given) {
    return odd(given, [](const Tensor& a) {
      const Tensor inside = a < 1, b = inside.where(a, 0), w = -((1 - b) * (1 + b)).log();
      const Tensor y = b.dtype() == DType::F64 ? double_erfinv(b, w) : single_erfinv(b, w);
      return inside.where(y, (a == 1).where(INFINITY, NAN));
    });
  };
  return with_slope(x, value, [](const Tensor&, const Tensor& y) { return steepness(y); });
}

}  // namespace weft::elementwise
