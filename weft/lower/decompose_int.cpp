// Integer and bool ops in terms of others: division with its guards and corrections, shifts, casts,
// logic.
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

/// a / c for 0 <= a < 2^32 by a multiplication: with s = ceil(log2 c) and m = ceil(2^(32+s) / c) -
/// 2^32, t = a*m >> 32, the quotient is (((a - t) >> 1) + t) >> (s - 1). Granlund and Montgomery,
/// "Division by invariant integers using multiplication", PLDI 1994, figure 4.1.
Expr divided_by_constant(Expr a, uint64_t c) {
  const int s = ceil_log2(c);
  const auto m = static_cast<uint64_t>(
      ((static_cast<__uint128_t>(1) << 32) * ((uint64_t{1} << s) - c)) / c + 1);
  Expr t = (a * a.integer(static_cast<int64_t>(m))) >> 32;
  return (((a - t) >> 1) + t) >> int64_t{s - 1};
}

/// a / c towards zero, for n bits with a sign in one of 2n, and c > 1: with s = ceil(log2 c) and
/// m = floor(2^(n+s-1) / c) + 1 it is a*m >> (n+s-1), and 1 more of negative numbers. Figure 5.2
/// there.
Expr cut_by_constant(Expr a, uint64_t c, int n) {
  const int64_t shift = n + ceil_log2(c) - 1;
  const auto m = static_cast<int64_t>((uint64_t{1} << shift) / c + 1);
  Expr q = (a * m) >> shift;
  return a.node()->vmin < 0 ? q - (a >> int64_t{2 * n - 1}) : q;
}

/// Of at most 32 bits.
Expr quotient(Expr a, int64_t c) {
  const auto by = static_cast<uint64_t>(c < 0 ? -c : c);
  if (by == 1) return c < 0 ? -a : a;
  if (a.dtype() == DType::U32) return divided_by_constant(a.to(DType::U64), by).to(DType::U32);
  const bool halves = bits(a.dtype()) + (is_unsigned(a.dtype()) ? 1 : 0) <= 16;
  Expr q = cut_by_constant(a.to(halves ? DType::I32 : DType::I64), by, halves ? 16 : 32);
  return (c < 0 ? -q : q).to(a.dtype());
}

/// C has no quotient by 0, and nothing asks for one.
bool divides(NodeRef constant) { return is_small(constant) && constant->int_arg(0) != 0; }

/// Machines that divide have no instruction for all lanes of a vector.
bool has_quotients(NodeRef x, Legaliser& l) {
  const bool lane_by_lane = x->lanes > 1 && l.target().machine_code;
  return l.native(Op::CDiv, x->dtype) && !lane_by_lane;
}

NodeRef cdiv_by_constant(const Match& m, Legaliser& l) {
  NodeRef x = m[pat::x], by = m[pat::c0];
  if (has_quotients(x, l) || !divides(by)) return nullptr;
  return quotient(Expr(l, x), by->int_arg(0));
}
NodeRef cmod_by_constant(const Match& m, Legaliser& l) {
  Expr a(l, m[pat::x]), b(l, m[pat::c0]);
  if (has_quotients(a, l) || !divides(b)) return nullptr;
  return a - quotient(a, b.node()->int_arg(0)) * b;
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
    native("cdiv.magic", op(Op::CDiv, x, c0), cdiv_by_constant, bits(x) <= 32, kBits),
    native("cmod.magic", op(Op::CMod, x, c0), cmod_by_constant, bits(x) <= 32, kBits),
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
