// a*b + c of f32 rounded once, in integers: for machines without f64, in which the product is
// exact.
#include "weft/lower/legaliser.h"

namespace weft::lower {
namespace {

/// |x| = significand * 2^(exponent - 150), in i64; subnormals have exponent 1.
struct Parts {
  Expr significand, exponent, negative;
};

Parts parts_of(Expr x) {
  Expr pattern = x.bits_as(DType::I32).converted(DType::I64);
  Expr exponent = (pattern >> 23) & int64_t{0xff}, significand = pattern & int64_t{0x7fffff};
  Expr normal = ne(exponent, pattern.integer(0));
  return {where(normal, significand | (int64_t{1} << 23), significand),
          where(normal, exponent, exponent.integer(1)), pattern < pattern.integer(0)};
}

/// x * 2^-by, where the last bit says whether anything below it was lost.
Expr shifted_right(Expr x, Expr by) {
  Expr most = by.op(Op::Min, by.integer(63)), kept = x.op(Op::Shr, most);
  Expr lost = ne(kept.op(Op::Shl, most), x);
  return kept | where(lost, kept.integer(1), kept.integer(0));
}

/// x * 2^by for by >= 0, right for by below 0.
Expr shifted(Expr x, Expr by) {
  Expr none = by.integer(0);
  Expr left = x.op(Op::Shl, by.op(Op::Max, none));
  return where(by < none, shifted_right(x, (-by).op(Op::Max, none)), left);
}

Expr power_of_two(Expr exponent) {
  return ((exponent + int64_t{127}).converted(DType::I32) << 23).bits_as(DType::F32);
}

/// sum * 2^exponent, sum >= 0, rounded to nearest even; exponent >= -187.
Expr rounded(Expr sum, Expr exponent) {
  Expr half = exponent >> 1;
  Expr normal = sum.converted(DType::F32) * power_of_two(half) * power_of_two(exponent - half);
  // Subnormal numbers are multiples of 2^-149, counted by their bits.
  Expr by = (exponent.integer(-149) - exponent).op(Op::Max, exponent.integer(0));
  Expr tie = by.integer(1).op(Op::Shl, by) >> 1, odd = sum.op(Op::Shr, by) & int64_t{1};
  Expr below = (tie - int64_t{1}).op(Op::Max, by.integer(0));
  Expr steps = (sum + below + where(eq(tie, by.integer(0)), by.integer(0), odd)).op(Op::Shr, by);
  Expr subnormal = steps.converted(DType::I32).bits_as(DType::F32);
  Expr small = steps < steps.integer(int64_t{1} << 23);
  return where(small & (exponent < exponent.integer(-149)), subnormal, normal);
}

Expr infinite_or_nan(Expr x) {
  return eq((x.bits_as(DType::I32) >> 23) & int64_t{0xff}, x.bits_as(DType::I32).integer(0xff));
}

}  // namespace

/// The product has 48 bits and gets 14 more, so that the summand has a place for every bit that
/// cancels; the summand is moved up by 38 at most. What is smaller than both leaves a sticky bit.
NodeRef mulacc_by_int(const Match& m, Legaliser& l) {
  if (l.has_f64()) return nullptr;
  Expr a(l, m[pat::x]), b(l, m[pat::y]), c(l, m[pat::z]);
  const Parts x = parts_of(a), y = parts_of(b), z = parts_of(c);
  Expr product = (x.significand * y.significand) << 14;
  Expr of_product = x.exponent + y.exponent - int64_t{314}, of_c = z.exponent - int64_t{150};
  Expr exponent = of_product.op(Op::Max, of_c - int64_t{38});
  Expr p = shifted_right(product, exponent - of_product);
  Expr s = shifted(z.significand, of_c - exponent);
  Expr sum = where(x.negative ^ y.negative, -p, p) + where(z.negative, -s, s);
  Expr none = sum.integer(0), below = sum < none;
  Expr magnitude = rounded(where(below, -sum, sum), exponent);
  Expr result = where(below, -magnitude, magnitude), plain = a * b + c;
  Expr finite_product = !(infinite_or_nan(a) | infinite_or_nan(b));
  result = where(eq(sum, none) | !finite_product, plain, result);  // signs of zero; infinities
  return where(infinite_or_nan(c) & finite_product, c, result);
}

}  // namespace weft::lower
