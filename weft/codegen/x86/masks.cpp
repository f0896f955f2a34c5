// Bool vectors, in mask registers or as lanes of ones and zeros.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"
#include "weft/dtype/value.h"

namespace weft::codegen {

using namespace x86;

namespace {

/// A comparison's predicate, as an immediate.
struct Predicate {
  Op op;
  FloatPredicate floats;
  int64_t integers;
};
constexpr Predicate kPredicates[] = {
    {Op::Eq, kFloatEq, 0}, {Op::Lt, kFloatLt, 1}, {Op::Le, kFloatLe, 2}, {Op::Ne, kFloatNe, 4}};

constexpr std::pair<DType, Form> kPredicated[] = {
    {DType::F32, Form::VCmpPsK}, {DType::F64, Form::VCmpPdK}, {DType::F32, Form::VCmpPs},
    {DType::F64, Form::VCmpPd},  {DType::I8, Form::VPcmpB},   {DType::I16, Form::VPcmpW},
    {DType::I32, Form::VPcmpD},  {DType::I64, Form::VPcmpQ},  {DType::U8, Form::VPcmpUb},
    {DType::U16, Form::VPcmpUw}, {DType::U32, Form::VPcmpUd}, {DType::U64, Form::VPcmpUq},
};
// By bits of an element from here on.
constexpr std::pair<int, Form> kEqualForms[] = {
    {8, Form::VPcmpeqB}, {16, Form::VPcmpeqW}, {32, Form::VPcmpeqD}, {64, Form::VPcmpeqQ}};
constexpr std::pair<int, Form> kGreaterForms[] = {
    {8, Form::VPcmpgtB}, {16, Form::VPcmpgtW}, {32, Form::VPcmpgtD}, {64, Form::VPcmpgtQ}};
constexpr std::pair<int, Form> kTests[] = {
    {8, Form::VPtestmB}, {16, Form::VPtestmW}, {32, Form::VPtestmD}, {64, Form::VPtestmQ}};
constexpr std::pair<int, Form> kBlends[] = {
    {8, Form::VPblendmB}, {16, Form::VPblendmW}, {32, Form::VPblendmD}, {64, Form::VPblendmQ},
    {8, Form::VPblendvB}, {16, Form::VPblendvB}, {32, Form::VBlendvps}, {64, Form::VBlendvpd},
};
constexpr std::pair<int, Form> kZeroingMoves[] = {
    {8, Form::VMovdquB}, {16, Form::VMovdquW}, {32, Form::VMovups}, {64, Form::VMovupd}};

/// On mask registers, on lanes.
struct LogicForm {
  Op op;
  Form masks, lanes;
};
constexpr LogicForm kLogic[] = {
    {Op::And, Form::KandQ, Form::VPand},
    {Op::Or, Form::KorQ, Form::VPor},
    {Op::Xor, Form::KxorQ, Form::VPxor},
    {Op::Lt, Form::KandnQ, Form::VPandn},  // not a, and b
};

/// One bit for each lane in a general register, or `step` bits.
struct BitsForm {
  int bits;
  Form form;
  int step;
};
constexpr BitsForm kBitsForms[] = {
    {1, Form::KmovQFrom, 1},  {8, Form::VPmovmskb, 1},  {16, Form::VPmovmskb, 2},
    {32, Form::VMovmskps, 1}, {64, Form::VMovmskpd, 1},
};

template <size_t n>
Form by_bits(const std::pair<int, Form> (&rows)[n], int bits) {
  for (const auto& [b, form] : rows)
    if (b == bits) return form;
  internal_error("lower.x86", "no form for elements of {} bits", bits);
}

const Predicate& predicate(Op op) {
  return *std::find_if(std::begin(kPredicates), std::end(kPredicates),
                       [op](const Predicate& p) { return p.op == op; });
}

const BitsForm& bits_form(int bits) {
  for (const BitsForm& row : kBitsForms)
    if (row.bits == bits) return row;
  internal_error("lower.x86", "a mask of {} bits", bits);
}

DType signed_int(int bits) {
  return bits == 8 ? DType::I8 : bits == 16 ? DType::I16 : bits == 32 ? DType::I32 : DType::I64;
}

}  // namespace

// ---- comparing, one register

Reg X86Selector::compared(Op op, DType d, Reg a, Reg b, int width) {
  if (in_vector(d)) return compared_floats(predicate(op).floats, d, a, b, width);
  if (!wide_) return compared_lanes(op, d, a, b, width);
  const Reg r = mask();
  emit(usable_form(kPredicated, d), width, {r, a, b}, predicate(op).integers);
  return r;
}

Reg X86Selector::compared_floats(int64_t predicate, DType d, Reg a, Reg b, int width) {
  const Reg r = wide_ ? mask() : vector_of(width);
  emit(usable_form(kPredicated, d), width, {r, a, b}, predicate);
  return r;
}

/// Of integers, where there is "equal" and the signed "greater" alone.
Reg X86Selector::compared_lanes(Op op, DType d, Reg a, Reg b, int width) {
  const bool equality = op == Op::Eq || op == Op::Ne;
  if (!equality && is_unsigned(d)) {
    const Reg sign = all_lanes(uint64_t{1} << (bits(d) - 1), bits(d), width);
    a = bitwise(Op::Xor, a, sign, width), b = bitwise(Op::Xor, b, sign, width);
  }
  if (op == Op::Lt) std::swap(a, b);
  const Reg r = vector_op(by_bits(equality ? kEqualForms : kGreaterForms, bits(d)), width, a, b);
  if (op == Op::Eq || op == Op::Lt) return r;
  return bitwise(Op::Xor, r, all_lanes(~uint64_t{0}, 64, width), width);
}

Reg X86Selector::is_not_zero(DType d, Reg x, int width) {
  if (in_vector(d)) return compared(Op::Ne, d, x, all_lanes(0, 64, width), width);
  if (!wide_) return compared_lanes(Op::Ne, d, x, all_lanes(0, 64, width), width);
  const Reg r = mask();
  emit(by_bits(kTests, bits(d)), width, {r, x, x});
  return r;
}

Reg X86Selector::blended(Reg chosen, Reg yes, Reg no, int bits, int width) {
  Instruction blend = make(usable_form(kBlends, bits), width, {vector_of(width), no, yes});
  (is_mask_register(chosen) ? blend.mask : blend.regs[3]) = chosen;
  emit(blend);
  return blend.regs[0];
}

Reg X86Selector::kept(Reg chosen, Reg x, int bits, int width) {
  if (!is_mask_register(chosen)) return bitwise(Op::And, chosen, x, width);
  Instruction keep = make(by_bits(kZeroingMoves, bits), width, {vector_of(width), x});
  keep.mask = chosen;
  keep.zeroing = true;
  emit(keep);
  return keep.regs[0];
}

// ---- whole vectors

Vector X86Selector::vector_comparison(NodeRef n) {
  const DType d = n->src(0)->dtype;
  const Parts &a = vector(n->src(0)).parts, &b = vector(n->src(1)).parts;
  const Layout l = layout(bits(d), n->lanes);
  Parts masks;
  for (size_t p = 0; p < a.size(); ++p) masks.push_back(compared(n->op, d, a[p], b[p], l.width));
  return mask_of_parts(masks, bits(d), n->lanes);
}

/// From a mask for each register of elements; in mask registers, bits beyond the lanes are 0.
Vector X86Selector::mask_of_parts(const Parts& masks, int bits, int lanes) {
  if (!wide_) return {masks, bits, lanes};
  const int each = layout(bits, lanes).per_part;
  Reg all = masks[0];
  for (size_t p = 1; p < masks.size(); ++p) {
    const Reg moved = mask(), both = mask();
    emit(Form::KshiftlQ, 64, {moved, masks[p]}, static_cast<int64_t>(p) * each);
    emit(Form::KorQ, 64, {both, all, moved});
    all = both;
  }
  return {{all}, 1, lanes};
}

Reg X86Selector::part_of_mask(const Vector& m, int part, int lanes_each) {
  if (m.bits != 1) return m.parts[static_cast<size_t>(part)];
  if (part == 0) return m.parts[0];
  const Reg r = mask();
  emit(Form::KshiftrQ, 64, {r, m.parts[0]}, part * lanes_each);
  return r;
}

/// From a general register, whose bits are the lanes; all equal unless there are mask registers.
Vector X86Selector::mask_of_bits(Reg from, int lanes) {
  if (wide_) {
    const Reg m = mask();
    emit(Form::KmovQTo, 64, {m, from});
    return {{m}, 1, lanes};
  }
  const Layout l = layout(8, lanes);
  const Reg r = vector_of(l.width);
  emit(Form::VPbroadcastQ, l.width, {r, bits_to_vector(from, DType::F64)});
  return {Parts(static_cast<size_t>(l.parts), r), 8, lanes};
}

Vector X86Selector::mask_beside(NodeRef n, int wanted) {
  const Vector& m = vector(n);
  if (m.bits == 1 || m.bits == wanted) return m;
  return {converted(m.parts, signed_int(m.bits), signed_int(wanted), m.lanes), wanted, m.lanes};
}

Vector X86Selector::logic(Op op, const Vector& a, const Vector& b) {
  Vector out{{}, a.bits, a.lanes};
  for (const LogicForm& row : kLogic)
    for (size_t p = 0; p < a.parts.size() && row.op == op; ++p) {
      out.parts.push_back(new_part(a));
      emit(a.bits == 1 ? row.masks : row.lanes, layout(a.bits, a.lanes).width,
           {out.parts.back(), a.parts[p], b.parts[p]});
    }
  return out;
}

Vector X86Selector::inverted(const Vector& m) {
  if (m.bits != 1) {
    const Layout l = layout(m.bits, m.lanes);
    const Reg ones = all_lanes(~uint64_t{0}, 64, l.width);
    return logic(Op::Xor, m, {Parts(m.parts.size(), ones), m.bits, m.lanes});
  }
  const Reg r = mask();
  emit(Form::KnotQ, 64, {r, m.parts[0]});
  return {{r}, 1, m.lanes};
}

Vector X86Selector::mask_op(NodeRef n) {
  const Vector a = vector(n->src(0));
  const Vector b = n->nsrc > 1 ? mask_beside(n->src(1), a.bits) : a;
  switch (n->op) {
    case Op::Neg: return a;
    case Op::Not: return inverted(a);
    case Op::Add:
    case Op::Max:
    case Op::Or: return logic(Op::Or, a, b);
    case Op::Mul:
    case Op::Min:
    case Op::And: return logic(Op::And, a, b);
    case Op::Xor:
    case Op::Ne: return logic(Op::Xor, a, b);
    case Op::Eq: return inverted(logic(Op::Xor, a, b));
    case Op::Lt: return logic(Op::Lt, a, b);
    case Op::Le: return logic(Op::Or, inverted(a), b);
    case Op::Shl:
    case Op::Shr: return logic(Op::Lt, b, a);
    case Op::MulAcc: return logic(Op::Or, logic(Op::And, a, b), mask_beside(n->src(2), a.bits));
    default: break;
  }
  internal_error("lower.x86", "{} on bool has no instruction", info(n->op).mnemonic);
}

Vector X86Selector::vector_where(NodeRef n) {
  if (is_bool(n->dtype)) {
    const Vector chosen = vector(n->src(0));
    return logic(Op::Or, logic(Op::And, chosen, mask_beside(n->src(1), chosen.bits)),
                 logic(Op::Lt, chosen, mask_beside(n->src(2), chosen.bits)));
  }
  const int width = bits(n->dtype);
  const Layout l = layout(width, n->lanes);
  const Vector chosen = mask_beside(n->src(0), width);
  const Parts &yes = vector(n->src(1)).parts, &no = vector(n->src(2)).parts;
  Vector out{{}, width, n->lanes};
  for (int p = 0; p < l.parts; ++p) {
    const auto at = static_cast<size_t>(p);
    out.parts.push_back(
        blended(part_of_mask(chosen, p, l.per_part), yes[at], no[at], width, l.width));
  }
  return out;
}

// ---- numbers

Parts X86Selector::mask_to_numbers(const Vector& m, DType to) {
  const Layout l = layout(bits(to), m.lanes);
  uint64_t one = 0;
  Value::of(to, 1).store(&one);
  const Reg ones = all_lanes(one, bits(to), l.width);
  Parts out;
  for (int p = 0; p < l.parts; ++p)
    out.push_back(kept(part_of_mask(m, p, l.per_part), ones, bits(to), l.width));
  return out;
}

Reg X86Selector::bit_of_mask(const Vector& m, int lane) {
  const Layout l = layout(m.bits, m.lanes);
  const BitsForm& row = bits_form(m.bits);
  const Reg bits = general();
  emit(row.form, l.width, {bits, m.parts[static_cast<size_t>(lane / l.per_part)]});
  const int at = lane % l.per_part * row.step;
  return with_immediate(Form::AndI, at == 0 ? bits : with_immediate(Form::ShrI, bits, at), 1);
}

/// Whether it holds in any lane; what lies beyond the lanes does not count.
Reg X86Selector::any_of_mask(const Vector& m) {
  const Layout l = layout(m.bits, m.lanes);
  Reg all = m.parts[0];
  for (size_t p = 1; p < m.parts.size(); ++p) all = bitwise(Op::Or, all, m.parts[p], l.width);
  const Reg bits = general();
  emit(bits_form(m.bits).form, l.width, {bits, all});
  const int used = m.bits == 1 ? m.lanes : std::min(l.per_part, m.lanes) * bits_form(m.bits).step;
  emit(Form::Test, used > 32 ? 64 : 32, {bits, used < 32 ? integer((1 << used) - 1) : bits});
  return set_if(kNotEqual);
}

}  // namespace weft::codegen
