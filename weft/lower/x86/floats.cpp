// f32 and f64 in vector registers, one lane each.
#include <bit>

#include "weft/base/error.h"
#include "weft/lower/x86/selector.h"

namespace weft::lower {

using namespace x86;

namespace {

constexpr int64_t kUnordered = 3;     // a comparison's predicate: true where an operand is NaN
constexpr int64_t kTowardsZero = 11;  // rounding: truncate, raise nothing

}  // namespace

Reg X86Selector::three(Form form, Reg a, Reg b) {
  const Reg r = vector();
  emit(form, 128, {r, a, b});
  return r;
}

Reg X86Selector::float_constant(double value, DType dtype) {
  const Reg r = vector();
  const uint64_t raw = dtype == DType::F32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                           : std::bit_cast<uint64_t>(value);
  emit(make(of(dtype, Form::VMovss, Form::VMovsd), 128, {r}, pattern(raw, bits(dtype))));
  return r;
}

Reg X86Selector::float_op(NodeRef n) {
  const DType d = n->dtype;
  const Reg a = value(n->src(0));
  const Reg b = n->nsrc > 1 ? value(n->src(1)) : kNoReg, r = vector();
  switch (n->op) {
    case Op::Neg: {
      const uint64_t sign = uint64_t{1} << (bits(d) - 1);
      emit(make(wide_ ? Form::VPxorD : Form::VPxor, 128, {r, a}, pattern(sign, bits(d))));
      return r;
    }
    case Op::Sqrt: return three(of(d, Form::VSqrtSs, Form::VSqrtSd), a, a);
    case Op::Trunc:
      if (wide_)
        emit(of(d, Form::VRndscalePs, Form::VRndscalePd), 128, {r, a}, kTowardsZero);
      else
        emit(of(d, Form::VRoundSs, Form::VRoundSd), 128, {r, a, a}, kTowardsZero);
      return r;
    case Op::Add: return three(of(d, Form::VAddSs, Form::VAddSd), a, b);
    case Op::Mul: return three(of(d, Form::VMulSs, Form::VMulSd), a, b);
    case Op::Div: return three(of(d, Form::VDivSs, Form::VDivSd), a, b);
    case Op::Max:
    case Op::Min: return float_max(n);
    case Op::MulAcc:
      copy(r, value(n->src(2)), d);
      emit(of(d, Form::VFmadd231Ss, Form::VFmadd231Sd), 128, {r, a, b});
      return r;
    default: break;
  }
  internal_error("lower.x86", "{} on {} has no instruction; decompose should have replaced it",
                 info(n->op).mnemonic, name(d));
}

/// max(b, a) is a unless b > a, so that a NaN in a comes through; one in b is put back.
Reg X86Selector::float_max(NodeRef n) {
  const DType d = n->dtype;
  const bool max = n->op == Op::Max;
  const Form form = max ? of(d, Form::VMaxSs, Form::VMaxSd) : of(d, Form::VMinSs, Form::VMinSd);
  const Reg a = value(n->src(0)), b = value(n->src(1)), nan = wide_ ? mask() : vector();
  if (wide_)
    emit(of(d, Form::VCmpSsK, Form::VCmpSdK), 128, {nan, b, b}, kUnordered);
  else
    emit(of(d, Form::VCmpSs, Form::VCmpSd), 128, {nan, b, b}, kUnordered);
  return float_blend(nan, b, three(form, b, a), d);
}

/// `yes` where the mask register's bit is set, or the mask vector's sign.
Reg X86Selector::float_blend(Reg mask, Reg yes, Reg no, DType dtype) {
  const Reg r = vector();
  if (wide_) {
    Instruction blend = make(of(dtype, Form::VPblendmD, Form::VPblendmQ), 128, {r, no, yes});
    blend.mask = mask;
    emit(blend);
    return r;
  }
  emit(of(dtype, Form::VBlendvps, Form::VBlendvpd), 128, {r, no, yes, mask});
  return r;
}

Reg X86Selector::float_where(NodeRef n) {
  Reg chosen = mask();
  if (wide_)
    emit(Form::KmovWTo, 0, {chosen, value(n->src(0))});
  else
    chosen = bits_to_vector(with_immediate(Form::Neg, value(n->src(0)), 0), DType::F64);
  return float_blend(chosen, value(n->src(1)), value(n->src(2)), n->dtype);
}

/// vucomis says "above" only for ordered operands, and "parity" for unordered ones.
Reg X86Selector::float_comparison(NodeRef n) {
  const Reg a = value(n->src(0)), b = value(n->src(1));
  const Form form = of(n->src(0)->dtype, Form::VUcomiss, Form::VUcomisd);
  const bool swaps = n->op == Op::Lt || n->op == Op::Le;
  emit(form, 128, {swaps ? b : a, swaps ? a : b});
  if (n->op == Op::Lt) return set_if(kAbove);
  if (n->op == Op::Le) return set_if(kAboveEqual);
  const bool equal = n->op == Op::Eq;
  const Reg parity = set_if(equal ? kNoParity : kParity), same = set_if(equal ? kEqual : kNotEqual);
  return two_address(equal ? Form::And : Form::Or, parity, same);
}

Reg X86Selector::bits_to_vector(Reg r, DType dtype) {
  const Reg x = vector();
  emit(of(dtype, Form::VMovdTo, Form::VMovqTo), 128, {x, r});
  return x;
}

Reg X86Selector::vector_to_bits(Reg x, DType dtype) {
  const Reg r = general();
  emit(of(dtype, Form::VMovdFrom, Form::VMovqFrom), 128, {r, x});
  return r;
}

}  // namespace weft::lower
