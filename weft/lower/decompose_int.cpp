// Integer and bool ops in terms of others: division with its guards and corrections, shifts, casts,
// logic.
#include "weft/base/bits.h"
#include "weft/lower/legaliser.h"

namespace weft::lower {
namespace {

using Sources = std::span<const NodeRef>;

// ---- conditions

bool on_bool(const Legaliser&, DType, Sources src) { return is_bool(src[0]->dtype); }
bool on_ints(const Legaliser&, DType dtype, Sources) { return is_int(dtype); }
bool to_bool(const Legaliser&, DType dtype, Sources src) {
  return is_bool(dtype) && !is_bool(src[0]->dtype);
}
bool from_bool(const Legaliser&, DType dtype, Sources src) {
  return !is_bool(dtype) && is_bool(src[0]->dtype);
}
bool shift_may_be_outside(const Legaliser&, DType dtype, Sources src) {
  return is_int(dtype) && (src[1]->vmin < 0 || src[1]->vmax >= bits(dtype));
}

// ---- division

/// The value of a constant or of a vector of one constant.
bool constant_of(NodeRef n, int64_t& value) {
  if (n->op == Op::Splat) n = n->src(0);
  if (n->op != Op::Const) return false;
  value = n->int_arg(0);
  return true;
}
/// Unsigned constants above int64's range are treated like any other divisor.
bool small_constant(NodeRef n, int64_t& value) {
  return constant_of(n, value) && (value >= 0 || is_signed_int(n->dtype));
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

NodeRef idiv(Legaliser& l, DType, Sources src) {
  Expr a(l, src[0]), b(l, src[1]);
  int64_t c = 0;
  if (small_constant(b, c)) {
    if (c == 0) return b;
    if (c == 1) return a;
    if (c == -1) return -a;
    if (is_power_of_two(c)) return a >> int64_t{floor_log2(static_cast<uint64_t>(c))};
    Expr q = cdiv(a, b);
    if (same_signs(a, b)) return q;
    Expr r = a - q * b, zero = a.integer(0);
    return where(c > 0 ? r < zero : zero < r, q + int64_t{-1}, q);
  }
  Expr safe = safe_divisor(a, b), q = cdiv(a, safe);
  if (!same_signs(a, b)) {
    q = where(wrong_side(a - q * safe, safe), q + int64_t{-1}, q);
    if (safe.node() != b.node() && may_be(b, -1)) q = where(eq(b, b.integer(-1)), -a, q);
  }
  return may_be(b, 0) ? where(eq(b, b.integer(0)), b.integer(0), q) : q;
}

NodeRef mod(Legaliser& l, DType, Sources src) {
  Expr a(l, src[0]), b(l, src[1]);
  int64_t c = 0;
  if (small_constant(b, c)) {
    if (c == 0 || c == 1 || c == -1) return a.integer(0);
    if (is_power_of_two(c)) return a & (c - 1);
    Expr r = cmod(a, b);
    if (same_signs(a, b)) return r;
    Expr zero = a.integer(0);
    return where(c > 0 ? r < zero : zero < r, r + b, r);
  }
  // By zero and by -1 the divisor is 1 and the remainder 0, as it should be.
  Expr r = cmod(a, safe_divisor(a, b));
  return same_signs(a, b) ? r : where(wrong_side(r, b), r + b, r);
}

bool no_division(const Legaliser& l, DType dtype, Sources src) {
  int64_t c = 0;
  return bits(dtype) <= 32 && !l.target().native(Op::CDiv, dtype) && small_constant(src[1], c);
}

/// a / c for 0 <= a < 2^32 by a multiplication: with s = ceil(log2 c) and m = ceil(2^(32+s) / c) -
/// 2^32, t = a*m >> 32, the quotient is (((a - t) >> 1) + t) >> (s - 1). Granlund and Montgomery,
/// "Division by invariant integers using multiplication", PLDI 1994, figure 4.1.
Expr divided_by_constant(Expr a, uint64_t c) {
  if (c == 1) return a;
  const int s = ceil_log2(c);
  const auto m = static_cast<uint64_t>(
      ((static_cast<__uint128_t>(1) << 32) * ((uint64_t{1} << s) - c)) / c + 1);
  Expr t = (a * a.integer(static_cast<int64_t>(m))) >> 32;
  return (((a - t) >> 1) + t) >> int64_t{s - 1};
}

NodeRef cdiv_by_constant(Legaliser& l, DType dtype, Sources src) {
  Expr a(l, src[0]);
  int64_t c = 0;
  small_constant(src[1], c);
  const bool negative = a.node()->vmin < 0;
  Expr wide = a.to(DType::I64);
  Expr magnitude = negative ? where(wide < wide.integer(0), -wide, wide) : wide;
  Expr q = divided_by_constant(magnitude.to(DType::U64), static_cast<uint64_t>(c < 0 ? -c : c));
  q = q.to(DType::I64);
  if (c < 0) q = -q;
  return (negative ? where(wide < wide.integer(0), -q, q) : q).to(dtype);
}

NodeRef cmod_by_constant(Legaliser& l, DType dtype, Sources src) {
  Expr a(l, src[0]), b(l, src[1]);
  return a - Expr(l, cdiv_by_constant(l, dtype, src)) * b;
}

// ---- shifts

Expr in_width(Expr by) {
  Expr inside = by < by.integer(bits(by.dtype()));
  return by.node()->vmin >= 0 ? inside : inside & (by >= by.integer(0));
}

NodeRef shl(Legaliser& l, DType dtype, Sources src) {
  Expr a(l, src[0]), by(l, src[1]), inside = in_width(by);
  Expr shifted(l, l.raw(Op::Shl, dtype, {a, where(inside, by, by.integer(0))}));
  return where(inside, shifted, a.integer(0));
}

NodeRef shr(Legaliser& l, DType dtype, Sources src) {
  Expr a(l, src[0]), by(l, src[1]), inside = in_width(by);
  // All bits out leaves the sign: one less than the width does that for signed types.
  Expr most = by.integer(is_signed_int(dtype) ? bits(dtype) - 1 : 0);
  Expr shifted(l, l.raw(Op::Shr, dtype, {a, where(inside, by, most)}));
  return is_signed_int(dtype) ? shifted : where(inside, shifted, a.integer(0));
}

// ---- the rest

template <Op op>
NodeRef as(Legaliser& l, DType dtype, Sources src) {
  return l.make(op, dtype, src);
}
NodeRef bool_less(Legaliser& l, DType, Sources src) { return (!Expr(l, src[0])) & Expr(l, src[1]); }
NodeRef bool_not_more(Legaliser& l, DType, Sources src) {
  return (!Expr(l, src[0])) | Expr(l, src[1]);
}
NodeRef bool_equal(Legaliser& l, DType, Sources src) {
  return !(Expr(l, src[0]) ^ Expr(l, src[1]));
}

NodeRef is_not_zero(Legaliser& l, DType, Sources src) {
  Expr x(l, src[0]);
  return ne(x, is_float(x.dtype()) ? x.number(0) : x.integer(0));
}
NodeRef one_or_zero(Legaliser& l, DType dtype, Sources src) {
  return where(Expr(l, src[0]), Expr(l, l.constant(Value::of(dtype, 1))),
               Expr(l, l.constant(Value::of(dtype, 0))));
}
NodeRef mul_then_add(Legaliser& l, DType, Sources src) {
  return Expr(l, src[0]) * Expr(l, src[1]) + Expr(l, src[2]);
}
NodeRef larger(Legaliser& l, DType, Sources src) {
  Expr a(l, src[0]), b(l, src[1]);
  return where(a < b, b, a);
}
NodeRef smaller(Legaliser& l, DType, Sources src) {
  Expr a(l, src[0]), b(l, src[1]);
  return where(b < a, b, a);
}
template <Op op>
bool int_without(const Legaliser& l, DType dtype, Sources) {
  return is_int(dtype) && !l.target().native(op, dtype);
}

constexpr Decomposition kTable[] = {
    {Op::Add, "bool.add", on_bool, as<Op::Or>},
    {Op::Mul, "bool.mul", on_bool, as<Op::And>},
    {Op::Max, "bool.max", on_bool, as<Op::Or>},
    {Op::Min, "bool.min", on_bool, as<Op::And>},
    {Op::Lt, "bool.lt", on_bool, bool_less},
    {Op::Le, "bool.le", on_bool, bool_not_more},
    {Op::Eq, "bool.eq", on_bool, bool_equal},
    {Op::Ne, "bool.ne", on_bool, as<Op::Xor>},
    {Op::Cast, "cast.to_bool", to_bool, is_not_zero},
    {Op::Cast, "cast.from_bool", from_bool, one_or_zero},
    {Op::IDiv, "idiv.floor", on_ints, idiv},
    {Op::Mod, "mod.floor", on_ints, mod},
    {Op::CDiv, "cdiv.magic", no_division, cdiv_by_constant},
    {Op::CMod, "cmod.magic", no_division, cmod_by_constant},
    {Op::Shl, "shl.outside", shift_may_be_outside, shl},
    {Op::Shr, "shr.outside", shift_may_be_outside, shr},
    {Op::MulAcc, "mulacc.int", on_ints, mul_then_add},
    {Op::Max, "max.int", int_without<Op::Max>, larger},
    {Op::Min, "min.int", int_without<Op::Min>, smaller},
};

}  // namespace

std::span<const Decomposition> int_decompositions() { return kTable; }

}  // namespace weft::lower
