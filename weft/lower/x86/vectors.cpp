// Arithmetic on vectors with AVX-512.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/lower/x86/selector.h"

namespace weft::lower {

using namespace x86;

namespace {

constexpr int kRegisterBits = 512;
constexpr int64_t kUnordered = 3, kTowardsZero = 11;
// Predicates of float comparisons (quiet) and of integer ones.
constexpr int64_t kFloatEq = 0, kFloatNe = 4, kFloatLt = 0x11, kFloatLe = 0x12;
constexpr int64_t kIntEq = 0, kIntNe = 4, kIntLt = 1, kIntLe = 2;

enum : uint8_t { kSigned = 1, kUnsigned = 2, kFloat = 4, kInt = kSigned | kUnsigned };

uint8_t kind_of(DType d) {
  if (in_vector(d)) return kFloat;
  return is_signed_int(d) ? kSigned : kUnsigned;
}

/// One instruction with all lanes' results, from as many operands as the op has.
struct VectorForm {
  Op op;
  uint8_t kinds;
  int bits;  // of an element; 0: any
  Form form;
};

constexpr VectorForm kVectorForms[] = {
    {Op::Add, kFloat, 32, Form::VAddPs},
    {Op::Add, kFloat, 64, Form::VAddPd},
    {Op::Add, kInt, 8, Form::VPaddB},
    {Op::Add, kInt, 16, Form::VPaddW},
    {Op::Add, kInt, 32, Form::VPaddD},
    {Op::Add, kInt, 64, Form::VPaddQ},
    {Op::Mul, kFloat, 32, Form::VMulPs},
    {Op::Mul, kFloat, 64, Form::VMulPd},
    {Op::Mul, kInt, 16, Form::VPmullW},
    {Op::Mul, kInt, 32, Form::VPmullD},
    {Op::Mul, kInt, 64, Form::VPmullQ},
    {Op::Div, kFloat, 32, Form::VDivPs},
    {Op::Div, kFloat, 64, Form::VDivPd},
    {Op::Sqrt, kFloat, 32, Form::VSqrtPs},
    {Op::Sqrt, kFloat, 64, Form::VSqrtPd},
    {Op::And, kInt, 0, Form::VPandQ},
    {Op::Or, kInt, 0, Form::VPorQ},
    {Op::Xor, kInt, 0, Form::VPxorQ},
    {Op::Max, kSigned, 8, Form::VPmaxSb},
    {Op::Max, kSigned, 16, Form::VPmaxSw},
    {Op::Max, kSigned, 32, Form::VPmaxSd},
    {Op::Max, kSigned, 64, Form::VPmaxSq},
    {Op::Max, kUnsigned, 8, Form::VPmaxUb},
    {Op::Max, kUnsigned, 16, Form::VPmaxUw},
    {Op::Max, kUnsigned, 32, Form::VPmaxUd},
    {Op::Max, kUnsigned, 64, Form::VPmaxUq},
    {Op::Min, kSigned, 8, Form::VPminSb},
    {Op::Min, kSigned, 16, Form::VPminSw},
    {Op::Min, kSigned, 32, Form::VPminSd},
    {Op::Min, kSigned, 64, Form::VPminSq},
    {Op::Min, kUnsigned, 8, Form::VPminUb},
    {Op::Min, kUnsigned, 16, Form::VPminUw},
    {Op::Min, kUnsigned, 32, Form::VPminUd},
    {Op::Min, kUnsigned, 64, Form::VPminUq},
    // Amounts beyond the width give 0, or the sign, as the ops do.
    {Op::Shl, kInt, 16, Form::VPsllvW},
    {Op::Shl, kInt, 32, Form::VPsllvD},
    {Op::Shl, kInt, 64, Form::VPsllvQ},
    {Op::Shr, kUnsigned, 16, Form::VPsrlvW},
    {Op::Shr, kUnsigned, 32, Form::VPsrlvD},
    {Op::Shr, kUnsigned, 64, Form::VPsrlvQ},
    {Op::Shr, kSigned, 16, Form::VPsravW},
    {Op::Shr, kSigned, 32, Form::VPsravD},
    {Op::Shr, kSigned, 64, Form::VPsravQ},
};

const VectorForm* vector_form(Op op, DType d) {
  const auto* row = std::find_if(std::begin(kVectorForms), std::end(kVectorForms), [&](auto& f) {
    return f.op == op && (f.kinds & kind_of(d)) != 0 && (f.bits == 0 || f.bits == bits(d));
  });
  return row == std::end(kVectorForms) || is_half_float(d) ? nullptr : row;
}

/// Chooses among values of mask bits by the element's width.
Form blend_form(int bits) {
  return bits == 8    ? Form::VPblendmB
         : bits == 16 ? Form::VPblendmW
         : bits == 32 ? Form::VPblendmD
                      : Form::VPblendmQ;
}

Form comparison_form(DType d) {
  if (in_vector(d)) return d == DType::F32 ? Form::VCmpPsK : Form::VCmpPdK;
  const bool s = is_signed_int(d);
  switch (bits(d)) {
    case 8: return s ? Form::VPcmpB : Form::VPcmpUb;
    case 16: return s ? Form::VPcmpW : Form::VPcmpUw;
    case 32: return s ? Form::VPcmpD : Form::VPcmpUd;
    default: return s ? Form::VPcmpQ : Form::VPcmpUq;
  }
}

int64_t predicate(Op op, bool floats) {
  switch (op) {
    case Op::Lt: return floats ? kFloatLt : kIntLt;
    case Op::Le: return floats ? kFloatLe : kIntLe;
    case Op::Eq: return floats ? kFloatEq : kIntEq;
    default: return floats ? kFloatNe : kIntNe;
  }
}

bool is_comparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Eq || op == Op::Ne; }

}  // namespace

X86Selector::Layout X86Selector::layout(DType dtype, int lanes) {
  if (is_bool(dtype)) return {lanes, 1, lanes, 64, 1};
  const int total = lanes * bits(dtype), parts = std::max(1, total / kRegisterBits);
  return {lanes, parts, lanes / parts, std::max(128, total / parts), bits(dtype) / 8};
}

void X86Selector::set_parts(NodeRef n, Parts p) {
  vector_at_[n] = static_cast<uint32_t>(vectors_.size());
  vectors_.push_back(std::move(p));
}

void X86Selector::copy_part(Reg to, Reg from, DType dtype, int width) {
  emit(is_bool(dtype) ? Form::KmovQ : Form::VMovaps, width, {to, from});
}

void X86Selector::select_vector(NodeRef n) {
  switch (n->op) {
    case Op::Store: return vector_store(n);
    case Op::SetAcc: {
      const Layout l = layout(n->src(1));
      for (size_t p = 0; p < parts(n->src(1)).size(); ++p)
        copy_part(parts(n->src(0))[p], parts(n->src(1))[p], n->src(1)->dtype, l.width);
      return;
    }
    case Op::Acc:
    case Op::GetAcc: {
      const Layout l = layout(n);
      Parts copies;
      for (Reg from : Parts(parts(n->src(0)))) {
        copies.push_back(is_bool(n->dtype) ? mask() : vector_of(l.width));
        copy_part(copies.back(), from, n->dtype, l.width);
      }
      return set_parts(n, std::move(copies));
    }
    case Op::Load: return set_parts(n, vector_load(n));
    case Op::Splat: return set_parts(n, splat(n));
    case Op::Vec: return set_parts(n, vec(n));
    default: return set_parts(n, vector_op(n));
  }
}

Parts X86Selector::vector_op(NodeRef n) {
  const NodeRef first = n->src(n->op == Op::Where ? 1 : 0);
  // The bits of a bool are 0 or 1, but a vector of bools is a mask.
  if (n->op == Op::Cast || (n->op == Op::Bitcast && is_bool(n->src(0)->dtype))) {
    Parts converted = vector_cast(n);
    return converted.empty() ? lane_by_lane(n) : converted;
  }
  if (n->op == Op::Bitcast) return parts(n->src(0));
  if (n->op == Op::Where) return vector_where(n);
  if (is_bool(first->dtype)) return mask_op(n);
  if (is_comparison(n->op)) return vector_comparison(n);
  if (n->op == Op::Neg || n->op == Op::Not) return vector_negation(n);
  if (n->op == Op::MulAcc) return vector_mulacc(n);
  if (in_vector(n->dtype) && (n->op == Op::Max || n->op == Op::Min)) return vector_max(n);
  const Layout l = layout(n);
  Parts out;
  const VectorForm* form = vector_form(n->op, n->dtype);
  if (!form && n->op != Op::Trunc) return lane_by_lane(n);
  for (size_t p = 0; p < static_cast<size_t>(l.parts); ++p) {
    const Reg r = vector_of(l.width), a = parts(n->src(0))[p];
    if (n->op == Op::Trunc)
      emit(of(n->dtype, Form::VRndscalePs, Form::VRndscalePd), l.width, {r, a}, kTowardsZero);
    else if (n->nsrc == 1)
      emit(form->form, l.width, {r, a});
    else
      emit(form->form, l.width, {r, a, parts(n->src(1))[p]});
    out.push_back(r);
  }
  return out;
}

Reg X86Selector::all_lanes(uint64_t bits, int element_bits, int width) {
  uint64_t wide = bits;
  for (int b = element_bits; b < 64; b *= 2) wide |= wide << b;
  const Reg r = vector_of(width);
  emit(make(Form::VPbroadcastQ, width, {r}, pattern(wide, 64)));
  return r;
}

/// Float: the sign flipped. Integers: 0 - x, or all bits flipped.
Parts X86Selector::vector_negation(NodeRef n) {
  const Layout l = layout(n);
  const int width = bits(n->dtype);
  const bool subtracts = n->op == Op::Neg && !in_vector(n->dtype);
  const uint64_t flip =
      n->op == Op::Not ? ~uint64_t{0} >> (64 - width) : uint64_t{1} << (width - 1);
  const Reg constant = all_lanes(subtracts ? 0 : flip, width, l.width);
  const Form minus = width == 8    ? Form::VPsubB
                     : width == 16 ? Form::VPsubW
                     : width == 32 ? Form::VPsubD
                                   : Form::VPsubQ;
  Parts out;
  for (Reg x : Parts(parts(n->src(0)))) {
    out.push_back(vector_of(l.width));
    emit(subtracts ? minus : Form::VPxorQ, l.width, {out.back(), constant, x});
  }
  return out;
}

Parts X86Selector::vector_mulacc(NodeRef n) {
  const Layout l = layout(n);
  const bool floats = in_vector(n->dtype);
  const VectorForm *times = vector_form(Op::Mul, n->dtype), *plus = vector_form(Op::Add, n->dtype);
  if (!times || !plus) return lane_by_lane(n);
  Parts out;
  for (size_t p = 0; p < static_cast<size_t>(l.parts); ++p) {
    const Reg r = vector_of(l.width), a = parts(n->src(0))[p], b = parts(n->src(1))[p],
              c = parts(n->src(2))[p];
    if (floats) {
      copy_part(r, c, n->dtype, l.width);
      emit(of(n->dtype, Form::VFmadd231Ps, Form::VFmadd231Pd), l.width, {r, a, b});
    } else {
      const Reg product = vector_of(l.width);
      emit(times->form, l.width, {product, a, b});
      emit(plus->form, l.width, {r, product, c});
    }
    out.push_back(r);
  }
  return out;
}

/// As float_max: max(b, a) is a unless b > a; a NaN in b is put back.
Parts X86Selector::vector_max(NodeRef n) {
  const Layout l = layout(n);
  const bool max = n->op == Op::Max;
  const Form form =
      max ? of(n->dtype, Form::VMaxPs, Form::VMaxPd) : of(n->dtype, Form::VMinPs, Form::VMinPd);
  Parts out;
  for (size_t p = 0; p < static_cast<size_t>(l.parts); ++p) {
    const Reg a = parts(n->src(0))[p], b = parts(n->src(1))[p], nan = mask();
    const Reg most = vector_of(l.width), r = vector_of(l.width);
    emit(comparison_form(n->dtype), l.width, {nan, b, b}, kUnordered);
    emit(form, l.width, {most, b, a});
    Instruction put_back = make(blend_form(bits(n->dtype)), l.width, {r, most, b});
    put_back.mask = nan;
    emit(put_back);
    out.push_back(r);
  }
  return out;
}

// ---- masks

Reg X86Selector::mask_three(Form form, Reg a, Reg b) {
  const Reg r = mask();
  emit(form, 64, {r, a, b});
  return r;
}

Parts X86Selector::mask_op(NodeRef n) {
  const Reg a = parts(n->src(0))[0];
  const Reg b = n->nsrc > 1 ? parts(n->src(1))[0] : kNoReg;
  auto inverted = [this](Reg m) {
    const Reg r = mask();
    emit(Form::KnotQ, 64, {r, m});
    return r;
  };
  switch (n->op) {
    case Op::Neg: return {a};
    case Op::Not: return {inverted(a)};
    case Op::Add:
    case Op::Max:
    case Op::Or: return {mask_three(Form::KorQ, a, b)};
    case Op::Mul:
    case Op::Min:
    case Op::And: return {mask_three(Form::KandQ, a, b)};
    case Op::Xor:
    case Op::Ne: return {mask_three(Form::KxorQ, a, b)};
    case Op::Eq: return {mask_three(Form::KxnorQ, a, b)};
    case Op::Lt: return {mask_three(Form::KandnQ, a, b)};
    case Op::Le: return {mask_three(Form::KorQ, inverted(a), b)};
    case Op::Shl:
    case Op::Shr: return {mask_three(Form::KandnQ, b, a)};
    case Op::MulAcc:
      return {mask_three(Form::KorQ, mask_three(Form::KandQ, a, b), parts(n->src(2))[0])};
    default: break;
  }
  internal_error("lower.x86", "{} on bool has no instruction", info(n->op).mnemonic);
}

Parts X86Selector::vector_where(NodeRef n) {
  const Reg chosen = parts(n->src(0))[0];
  if (is_bool(n->dtype))
    return {mask_three(Form::KorQ, mask_three(Form::KandQ, chosen, parts(n->src(1))[0]),
                       mask_three(Form::KandnQ, chosen, parts(n->src(2))[0]))};
  const Layout l = layout(n);
  Parts out;
  for (int p = 0; p < l.parts; ++p) {
    const auto at = static_cast<size_t>(p);
    Instruction blend = make(blend_form(bits(n->dtype)), l.width,
                             {vector_of(l.width), parts(n->src(2))[at], parts(n->src(1))[at]});
    blend.mask = part_of_mask(chosen, p * l.per_part);
    emit(blend);
    out.push_back(blend.regs[0]);
  }
  return out;
}

Parts X86Selector::vector_comparison(NodeRef n) {
  const DType d = n->src(0)->dtype;
  const Layout l = layout(n->src(0));
  Parts masks;
  for (size_t p = 0; p < static_cast<size_t>(l.parts); ++p) {
    masks.push_back(mask());
    emit(comparison_form(d), l.width, {masks.back(), parts(n->src(0))[p], parts(n->src(1))[p]},
         predicate(n->op, in_vector(d)));
  }
  return {joined_masks(masks, l.per_part)};
}

/// Masks whose bits beyond `lanes_each` are 0, one after the other.
Reg X86Selector::joined_masks(std::span<const Reg> masks, int lanes_each) {
  Reg all = masks[0];
  for (size_t p = 1; p < masks.size(); ++p) {
    const Reg moved = mask();
    emit(Form::KshiftlQ, 64, {moved, masks[p]}, static_cast<int64_t>(p) * lanes_each);
    all = mask_three(Form::KorQ, all, moved);
  }
  return all;
}

Reg X86Selector::part_of_mask(Reg all, int first_lane) {
  if (first_lane == 0) return all;
  const Reg r = mask();
  emit(Form::KshiftrQ, 64, {r, all}, first_lane);
  return r;
}

}  // namespace weft::lower
