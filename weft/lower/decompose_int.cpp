// Integer and bool ops in terms of others: division with its guards and corrections, shifts, casts,
// logic.
#include <optional>

#include "weft/base/bits.h"
#include "weft/lower/legaliser.h"

namespace weft::lower {
namespace {

// ---- division

/// Unsigned constants above int64's range are treated like any other divisor.
bool is_small(NodeRef constant) {
  return constant->int_arg(0) >= 0 || is_signed_int(constant->dtype);
}
bool may_be(NodeRef n, int64_t value) { return n->vmin <= value && value <= n->vmax; }

/// 1 where dividing by b is not defined, so that cdiv and cmod may run everywhere.
Expr safe_divisor(Expr a, Expr b) {
  const bool overflows =
      is_signed_int(a.dtype()) && may_be(b, -1) && a.node()->vmin == int_min(a.dtype());
  const bool zero = may_be(b, 0);
  if (!zero && !overflows) return b;
  Expr bad = overflows ? eq(b, b.integer(-1)) : eq(b, b.integer(0));
  if (zero && overflows) bad = bad | eq(b, b.integer(0));
  return where(bad, b.integer(1), b);
}

Expr cdiv(Expr a, Expr b) { return a.op(Op::CDiv, b); }
Expr cmod(Expr a, Expr b) { return a.op(Op::CMod, b); }

/// Where truncation and floor differ: a remainder with the other sign than the divisor.
Expr wrong_side(Expr remainder, Expr divisor) {
  return ne(remainder, remainder.integer(0)) & ((remainder ^ divisor) < remainder.integer(0));
}
bool same_signs(Expr a, Expr b) { return a.node()->vmin >= 0 && b.node()->vmin >= 0; }

NodeRef idiv(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), b(l, m[pat::y]), safe = safe_divisor(a, b), q = cdiv(a, safe);
  if (!same_signs(a, b)) {
    q = where(wrong_side(a - q * safe, safe), q + int64_t{-1}, q);
    if (safe.node() != b.node() && may_be(b, -1)) q = where(eq(b, b.integer(-1)), -a, q);
  }
  return may_be(b, 0) ? where(eq(b, b.integer(0)), b.integer(0), q) : q;
}

/// By zero and by -1 the divisor is 1 and the remainder 0, as it should be.
NodeRef mod(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), b(l, m[pat::y]), r = cmod(a, safe_divisor(a, b));
  return same_signs(a, b) ? r : where(wrong_side(r, b), r + b, r);
}

/// Quotients by c as (x * factor) >> shift.
struct Reciprocal {
  uint64_t factor;
  int shift;
};

/// Exact for 0 <= x <= most, with products of at most `width` bits; none where there is no such.
/// With factor = floor(2^shift / c) + 1 what products have too much, x * (factor * c - 2^shift) /
/// c, has to be less than 2^shift / c. Granlund and Montgomery, "Division by invariant integers
/// using multiplication", PLDI 1994, theorem 4.2.
std::optional<Reciprocal> reciprocal(uint64_t c, uint64_t most, int width) {
  using Wide = __uint128_t;
  for (int shift = 0; shift < 64; ++shift) {
    const Wide one = Wide{1} << shift, factor = one / c + 1;
    if (most * (factor * c - one) >= one) continue;
    if (most * factor >> width != 0) return std::nullopt;
    return Reciprocal{static_cast<uint64_t>(factor), shift};
  }
  return std::nullopt;
}

/// a / c for 0 <= a < 2^32, where factors have 33 bits: with s = ceil(log2 c) and m = ceil(2^(32+s)
/// / c) - 2^32, t = a*m >> 32, the quotient is (((a - t) >> 1) + t) >> (s - 1). As before, figure
/// 4.1.
Expr divided_by_constant(Expr a, uint64_t c) {
  const int s = ceil_log2(c);
  const auto m = static_cast<uint64_t>(
      ((static_cast<__uint128_t>(1) << 32) * ((uint64_t{1} << s) - c)) / c + 1);
  Expr t = (a * a.integer(static_cast<int64_t>(m))) >> 32;
  return (((a - t) >> 1) + t) >> int64_t{s - 1};
}

uint64_t magnitude(int64_t v) {
  return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
}

/// a / c towards zero, in the narrowest words that hold the products; null where it has to be
/// divided. Products of negative numbers are shifted down, not towards zero.
NodeRef quotient(Expr a, int64_t c) {
  const uint64_t by = magnitude(c),
                 most = std::max(magnitude(a.node()->vmin), magnitude(a.node()->vmax));
  if (by == 1) return c < 0 ? -a : a;
  const int sign = a.node()->vmin < 0 ? 1 : 0;
  const bool narrow = bits(a.dtype()) <= 32;
  const std::optional<Reciprocal> in_32 = narrow ? reciprocal(by, most, 32 - sign) : std::nullopt;
  const std::optional<Reciprocal> r = in_32 ? in_32 : reciprocal(by, most, 64 - sign);
  if (!r && !narrow) return nullptr;
  Expr x = in_32 ? a.to(sign ? DType::I32 : DType::U32) : a.to(sign ? DType::I64 : DType::U64);
  Expr q =
      r ? (x * static_cast<int64_t>(r->factor)) >> int64_t{r->shift} : divided_by_constant(x, by);
  if (sign) q = q - (x >> int64_t{bits(x.dtype()) - 1});
  q = q.to(a.dtype());
  return c < 0 ? -q : q;
}

/// C has no quotient by 0, and nothing asks for one.
bool divides(NodeRef constant) { return is_small(constant) && constant->int_arg(0) != 0; }

NodeRef cdiv_by_constant(const Match& m, Legaliser& l) {
  NodeRef by = m[pat::c0];
  return divides(by) ? quotient(Expr(l, m[pat::x]), by->int_arg(0)) : nullptr;
}
NodeRef cmod_by_constant(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), b(l, m[pat::c0]);
  NodeRef q = divides(b) ? quotient(a, b.node()->int_arg(0)) : nullptr;
  return q ? (a - Expr(l, q) * b).node() : nullptr;
}

/// a / b towards zero: of 64 bits, or in lanes of floats. With twice the digits of the integers
/// (f32 for 16 bits, f64 for 32) those are not rounded up to one that the quotient is below: that
/// is at least 1 / b away, half a unit in its last place at most |a / b| 2^-24, or 2^-53.
Expr narrow_quotient(Expr a, Expr b) {
  if (a.node()->lanes == 1 && b.node()->lanes == 1)
    return cdiv(a.to(DType::I64), b.to(DType::I64)).to(a.dtype());
  const bool narrow = bits(a.dtype()) <= 16;
  const DType in = narrow ? DType::F32 : DType::F64;
  Expr q = a.to(in) / b.to(in);
  return narrow ? q.converted(DType::I32).to(a.dtype()) : q.converted(a.dtype());
}

NodeRef cdiv_narrow(const Match& m, Legaliser& l) {
  return narrow_quotient(Expr(l, m[pat::x]), Expr(l, m[pat::y]));
}
NodeRef cmod_narrow(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), b(l, m[pat::y]);
  return a - narrow_quotient(a, b) * b;
}

// ---- shifts

Expr in_width(Expr by) {
  Expr inside = by < by.integer(bits(by.dtype()));
  return by.node()->vmin >= 0 ? inside : inside & (by >= by.integer(0));
}

bool may_be_outside(Expr by) { return by.node()->vmin < 0 || by.node()->vmax >= bits(by.dtype()); }

NodeRef shl(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), by(l, m[pat::y]);
  if (!may_be_outside(by)) return nullptr;
  Expr inside = in_width(by);
  Expr shifted(l, l.raw(Op::Shl, a.dtype(), {a, where(inside, by, by.integer(0))}));
  return where(inside, shifted, a.integer(0));
}

NodeRef shr(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), by(l, m[pat::y]);
  if (!may_be_outside(by)) return nullptr;
  const bool has_sign = is_signed_int(a.dtype());
  Expr inside = in_width(by);
  // All bits out leaves the sign: one less than the width does that for signed types.
  Expr most = by.integer(has_sign ? bits(by.dtype()) - 1 : 0);
  Expr shifted(l, l.raw(Op::Shr, a.dtype(), {a, where(inside, by, most)}));
  return has_sign ? shifted : where(inside, shifted, a.integer(0));
}

// ---- the rules

using namespace weft::pat;

// clang-format off
// Each is a move: a target gets an op it lacks of others, which no rule here makes of it again.
constexpr Rule kIntRules[] = {
    rule("cast.to_bool", typed(cast(x), DType::Bool), x != 0, kBits | kFloat).as_move(),
    rule("cast.from_bool", x(cast(p)), pat::where(p, 1, 0), kBits | kFloat).as_move(),
    rule("mulacc.apart", mulacc(x, y, z), x * y + z, kBits).as_move(),
    rule("max.select", max(x, y), pat::where(x < y, y, x), ~native_op(Op::Max, x), kBits).as_move(),
    rule("min.select", min(x, y), pat::where(y < x, y, x), ~native_op(Op::Min, x), kBits).as_move(),
};
/// Towards zero, as machines divide.
constexpr Pat cut(const Pat& a, const Pat& b) { return op(Op::CDiv, a, b); }
constexpr Pat cut_mod(const Pat& a, const Pat& b) { return op(Op::CMod, a, b); }
constexpr Rule kConstantDivisionRules[] = {
    rule("div.by_zero", x / 0, 0, kBits),
    rule("div.by_one", x / 1, x, kBits),
    rule("div.by_minus_one", x / -1, -x, is_signed(x), kBits),
    rule("div.power_of_two", x / c0, x >> ilog2(c0), c0 > 1 && is_pow2(c0), kBits),
    rule("div.no_signs", x / c0, cut(x, c0), vmin(x) >= 0 && c0 > 1, kBits).as_move(),
    rule("div.down", x / c0, pat::where(x - cut(x, c0) * c0 < 0, cut(x, c0) + -1, cut(x, c0)),
         c0 > 1, kBits).as_move(),
    rule("div.down_by_negative", x / c0,
         pat::where(0 < x - cut(x, c0) * c0, cut(x, c0) + -1, cut(x, c0)),
         c0 < -1, kBits).as_move(),
    rule("mod.by_zero", x % 0, 0, kBits),
    rule("mod.by_one", x % 1, 0, kBits),
    rule("mod.by_minus_one", x % -1, 0, is_signed(x), kBits),
    rule("mod.power_of_two", x % c0, x & (c0 + -1), c0 > 1 && is_pow2(c0), kBits).as_move(),
    rule("mod.no_signs", x % c0, cut_mod(x, c0), vmin(x) >= 0 && c0 > 1, kBits).as_move(),
    rule("mod.up", x % c0, pat::where(cut_mod(x, c0) < 0, cut_mod(x, c0) + c0, cut_mod(x, c0)),
         c0 > 1, kBits).as_move(),
    rule("mod.up_by_negative", x % c0,
         pat::where(0 < cut_mod(x, c0), cut_mod(x, c0) + c0, cut_mod(x, c0)),
         c0 < -1, kBits).as_move(),
};
constexpr NativeRule<Legaliser> kDivisionRules[] = {
    native("div.floor", x / y, idiv, kBits),
    native("mod.floor", x % y, mod, kBits),
    native("cdiv.magic", op(Op::CDiv, x, c0), cdiv_by_constant,
           bits(x) <= 32 && ~native_op(Op::CDiv, x), kBits),
    native("cmod.magic", op(Op::CMod, x, c0), cmod_by_constant,
           bits(x) <= 32 && ~native_op(Op::CDiv, x), kBits),
    // Of 64 bits those that are known to be small, as indices are.
    native("cdiv.magic_wide", op(Op::CDiv, x, c0), cdiv_by_constant, bits(x) == 64, kBits),
    native("cmod.magic_wide", op(Op::CMod, x, c0), cmod_by_constant, bits(x) == 64, kBits),
    native("cdiv.narrow", op(Op::CDiv, x, y), cdiv_narrow,
           bits(x) <= 32 && ~native_op(Op::CDiv, x), kBits),
    native("cmod.narrow", op(Op::CMod, x, y), cmod_narrow,
           bits(x) <= 32 && ~native_op(Op::CDiv, x), kBits),
};
constexpr NativeRule<Legaliser> kShiftRules[] = {
    native("shl.outside", x << y, shl, kBits),
    native("shr.outside", x >> y, shr, kBits),
};
// clang-format on

}  // namespace

RuleList<Legaliser> int_decompositions() {
  return rules<Legaliser>(kIntRules, kConstantDivisionRules, kDivisionRules, kShiftRules);
}

}  // namespace weft::lower
