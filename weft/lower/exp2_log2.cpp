// exp2 and log2 of f32 and f64 by argument reduction and polynomials; at most 1 ulp
// (tests/lower/ulp_test.cpp measures it).
#include <limits>

#include "weft/lower/legaliser.h"
#include "weft/lower/polynomials.h"

namespace weft::lower {
namespace {

/// What differs between the two formats.
struct Format {
  DType dtype, bits;
  int mantissa_bits;
  int64_t bias;
  double round_magic;  // adding 1.5 * 2^mantissa_bits leaves the nearest integer in the low bits
};
constexpr Format kF32 = {DType::F32, DType::I32, 23, 127, 0x1.8p23};
constexpr Format kF64 = {DType::F64, DType::I64, 52, 1023, 0x1.8p52};

struct Exp2Table {
  Format format;
  double lowest, highest;            // beyond these the result is 0 or infinite
  int64_t high_bits;                 // mask of the leading half of the significand
  double log2, log2_high, log2_low;  // natural logarithm of 2; the high part has half the bits
  std::span<const double> polynomial;
};
constexpr Exp2Table kExp2Tables[] = {
    {kF32, -151, 129, -0x1000, 0x1.62e43p-1, 0x1.62ep-1, 0x1.0bfbe8p-15, kExp2F32},
    {kF64, -1076, 1025, -0x8000000, 0x1.62e42fefa39efp-1, 0x1.62e43p-1, -0x1.05c610ca86c39p-29,
     kExp2F64},
};

struct Log2Table {
  Format format;
  double smallest_normal, scale;
  int64_t scale_exponent;        // of scale, which makes subnormals normal
  int64_t half_root;             // bit pattern of sqrt(1/2)
  double root;                   // sqrt(2)
  int64_t high_bits;             // mask of the leading half of the significand
  double log2e_high, log2e_low;  // the high part has few enough bits for exact products
  std::span<const double> polynomial;
};
constexpr Log2Table kLog2Tables[] = {
    {kF32, 0x1p-126, 0x1p25, 25, 0x3f3504f3, 0x1.6a09e6p+0, -0x1000, 0x1.716p+0, -0x1.7135a8p-13,
     kLogF32},
    {kF64, 0x1p-1022, 0x1p54, 54, 0x3fe6a09e667f3bcd, 0x1.6a09e667f3bcdp+0, -(int64_t{1} << 32),
     0x1.71547p+0, 0x1.94ae0bf85ddf4p-22, kLogF64},
};

template <class Table>
const Table& table_for(std::span<const Table, 2> tables, DType dtype) {
  return dtype == DType::F64 ? tables[1] : tables[0];
}

/// The power of two whose biased exponent is in the low bits of `k`, with one zero above it.
Expr with_exponent(Expr k, const Format& f) {
  return (k << int64_t{f.mantissa_bits}).bits_as(f.dtype);
}

}  // namespace

Expr polynomial(Expr x, std::span<const double> coefficients) {
  Expr sum = x.number(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = sum.mul_add(x, x.number(coefficients[i]));
  return sum;
}

/// 2^f for f in [-1/2, 1/2]: 1 + f*log 2 + f^2*P(f). Below 1 the result's ulp is half that of 1, so
/// the middle term has to be better than f32 rounds it: by fused operations, or as an exact product
/// of halves.
Expr exp2_of_fraction(Expr f, const Exp2Table& table) {
  Expr tail = polynomial(f, table.polynomial), one = f.number(1);
  if (f.legaliser().target().native(Op::MulAcc, f.dtype()))
    return tail.mul_add(f, f.number(table.log2)).mul_add(f, one);
  Expr high = (f.bits_as(table.format.bits) & table.high_bits).bits_as(f.dtype());
  Expr main = high * table.log2_high;
  Expr rest = (f - high) * table.log2_high + (f * table.log2_low + f * f * tail);
  Expr sum = main + one, lost = (one - sum) + main;
  return sum + (lost + rest);
}

/// x = n + f with f in [-1/2, 1/2], exactly.
NodeRef exp2_expansion(const Match& m, Legaliser& l) {
  NodeRef source = m[pat::x];
  const Exp2Table& table = table_for(std::span(kExp2Tables), source->dtype);
  const Format& format = table.format;
  Expr x(l, source);
  Expr below = x < x.number(table.lowest);
  // The same bits where the machine scales by powers of two; numbers are for the way that folds.
  // By 2^-inf: what underflows takes Intel's processors some hundred cycles.
  if (l.native(Op::Ldexp, source->dtype) && source->op != Op::Const) {
    Expr n = x.op1(Op::Rint), f = x - n;
    n = where(below, x.number(-std::numeric_limits<double>::infinity()), n);
    return exp2_of_fraction(f, table).op(Op::Ldexp, n);
  }
  // NaN passes both comparisons unchanged and poisons f.
  x = where(below, x.number(table.lowest), x);
  x = where(x > x.number(table.highest), x.number(table.highest), x);
  // The low bits of `shifted` are n + 2 * bias, those of half of it are biased once, and so are
  // those of the rest.
  const double magic = format.round_magic + static_cast<double>(2 * format.bias);
  Expr shifted = x + magic;
  Expr f = x - (shifted - magic);
  Expr n = shifted.bits_as(format.bits);
  // In two steps: 2^n alone may be subnormal or too large, and only the last product may round.
  Expr half = n >> 1, scale = with_exponent(n - half, format);
  // Times 0: a product that underflows takes Intel's processors some hundred cycles.
  scale = where(below, scale.number(0), scale);
  return exp2_of_fraction(f, table) * with_exponent(half, format) * scale;
}

namespace {

/// x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
struct Split {
  Expr e, f;
};

Split split(Expr original, const Log2Table& table) {
  const Format& format = table.format;
  Expr tiny = original < original.number(table.smallest_normal);
  Expr x = where(tiny, original * table.scale, original);
  Expr pattern = x.bits_as(format.bits);
  Expr exponent = (pattern - table.half_root) >> int64_t{format.mantissa_bits};
  Expr f = (pattern - (exponent << int64_t{format.mantissa_bits})).bits_as(format.dtype) - 1.0;
  exponent = exponent - where(tiny, exponent.integer(table.scale_exponent), exponent.integer(0));
  return {exponent.converted(format.dtype), f};
}

/// The same where the machine takes numbers apart: f is NaN of what is below 0, e -inf of 0 and inf
/// of infinity, and f then 0.
Split split_by_ops(Expr x, const Log2Table& table) {
  Expr m = x.op1(Op::Mantissa), e = x.op1(Op::Logb), above = m >= m.number(table.root);
  return {where(above, e + 1.0, e), where(above, m * 0.5, m) - 1.0};
}

/// Of f32 with fused operations: e and f*log2(e) + f^2*P(f), which is at most half of e unless that
/// is 0, so that the rounding of both stays below 1 ulp.
Expr log2_by_fusing(Split x) {
  constexpr double kLog2e = 0x1.715476p+0, kLog2eLow = 0x1.4ae0cp-26;
  const auto [e, f] = x;
  Expr square = f * polynomial(f, kLog2F32).mul_add(f, f.number(kLog2eLow));
  return e + f.mul_add(f.number(kLog2e), square);
}

/// With s = f / (2 + f): log(1 + f) = f - f^2/2 + s*(f^2/2 + R(s^2)); the leading part times
/// log2(e) is exact in two pieces, which keeps full precision near x = 1. The scheme of FreeBSD's
/// k_log.h and e_log2.c, with our own polynomial.
Expr log2_by_parts(Split x, const Log2Table& table) {
  const auto [e, f] = x;
  Expr half_square = f * f * 0.5, s = f / (f + 2.0), z = s * s;
  Expr rest = s * (half_square + z * polynomial(z, table.polynomial));
  Expr high = ((f - half_square).bits_as(table.format.bits) & table.high_bits).bits_as(f.dtype());
  Expr low = ((f - high) - half_square) + rest;
  Expr product = high * table.log2e_high;
  Expr correction = (low + high) * table.log2e_low + low * table.log2e_high;
  Expr sum = e + product;
  return (correction + ((e - sum) + product)) + sum;
}

}  // namespace

NodeRef log2_expansion(const Match& m, Legaliser& l) {
  NodeRef source = m[pat::x];
  const DType dtype = source->dtype;
  const Log2Table& table = table_for(std::span(kLog2Tables), dtype);
  Expr x(l, source), zero = x.number(0);
  // Numbers are for the way that folds.
  const bool by_ops = l.native(Op::Mantissa, dtype) && source->op != Op::Const;
  const bool fuses = dtype == DType::F32 && l.native(Op::MulAcc, dtype);
  const Split parts = by_ops ? split_by_ops(x, table) : split(x, table);
  Expr result = fuses ? log2_by_fusing(parts) : log2_by_parts(parts, table);
  if (by_ops && fuses) return result;
  const double inf = std::numeric_limits<double>::infinity();
  result = where(x < zero.number(inf), result, x);
  result = where(x < zero, zero.number(std::numeric_limits<double>::quiet_NaN()), result);
  return where(eq(x, zero), zero.number(-inf), result);
}

}  // namespace weft::lower
