// f32 and f64 in vector registers, one lane each.
#include <bit>

#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

Reg X86Selector::float_op(NodeRef n) {
  const DType d = n->dtype;
  const Reg a = value(n->src(0));
  const Reg b = n->nsrc > 1 ? value(n->src(1)) : kNoReg, r = scalar();
  switch (n->op) {
    case Op::Sqrt: return scalar_op(of(d, Form::VSqrtSs, Form::VSqrtSd), a, a);
    case Op::Add: return scalar_op(of(d, Form::VAddSs, Form::VAddSd), a, b);
    case Op::Mul: return scalar_op(of(d, Form::VMulSs, Form::VMulSd), a, b);
    case Op::Div: return scalar_op(of(d, Form::VDivSs, Form::VDivSd), a, b);
    // What is the same for one lane as for all.
    case Op::Neg:
    case Op::Trunc:
    case Op::Rint:
    case Op::Ldexp:
    case Op::Logb:
    case Op::Mantissa:
    case Op::Max:
    case Op::Min: return part_op({n->op, d, 128, a, b});
    case Op::MulAcc:
      copy(r, value(n->src(2)), d);
      emit(of(d, Form::VFmadd231Ss, Form::VFmadd231Sd), 128, {r, a, b});
      return r;
    case Op::Dot2: return dot(n);
    default: break;
  }
  internal_error("lower.x86", "{} on {} has no instruction; decompose should have replaced it",
                 info(n->op).mnemonic, name(d));
}

/// Of single words in the lowest lanes of vector registers.
Reg X86Selector::dot(NodeRef n) {
  const auto in_lane = [&](NodeRef x) {
    return in_vector(x->dtype) ? value(x) : bits_to_vector(value(x), DType::F32);
  };
  const Reg a = in_lane(n->src(0)), b = in_lane(n->src(1));
  const Reg c = n->nsrc > 2 ? in_lane(n->src(2)) : kNoReg;
  const Reg r = part_op({n->op, n->dtype, 128, a, b, c});
  return in_vector(n->dtype) ? r : extended(vector_to_bits(r, DType::F32), n->dtype);
}

Reg X86Selector::float_where(NodeRef n) {
  const Reg condition = value(n->src(0));
  Reg chosen = mask();
  if (wide_)
    emit(Form::KmovWTo, 0, {chosen, condition});
  else
    chosen = bits_to_vector(with_immediate(Form::Neg, condition, 0), DType::F64);
  return blended(chosen, value(n->src(1)), value(n->src(2)), bits(n->dtype), 128);
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

}  // namespace weft::codegen
