// sin, cos and tan of f32 and f64 over their whole ranges: reduction modulo pi/2 or pi, and
// polynomials.
#include <limits>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/lower/legaliser.h"
#include "weft/lower/polynomials.h"
#include "weft/lower/vector_nodes.h"

namespace weft::lower {
namespace {

constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kHalfPiSquared = 0x1.3bd3cc9be45dep+1;
// pi/2 in parts of 33 bits, whose products with integers below 2^20 are exact, and the rest.
constexpr double kPart1 = 0x1.921fb544p+0, kPart2 = 0x1.0b4611a6p-34,
                 kPart3 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPiF64 = 0x1.45f306dc9c883p-1;
constexpr double kLargest = 0x1p20;  // from here on digits of 1/(2 pi) are needed
constexpr double kRoundMagic = 0x1.8p52;
// The same in parts of f32, of which products with integers need fused operations; the last leaves
// 2^-75.
constexpr double kSingle1 = 0x1.921fb6p+0, kSingle2 = -0x1.777a5cp-25, kSingle3 = -0x1.ee59dap-50;
constexpr double kTwoOverPiF32 = 0x1.45f306p-1;
constexpr double kLargestF32 = 0x1p17;  // the nearest quadrant is 2^-8 off at most
constexpr double kRoundMagicF32 = 0x1.8p23;
constexpr int64_t kLow32 = 0xffffffff;

/// |x| = quadrant * pi/2 + high + low; the quadrant counts modulo 4.
struct Reduced {
  Expr quadrant, high, low;
};

Reduced where_reduced(Expr c, Reduced a, Reduced b) {
  return {where(c, a.quadrant, b.quadrant), where(c, a.high, b.high), where(c, a.low, b.low)};
}

/// Without the sign's bit.
Expr magnitude_of(Expr x) {
  const bool wide = x.dtype() == DType::F64;
  Expr pattern = x.bits_as(wide ? DType::I64 : DType::I32);
  return (pattern & (wide ? int64_t{INT64_MAX} : int64_t{INT32_MAX})).bits_as(x.dtype());
}

/// Cody and Waite: subtracts the nearest multiple of pi/2 part by part. Precise for |x| below 2^20.
Reduced reduce_small(Expr x) {
  Expr shifted = x * kTwoOverPiF64 + kRoundMagic, n = shifted - kRoundMagic;
  Expr first = x - n * kPart1, second = n * kPart2;
  Expr high = first - second;
  // What the subtraction lost (Knuth's two-sum), and the third part.
  Expr back = high - first;
  Expr lost = (first - (high - back)) - (second + back);
  Expr low = lost - n * kPart3;
  Expr sum = high + low;
  return {shifted.bits_as(DType::I64), sum, low - (sum - high)};
}

/// The same in f32 with fused operations, for |x| below 2^17. The first difference is exact: a
/// multiple of 2^-24 that is less than 1. What is lost of the second and of its product is exact,
/// too.
Reduced reduce_small_f32(Expr x) {
  Expr shifted = x.mul_add(x.number(kTwoOverPiF32), x.number(kRoundMagicF32));
  Expr n = shifted - kRoundMagicF32;
  Expr first = n.mul_add(n.number(-kSingle1), x), second = n * kSingle2;
  Expr high = first - second, lost = (first - high) - second;
  Expr rest = n.mul_add(n.number(kSingle3), n.mul_add(n.number(kSingle2), -second));
  return {shifted.bits_as(DType::I32), high, lost - rest};
}

// ---- Payne and Hanek: only the digits that matter

/// count words of 32 bits (in i64) of 1/(2 pi), from bit `start` on; bit 32 is the first after the
/// point.
SmallVector<NodeRef, 8> digits(Expr start, size_t count) {
  Legaliser& l = start.legaliser();
  // Selects by the bits of the word's number, the highest first: each level keeps what later ones
  // can still reach.
  const int levels = count > 3 ? 5 : 3;  // f64 reaches word 31, f32 word 4
  Expr word = start >> 5, offset = start & int64_t{31};
  std::vector<NodeRef> table{start.integer(0)};
  for (uint64_t w : kTurns) table.push_back(start.integer(static_cast<int64_t>(w)));
  for (int level = levels - 1; level >= 0; --level) {
    const size_t step = size_t{1} << level, reach = count + 1 + (step - 1);
    Expr set = ne(word & static_cast<int64_t>(step), word.integer(0));
    std::vector<NodeRef> next;
    for (size_t i = 0; i < reach && i < table.size(); ++i)
      next.push_back(i + step < table.size()
                         ? where(set, Expr(l, table[i + step]), Expr(l, table[i])).node()
                         : table[i]);
    table = next;
  }
  SmallVector<NodeRef, 8> out;
  for (size_t i = 0; i < count; ++i) {
    Expr high(l, table[i]), low(l, table[i + 1]);
    Expr shift = offset.integer(32) - offset;
    out.push_back(((high.op(Op::Shl, offset)) | low.op(Op::Shr, shift)) & kLow32);
  }
  return out;
}

/// significand * digits modulo 2^(32 * count), as 32-bit words from the least significant on.
SmallVector<NodeRef, 8> product(Expr significand, std::span<const NodeRef> most_first) {
  Legaliser& l = significand.legaliser();
  const bool wide = most_first.size() > 3;  // f64: 53 bits; f32: 24
  Expr m0 = wide ? significand & kLow32 : significand, m1 = significand >> 32;
  SmallVector<NodeRef, 8> out;
  Expr carry = significand.integer(0);
  for (size_t j = 0; j < most_first.size(); ++j) {
    Expr v(l, most_first[most_first.size() - 1 - j]);
    Expr a = m0 * v, sum = carry + (a & kLow32);
    // Products of 32 bits by 32 bits fill all 64: the upper half is shifted down without its sign.
    Expr upper = (a >> 32) & kLow32;
    if (wide && j > 0) {
      Expr below(l, most_first[most_first.size() - j]);
      Expr b = m1 * below;
      sum = sum + (b & kLow32);
      upper = upper + ((b >> 32) & kLow32);
    }
    out.push_back(sum & kLow32);
    carry = (sum >> 32) + upper;
  }
  return out;
}

/// pi/2 as high + low, and what splits a number into halves whose products are exact.
struct HalfPi {
  double high, low, split;
};

/// (high + low) * 2^-62 quadrants; |low| may be above an ulp of high.
Reduced in_radians(Expr quadrant, Expr high, Expr low, const HalfPi& pi) {
  Expr sum = high + low;
  low = low - (sum - high);
  high = sum;
  auto halves = [&pi](Expr x) {
    Expr big = x * pi.split, upper = big - (big - x);
    return std::pair{upper, x - upper};
  };
  auto [a, b] = halves(high);
  auto [c, d] = halves(high.number(pi.high));
  Expr main = high * pi.high;
  Expr error = ((a * c - main) + a * d + b * c) + b * d;
  Expr rest = error + high * pi.low + low * pi.high;
  Expr r = main + rest;
  const double unit = 0x1p-62;
  return {quadrant, r * unit, (rest - (r - main)) * unit};
}

/// The nearest quadrant, modulo 4, and what is left, in 2^-62 of a quadrant.
struct Turned {
  Expr quadrant, fraction;
  SmallVector<NodeRef, 8> words;  ///< of x / (2 pi) modulo 1, the last is the most significant
  Expr word(size_t from_top) const {
    return {fraction.legaliser(), words[words.size() - 1 - from_top]};
  }
};

/// x = significand * 2^exponent, exponent >= -32: x / (2 pi) modulo 1, in `words` words of 32 bits.
Turned turned(Expr significand, Expr exponent, size_t words) {
  Legaliser& l = significand.legaliser();
  // The bit of weight 2^(-1 - exponent) is the first whose product is not whole turns.
  const auto window = digits(exponent + int64_t{32}, words);
  const auto p = product(significand, window);
  Expr top = (Expr(l, p[p.size() - 1]) << 32) | Expr(l, p[p.size() - 2]);
  Expr quadrant = ((top >> 62) + ((top >> 61) & int64_t{1})) & int64_t{3};  // to nearest
  return {quadrant, top - (quadrant << 62), p};
}

/// The same reduced, in f64.
Reduced reduce_large(Expr significand, Expr exponent, size_t words) {
  const Turned t = turned(significand, exponent, words);
  Expr fraction = t.fraction, quadrant = t.quadrant;
  Expr high = fraction.converted(DType::F64);
  Expr low = (fraction - high.converted(DType::I64)).converted(DType::F64);
  if (words > 3) {
    Expr more = ((t.word(2) << 31) | (t.word(3) >> 1)).converted(DType::F64) * 0x1p-63;
    low = low + more;
  }
  return in_radians(quadrant, high, low, {kHalfPi, kHalfPiLow, 0x1.0000002p27});
}

/// Of |x|, an f32 of 2^17 or more, as f64.
Reduced reduce_large_f32(Expr x) {
  Expr pattern = (x.bits_as(DType::I32) & int64_t{0x7fffffff}).converted(DType::I64);
  Expr exponent = (pattern >> 23).op(Op::Max, pattern.integer(144)) - int64_t{150};
  Expr significand = (pattern & int64_t{0x7fffff}) | int64_t{0x800000};
  return reduce_large(significand, exponent, 3);
}

/// Of |x|, an f64 of 2^19 or more.
Reduced reduce_large_f64(Expr x) {
  Expr pattern = x.bits_as(DType::I64) & std::numeric_limits<int64_t>::max();
  Expr exponent = (pattern >> 52).op(Op::Max, pattern.integer(1042)) - int64_t{1075};
  Expr significand = (pattern & ((int64_t{1} << 52) - 1)) | (int64_t{1} << 52);
  return reduce_large(significand, exponent, 6);
}

// ---- both halves

/// sin(high + low) and cos; |high + low| <= pi/4.
std::pair<Expr, Expr> sine_and_cosine(const Reduced& r, std::span<const double> sine,
                                      std::span<const double> cosine) {
  Expr x = r.high, y = r.low, z = x * x, half = z * 0.5;
  Expr cube = z * x, one = x.number(1);
  Expr s = x - ((z * (y * 0.5 - cube * polynomial(z, sine.subspan(1))) - y) - cube * sine[0]);
  Expr w = one - half;
  Expr c = w + (((one - w) - half) + (z * z * polynomial(z, cosine) - x * y));
  return {s, c};
}

/// The sine, by quadrant.
Expr sine_of(const Reduced& r, std::span<const double> sine, std::span<const double> cosine) {
  const auto [s, c] = sine_and_cosine(r, sine, cosine);
  Expr zero = r.quadrant.integer(0);
  Expr value = where(ne(r.quadrant & int64_t{1}, zero), c, s);
  return where(ne(r.quadrant & int64_t{2}, zero), -value, value);
}

/// The tangent.
Expr tangent_of(const Reduced& r, std::span<const double> sine, std::span<const double> cosine) {
  const auto [s, c] = sine_and_cosine(r, sine, cosine);
  Expr odd = ne(r.quadrant & int64_t{1}, r.quadrant.integer(0));
  return where(odd, -c, s) / where(odd, s, c);
}

/// Signs, values so small that sin x is x, infinities and NaN.
Expr finish(Expr x, Expr sine, double small) {
  Expr magnitude = magnitude_of(x);
  Expr result = where(x < x.number(0), -sine, sine);
  result = where(magnitude < x.number(small), x, result);
  Expr nan = x.number(std::numeric_limits<double>::quiet_NaN());
  return where(magnitude < x.number(std::numeric_limits<double>::infinity()), result, nan);
}

/// An f64 in [-3/4 pi, 3/4 pi], as high + low, whose sine is that of a reduced |x|, or of x.
std::pair<Expr, Expr> unturned(Expr x, const Reduced& r) {
  Expr zero = r.quadrant.integer(0), odd = ne(r.quadrant & int64_t{1}, zero);
  Expr quarter = r.high.number(kHalfPi), beyond = quarter - r.high;
  Expr lost = ((quarter - beyond) - r.high) + (r.low.number(kHalfPiLow) - r.low);
  Expr high = where(odd, beyond, r.high), low = where(odd, lost, r.low);
  Expr negative =
      ne((r.quadrant >> 1) & int64_t{1}, where(x < x.number(0), zero + int64_t{1}, zero));
  high = where(negative, -high, high);
  const Expr finite = magnitude_of(x) < x.number(std::numeric_limits<double>::infinity());
  return {where(finite, high, high.number(std::numeric_limits<double>::quiet_NaN())),
          where(negative, -low, low)};
}

/// y - n * (quarters * pi/2), for the nearest n, below 2^20. Of fused operations the first is
/// exact, where parts are not needed.
Expr without_multiple(Expr y, Expr n, double quarters) {
  const bool fuses = y.legaliser().native(Op::MulAcc, DType::F64);
  for (const double part :
       fuses ? std::vector{kHalfPi, kHalfPiLow} : std::vector{kPart1, kPart2, kPart3})
    y = n.mul_add(n.number(-quarters * part), y);
  return y;
}

/// sin or cos of an f64 below 2^20, to f32: low parts and compensations do not matter. `of_rest`:
/// of what is left without the nearest multiple of pi, and of its square.
Expr by_half_turns(Expr y, Expr (*of_rest)(Expr r, Expr z)) {
  Expr shifted = y.mul_add(y.number(kTwoOverPiF64 / 2), y.number(kRoundMagic));
  Expr r = without_multiple(y, shifted - kRoundMagic, 2);
  // The sign changes with every half turn.
  Expr sign = shifted.bits_as(DType::I64) << 63;
  Expr value = of_rest(r, r * r);
  return (value.bits_as(DType::I64) ^ sign).bits_as(DType::F64).converted(DType::F32);
}
Expr sine_of_rest(Expr r, Expr z) {
  return r * z.mul_add(polynomial(z, kSinHalfTurn), z.number(1));
}
/// Where the cosine is 0 the first factor is.
Expr cosine_of_rest(Expr, Expr z) {
  return (z.number(kHalfPiSquared) - z) * polynomial(z, kCosHalfTurn);
}

/// What a function is of numbers below `limit`, and, where a lane has a larger one, what `of_large`
/// makes of that. The argument is carried, too: what depends on nothing that is would be computed
/// before the loop.
Expr with_large_f32(Expr x, double limit, Expr of_small, Expr (*of_large)(Expr)) {
  Legaliser& l = x.legaliser();
  Expr large = magnitude_of(x) >= x.number(limit);
  const auto next = [&](const Legaliser::Values& values) {
    return Legaliser::Values{where(large, of_large(Expr(l, values[1])), Expr(l, values[0])),
                             values[1]};
  };
  return {l, l.next_if_any(large, {of_small, x}, next)[0]};
}

/// What `to_f32` makes of a large f32's magnitude; NaN of infinities.
Expr of_large_f32(Expr x, Expr (*to_f32)(const Reduced&)) {
  return where(magnitude_of(x) < x.number(std::numeric_limits<double>::infinity()),
               to_f32(reduce_large_f32(x)), x.number(std::numeric_limits<double>::quiet_NaN()));
}
Expr sine_f64(const Reduced& r) { return sine_of(r, kSinF64, kCosF64); }
Expr cosine_f64(const Reduced& r) { return sine_f64({r.quadrant + int64_t{1}, r.high, r.low}); }

NodeRef sin_f32(Expr x) {
  Expr small = by_half_turns(x.converted(DType::F64), sine_of_rest);
  return with_large_f32(x, kLargest, small, [](Expr y) {
    Expr sine = of_large_f32(y, [](const Reduced& r) { return sine_f64(r).converted(DType::F32); });
    return where(y < y.number(0), -sine, sine);
  });
}
NodeRef cos_f32(Expr x) {
  Expr small = by_half_turns(x.converted(DType::F64), cosine_of_rest);
  return with_large_f32(x, kLargest, small, [](Expr y) {
    return of_large_f32(y, [](const Reduced& r) { return cosine_f64(r).converted(DType::F32); });
  });
}

Expr with_sign_of(Expr x, Expr by_quadrant, Expr magnitude) {
  Expr sign = (x.bits_as(DType::I32) ^ by_quadrant) & int64_t{INT32_MIN};
  return (magnitude.bits_as(DType::I32) ^ sign).bits_as(DType::F32);
}

/// |x|, an f32, where there is no f64: pairs of f32, and the digits of 1/(2 pi) for all but the
/// first quadrant.
Reduced reduce_in_pairs(Expr x) {
  Expr pattern = (x.bits_as(DType::I32) & int64_t{0x7fffffff}).converted(DType::I64);
  Expr magnitude = magnitude_of(x);
  Expr exponent = (pattern >> 23).op(Op::Max, pattern.integer(126)) - int64_t{150};
  const Turned t = turned((pattern & int64_t{0x7fffff}) | int64_t{0x800000}, exponent, 3);
  Expr high = t.fraction.converted(DType::F32);
  Expr low = (t.fraction - high.converted(DType::I64)).converted(DType::F32);
  // pi/2 - 0x1.921fb6p+0 is -0x1.777a5cp-25.
  const Reduced large = in_radians(t.quadrant, high, low, {0x1.921fb6p+0, -0x1.777a5cp-25, 4097});
  const Reduced first{t.quadrant.integer(0), magnitude, magnitude.number(0)};
  return where_reduced(magnitude < magnitude.number(0.78), first, large);
}

/// What is large reduced instead: a remainder and quadrants in one number would lose digits. The
/// argument is carried, too: what depends on nothing that is would be computed before the loop.
Reduced with_large(Expr given, const Reduced& small, Reduced (*reduce)(Expr)) {
  Legaliser& l = given.legaliser();
  Expr large = magnitude_of(given) >= given.number(kLargest);
  const auto next = [&](const Legaliser::Values& values) {
    Expr x(l, values[3]), infinity = x.number(std::numeric_limits<double>::infinity());
    Reduced r = reduce(x);
    Expr negative = x < x.number(0);
    r.high = where(negative, -r.high, r.high);
    r.high = where(magnitude_of(x) < infinity, r.high,
                   r.high.number(std::numeric_limits<double>::quiet_NaN()));
    r.low = where(negative, -r.low, r.low);
    r = where_reduced(large, r, {Expr(l, values[0]), Expr(l, values[1]), Expr(l, values[2])});
    return Legaliser::Values{r.quadrant, r.high, r.low, x};
  };
  NodeRef low = splat(l.graph(), small.low, given.node()->lanes);  // a constant, maybe
  const auto r = l.next_if_any(large, {small.quadrant, small.high, low, given}, next);
  return {Expr(l, r[0]), Expr(l, r[1]), Expr(l, r[2])};
}

/// What is large is replaced by what has the same sine, with what that loses.
NodeRef sin_f64(Expr x) {
  Legaliser& l = x.legaliser();
  Expr large = magnitude_of(x) >= x.number(kLargest), zero = x.number(0);
  const auto small =
      l.next_if_any(large, {x, splat(l.graph(), zero, x.node()->lanes)}, [&](const auto& values) {
        Expr same(l, values[0]);
        const auto [high, low] = unturned(same, reduce_large_f64(same));
        return Legaliser::Values{where(large, high, same), where(large, low, Expr(l, values[1]))};
      });
  Reduced r = reduce_small(Expr(l, small[0]));
  r.low = r.low + Expr(l, small[1]);
  Expr sine = sine_of(r, kSinF64, kCosF64);
  return where(magnitude_of(x) < x.number(0x1p-27), x, sine);
}

/// The sine of |x|, a quadrant further.
NodeRef cos_f64(Expr x) {
  Expr magnitude = magnitude_of(x);
  return cosine_f64(with_large(magnitude, reduce_small(magnitude), reduce_large_f64));
}

// ---- tan

/// By f64: a polynomial about the nearest multiple of pi/2; about odd ones -1 over it, by a
/// quotient of f32 that one step of Newton's method makes precise.
Expr tangent_to_f32(Expr quadrant, Expr r) {
  Expr z = r * r;
  Expr tangent = r * z.mul_add(polynomial(z, kTanF32), z.number(1));
  Expr part = tangent.converted(DType::F32);
  Expr rough = (part.number(-1) / part).converted(DType::F64);
  Expr inverse = rough.mul_add(tangent.mul_add(rough, rough.number(1)), rough);
  Expr odd = ne(quadrant & int64_t{1}, quadrant.integer(0));
  return where(odd, inverse, tangent).converted(DType::F32);
}

NodeRef tan_f32(Expr x) {
  Expr y = x.converted(DType::F64);
  Expr shifted = y.mul_add(y.number(kTwoOverPiF64), y.number(kRoundMagic));
  Expr n = shifted - kRoundMagic;
  Expr remainder = without_multiple(y, n, 1);
  const Reduced r =
      with_large(x, {shifted.bits_as(DType::I64), remainder, y.number(0)}, reduce_large_f32);
  return tangent_to_f32(r.quadrant, r.high);
}

/// tan of f32 by fused operations of f32; 1 over it with what the sum and the quotient lost.
NodeRef tan_by_fusing(Expr x) {
  const auto [quadrant, r, low] = reduce_small_f32(magnitude_of(x));
  Expr z = r * r, one = z.number(1);
  // The slope 1 + tan^2 r of what r lacks, to a tenth, and about that of what z does.
  Expr lacking = z.mul_add(z.number(1.3), one) * low;
  lacking = (r * 0.55).mul_add(r.mul_add(r, -z), lacking);
  Expr rest = (r * z).mul_add(polynomial(z, kTanQuarterF32), lacking);
  Expr high = r + rest, lost = rest - (high - r);
  Expr quotient = one / high;
  Expr error = lost.mul_add(-quotient, high.mul_add(-quotient, one));
  Expr inverse = quotient.mul_add(error, quotient);
  // 1 over it about odd multiples, with the other sign.
  Expr by_quadrant = quadrant << 31;
  Expr odd = ne(quadrant & int64_t{1}, quadrant.integer(0));
  Expr result = with_sign_of(x, by_quadrant, where(odd, inverse, high));
  return with_large_f32(x, kLargestF32, result, [](Expr y) {
    Expr tangent =
        of_large_f32(y, [](const Reduced& far) { return tangent_to_f32(far.quadrant, far.high); });
    return with_sign_of(y, y.bits_as(DType::I32).integer(0), tangent);
  });
}

NodeRef tan_f64(Expr x) {
  const Reduced r = with_large(x, reduce_small(x), reduce_large_f64);
  return where(magnitude_of(x) < x.number(0x1p-27), x, tangent_of(r, kSinF64, kCosF64));
}

/// Of what is large f64 is needed all the same.
bool by_fusing(const Legaliser& l) { return l.native(Op::MulAcc, DType::F32) && l.has_f64(); }

/// What is equal in all lanes is computed once.
Expr given(const Match& m, Legaliser& l) {
  NodeRef x = m[pat::x];
  return {l, x->op == Op::Splat ? x->src(0) : x};
}

}  // namespace

NodeRef sin_expansion(const Match& m, Legaliser& l) {
  Expr x = given(m, l);
  if (x.dtype() == DType::F64) return sin_f64(x);
  if (l.has_f64()) return sin_f32(x);
  return finish(x, sine_of(reduce_in_pairs(x), kSinF32, kCosF32), 0x1p-13);
}

NodeRef cos_expansion(const Match& m, Legaliser& l) {
  Expr x = given(m, l);
  if (x.dtype() == DType::F64) return cos_f64(x);
  if (l.has_f64()) return cos_f32(x);
  Reduced r = reduce_in_pairs(x);
  r.quadrant = r.quadrant + int64_t{1};
  return where(magnitude_of(x) < x.number(std::numeric_limits<double>::infinity()),
               sine_of(r, kSinF32, kCosF32), x.number(std::numeric_limits<double>::quiet_NaN()));
}

NodeRef tan_expansion(const Match& m, Legaliser& l) {
  Expr x = given(m, l);
  if (x.dtype() == DType::F64) return tan_f64(x);
  if (by_fusing(l)) return tan_by_fusing(x);
  if (l.has_f64()) return tan_f32(x);
  return finish(x, tangent_of(reduce_in_pairs(x), kSinF32, kCosF32), 0x1p-13);
}

}  // namespace weft::lower
