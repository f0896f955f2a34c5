// Float ops in terms of others: 16-bit types through f32, saturating casts, NaN rules, fused
// multiply-add, rounding.
#include <cmath>

#include "weft/lower/legaliser.h"

namespace weft::lower {
namespace {

DType bits_type(DType d) { return bits(d) == 64 ? DType::I64 : DType::I32; }

// ---- exact sums

struct Pair {
  Expr high, low;
};

/// a + b = high + low exactly (Knuth, TAOCP volume 2, theorem 4.2.2 B).
Pair two_sum(Expr a, Expr b) {
  Expr s = a + b, from_b = s - a;
  return {s, (a - (s - from_b)) + (b - from_b)};
}

/// a * b = high + low exactly, barring overflow (Veltkamp and Dekker, Numer. Math. 18, 1971).
Pair two_product(Expr a, Expr b) {
  const double split = 0x1p27 + 1;
  auto halves = [split](Expr x) -> Pair {
    Expr big = x * split, high = big - (big - x);
    return {high, x - high};
  };
  Expr p = a * b;
  Pair x = halves(a), y = halves(b);
  Expr low = ((x.high * y.high - p) + x.high * y.low + x.low * y.high) + x.low * y.low;
  return {p, low};
}

/// high + low rounded to odd: where low is not 0, the neighbour of the exact sum whose last bit
/// is 1. Rounding that once more to a type with two bits less gives the sum rounded once (Boldo and
/// Melquiond, IEEE TC 57, 2008).
Expr rounded_to_odd(Pair sum) {
  Expr pattern = sum.high.bits_as(bits_type(sum.high.dtype())), zero = sum.low.number(0);
  Expr below = sum.low < zero, inexact = below | (zero < sum.low);  // false for NaN
  Expr even = eq(pattern & int64_t{1}, pattern.integer(0));
  // One step away from zero where low has high's sign, else one step towards it.
  Expr outwards = eq(pattern < pattern.integer(0), below);
  Expr step = where(outwards, pattern.integer(1), pattern.integer(-1));
  Expr odd = (pattern + step).bits_as(sum.high.dtype());
  return where(inexact & even, odd, sum.high);
}

// ---- fused multiply-add

/// The product of two f32 is exact in f64.
NodeRef mulacc_f32(const Match& m, Legaliser& l) {
  if (!l.has_f64()) return nullptr;
  const auto wide = [&](const Pat& v) { return Expr(l, m[v]).to(DType::F64); };
  Expr a = wide(pat::x), b = wide(pat::y);
  return rounded_to_odd(two_sum(a * b, wide(pat::z))).to(DType::F32);
}

NodeRef mulacc_f64(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), b(l, m[pat::y]), c(l, m[pat::z]);
  Pair product = two_product(a, b), low = two_sum(c, product.low);
  Pair high = two_sum(product.high, low.high);
  Expr exact = high.high + rounded_to_odd(two_sum(low.low, high.low));
  // Infinities, products so large that their halves overflow, and signs of zero.
  return where(is_nan(exact) | eq(exact, exact.number(0)), a * b + c, exact);
}

// ---- casts

/// Selection of machine code saturates by itself, with what its conversions give beyond their
/// range.
NodeRef saturating_cast(const Match& m, Legaliser& l) {
  if (l.target().machine_code) return nullptr;
  const DType to = m.root->dtype;
  Expr x(l, m[pat::x]);
  const bool has_sign = is_signed_int(to);
  Expr low = x.number(static_cast<double>(int_min(to)));
  Expr end = x.number(std::ldexp(1.0, bits(to) - (has_sign ? 1 : 0)));
  Expr inside = (low <= x) & (x < end);  // false for NaN
  Expr result = where(inside, x, x.number(0)).converted(to);
  result = where(end <= x, Expr(l, l.constant(Value::of(to, int_max(to)))), result);
  return has_sign ? where(x < low, result.integer(int_min(to)), result) : result;
}

/// Without its lowest bits, of which the last one left is set where any is: rounded to odd, numbers
/// and the patterns of floats alike.
Expr odd_without(Expr x, int lowest) {
  const int64_t below = (int64_t{1} << lowest) - 1;
  return (x | ((x & below) + below)) & ~below;
}

/// An integer as f32 or f64: exact where that has all of its digits, otherwise rounded to odd.
Expr float_from_int(Expr x, DType to) {
  const int digits = float_digits(to), more = bits(x.dtype()) - digits;
  if (more <= 0) return x.converted(to);
  Expr exact = x < x.integer(int64_t{1} << digits);
  if (is_signed_int(x.dtype())) exact = exact & (x.integer(-(int64_t{1} << digits)) < x);
  return where(exact, x, odd_without(x, more)).converted(to);
}

/// An f64 as f32, rounded to odd so far ahead of what halves keep that their smallest numbers are
/// exact in f32, which has multiples of 2^-149: bf16's end at 2^-133, and half of that is a tie.
Expr short_of_f64(Expr x) {
  constexpr int kKept = 14;  // two more than f16 has behind the point
  const int lowest = float_format(DType::F64).mantissa_bits - kKept;
  return odd_without(x.bits_as(DType::I64), lowest).bits_as(DType::F64).converted(DType::F32);
}

/// To f16 or bf16 with one rounding, by way of an f32 that is exact or rounded to odd.
NodeRef cast_to_half(const Match& m, Legaliser& l) {
  const DType dtype = m.root->dtype;
  Expr x(l, m[pat::x]);
  // Without f64 to round in, casting to halves is the target's own.
  if (x.dtype() == DType::F32 || !l.has_f64()) return nullptr;
  if (is_half(x.dtype())) return x.converted(DType::F32).converted(dtype);
  if (is_int(x.dtype()) && bits(x.dtype()) <= 16) return x.converted(DType::F32).converted(dtype);
  if (is_int(x.dtype())) x = float_from_int(x, bits(x.dtype()) == 64 ? DType::F64 : DType::F32);
  if (x.dtype() == DType::F64) x = short_of_f64(x);
  return x.converted(dtype);
}

NodeRef cast_from_half(const Match& m, Legaliser& l) {
  const DType dtype = m.root->dtype;
  if (is_half(dtype) || dtype == DType::F32) return nullptr;
  return l.cast(l.raw(Op::Cast, DType::F32, {m[pat::x]}), dtype);
}

// ---- rounding

NodeRef trunc_by_int(const Match& m, Legaliser& l) {
  Expr x(l, m[pat::x]);
  const DType dtype = x.dtype(), whole = bits_type(dtype);
  const double exact =
      dtype == DType::F64 ? 0x1p52 : 0x1p23;  // from here on there are no fractions
  Expr has_fraction = (x.number(-exact) < x) & (x < x.number(exact));
  Expr t = where(has_fraction, x, x.number(0)).converted(whole).converted(dtype);
  Expr sign = x.bits_as(whole) & int_min(whole);
  return where(has_fraction, (t.bits_as(whole) | sign).bits_as(dtype), x);
}

/// What has no fraction left once a number this large is added, the addition rounds: halves to
/// even.
NodeRef rint_by_sum(const Match& m, Legaliser& l) {
  Expr x(l, m[pat::x]);
  const bool wide = x.dtype() == DType::F64;
  const DType whole = bits_type(x.dtype());
  const int64_t sign_bit = int_min(whole);
  Expr pattern = x.bits_as(whole), sign = pattern & sign_bit;
  Expr size = (pattern ^ sign).bits_as(x.dtype()), large = x.number(wide ? 0x1p52 : 0x1p23);
  Expr rounded = (size + large) - large;
  return where(size < large, (rounded.bits_as(whole) | sign).bits_as(x.dtype()), x);
}

NodeRef contracted(const Match& m, Legaliser& l) {
  return Expr(l, m[pat::x]).mul_add(Expr(l, m[pat::y]), Expr(l, m[pat::z]));
}

// ---- the rules

using namespace weft::pat;

/// What `picked` is of x and y, unless one of them is NaN, or they are zeros of two signs: of those
/// the bits decide.
constexpr Pat extreme(const Pat& both_bits, const Pat& y_wins) {
  return pat::where(x == y, bitcast(both_bits), pat::where(y_wins | (y != y), y, x));
}
constexpr Pat max_by(DType whole) { return extreme(bitcast(x, whole) & bitcast(y, whole), x < y); }
constexpr Pat min_by(DType whole) { return extreme(bitcast(x, whole) | bitcast(y, whole), y < x); }

/// Arithmetic on f16 and bf16 is done in f32, rounding after every op.
constexpr Pat wide(const Pat& half) { return cast(half, DType::F32); }

// clang-format off
constexpr Rule kFloatRules[] = {
    rule("max.nan_f32", max(x, y), max_by(DType::I32), bits(x) == 32 && ~native_op(Op::Max, x),
         kFloat).as_move(),
    rule("max.nan_f64", max(x, y), max_by(DType::I64), bits(x) == 64 && ~native_op(Op::Max, x),
         kFloat).as_move(),
    rule("min.nan_f32", min(x, y), min_by(DType::I32), bits(x) == 32 && ~native_op(Op::Min, x),
         kFloat).as_move(),
    rule("min.nan_f64", min(x, y), min_by(DType::I64), bits(x) == 64 && ~native_op(Op::Min, x),
         kFloat).as_move(),
};
constexpr Rule kHalfRules[] = {
    rule("neg.half", -x, bitcast(bitcast(x, DType::U16) ^ 0x8000), bits(x) == 16, kFloat).as_move(),
    rule("sqrt.half", sqrt(x), cast(sqrt(wide(x))), bits(x) == 16, kFloat).as_move(),
    rule("trunc.half", trunc(x), cast(trunc(wide(x))), bits(x) == 16, kFloat).as_move(),
    rule("rint.half", op(Op::Rint, x), cast(op(Op::Rint, wide(x))), bits(x) == 16, kFloat).as_move(),
    rule("add.half", x + y, cast(wide(x) + wide(y)), bits(x) == 16, kFloat).as_move(),
    rule("mul.half", x * y, cast(wide(x) * wide(y)), bits(x) == 16, kFloat).as_move(),
    rule("div.half", fdiv(x, y), cast(fdiv(wide(x), wide(y))), bits(x) == 16, kFloat).as_move(),
    rule("rem.half", op(Op::Rem, x, y), cast(op(Op::Rem, wide(x), wide(y))), bits(x) == 16, kFloat)
        .as_move(),
    rule("max.half", max(x, y), cast(max(wide(x), wide(y))), bits(x) == 16, kFloat).as_move(),
    rule("min.half", min(x, y), cast(min(wide(x), wide(y))), bits(x) == 16, kFloat).as_move(),
    rule("lt.half", x < y, wide(x) < wide(y), bits(x) == 16, kFloat).as_move(),
    rule("le.half", x <= y, wide(x) <= wide(y), bits(x) == 16, kFloat).as_move(),
    rule("eq.half", x == y, wide(x) == wide(y), bits(x) == 16, kFloat).as_move(),
    rule("ne.half", x != y, wide(x) != wide(y), bits(x) == 16, kFloat).as_move(),
    // Rounded twice.
    rule("exp2.half", exp2(x), cast(exp2(wide(x))), bits(x) == 16, kReal).as_move(),
    rule("log2.half", log2(x), cast(log2(wide(x))), bits(x) == 16, kReal).as_move(),
    rule("sin.half", sin(x), cast(sin(wide(x))), bits(x) == 16, kReal).as_move(),
    rule("cos.half", op(Op::Cos, x), cast(op(Op::Cos, wide(x))), bits(x) == 16, kReal).as_move(),
    rule("tan.half", op(Op::Tan, x), cast(op(Op::Tan, wide(x))), bits(x) == 16, kReal).as_move(),
    rule("muladd.half", op(Op::MulAdd, x, y, z), cast(op(Op::MulAdd, wide(x), wide(y), wide(z))),
         bits(x) == 16, kReal).as_move(),
    rule("mulacc.half", mulacc(x, y, z), cast(mulacc(wide(x), wide(y), wide(z))), bits(x) == 16,
         kReal).as_move(),
};
constexpr NativeRule<Legaliser> kHalfCasts[] = {
    native("cast.to_half", y(cast(x)), cast_to_half, is_float(y) && bits(y) == 16, kBits | kFloat),
    native("cast.from_half", cast(x), cast_from_half, is_float(x) && bits(x) == 16, kFloat),
};
constexpr NativeRule<Legaliser> kExactRules[] = {
    native("trunc.by_int", trunc(x), trunc_by_int, bits(x) >= 32 && ~native_op(Op::Trunc, x),
         kFloat),
    native("rint.by_sum", op(Op::Rint, x), rint_by_sum, bits(x) >= 32 && ~native_op(Op::Rint, x),
           kFloat),
    native("mulacc.by_int", mulacc(x, y, z), mulacc_by_int,
         bits(x) == 32 && ~native_op(Op::MulAcc, x), kFloat),
    native("mulacc.by_f64", mulacc(x, y, z), mulacc_f32,
         bits(x) == 32 && ~native_op(Op::MulAcc, x), kFloat),
    native("mulacc.by_pairs", mulacc(x, y, z), mulacc_f64,
         bits(x) == 64 && ~native_op(Op::MulAcc, x), kFloat),
    native("rem.by_steps", op(Op::Rem, x, y), rem_expansion, bits(x) == 32, kFloat),
    // Exact where mulacc is: by pairs it is not, near 2^1000.
    native("rem.by_steps_f64", op(Op::Rem, x, y), rem_expansion, bits(x) == 64, kReal),
    native("cast.saturate", y(cast(x)), saturating_cast, is_int(y) && is_float(x) && bits(x) >= 32,
         kBits | kFloat),
};
// Equal to what they stand in for up to rounding: tests/lower/ulp_test.cpp says how far.
constexpr NativeRule<Legaliser> kApproximateRules[] = {
    native("muladd.contracted", op(Op::MulAdd, x, y, z), contracted, bits(x) >= 32, kReal),
    native("exp2.polynomial", exp2(x), exp2_expansion, bits(x) >= 32 && ~native_op(Op::Exp2, x),
         kReal),
    native("log2.polynomial", log2(x), log2_expansion, bits(x) >= 32 && ~native_op(Op::Log2, x),
         kReal),
    native("sin.polynomial", sin(x), sin_expansion, bits(x) >= 32 && ~native_op(Op::Sin, x), kReal),
    native("cos.polynomial", op(Op::Cos, x), cos_expansion, bits(x) >= 32, kReal),
    native("tan.polynomial", op(Op::Tan, x), tan_expansion, bits(x) >= 32, kReal),
};
// clang-format on

}  // namespace

RuleList<Legaliser> half_decompositions() { return rules<Legaliser>(kHalfRules, kHalfCasts); }

RuleList<Legaliser> float_decompositions() {
  return rules<Legaliser>(kFloatRules, kExactRules, kApproximateRules);
}

}  // namespace weft::lower
