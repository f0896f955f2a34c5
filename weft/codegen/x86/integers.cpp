// Integers and bool in general registers.
#include <bit>

#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

Reg X86Selector::extended(Reg r, DType dtype) {
  if (bits(dtype) == 64 || is_bool(dtype)) return r;
  const Reg to = general();
  const bool is_signed = is_signed_int(dtype);
  if (bits(dtype) == 8)
    emit(is_signed ? Form::MovsxB : Form::MovzxB, is_signed ? 64 : 32, {to, r});
  else if (bits(dtype) == 16)
    emit(is_signed ? Form::MovsxW : Form::MovzxW, is_signed ? 64 : 32, {to, r});
  else if (is_signed)
    emit(Form::Movsxd, 64, {to, r});
  else
    emit(Form::Mov, 32, {to, r});
  extended_from_[to] = {r, bits(dtype)};
  return to;
}

Reg X86Selector::low_bits(Reg r, DType dtype) const {
  const auto found = extended_from_.find(r);
  return found != extended_from_.end() && bits(dtype) <= found->second.bits ? found->second.from
                                                                            : r;
}

/// Bounds are those before wrapping; where the result could wrap they are the whole dtype's.
Reg X86Selector::wrapped(NodeRef n, Reg r) {
  const bool whole =
      n->vmin <= int_min(n->dtype) || n->vmax >= static_cast<int64_t>(int_max(n->dtype));
  return whole || is_unsigned(n->dtype) ? extended(r, n->dtype) : r;
}

Reg X86Selector::with_constant(NodeRef n) {
  if (n->nsrc != 2 || n->src(1)->op != Op::Const) return kNoReg;
  const int64_t c = n->src(1)->dtype == DType::U64
                        ? static_cast<int64_t>(const_value(n->src(1)).as_uint())
                        : const_value(n->src(1)).as_int();
  if (c < INT32_MIN || c > INT32_MAX) return kNoReg;
  const Reg a = value(n->src(0)), r = general();
  switch (n->op) {
    case Op::Add:
      emit(make(Form::Lea, 64, {r}, Address{.base = a, .displacement = static_cast<int32_t>(c)}));
      return wrapped(n, r);
    case Op::Mul:
      if (c > 0 && (c & (c - 1)) == 0)
        return wrapped(n,
                       with_immediate(Form::ShlI, a, std::countr_zero(static_cast<uint64_t>(c))));
      emit(Form::ImulI, 64, {r, a}, c);
      return wrapped(n, r);
    case Op::And: return with_immediate(Form::AndI, a, c);
    case Op::Or: return with_immediate(Form::OrI, a, c);
    case Op::Xor: return with_immediate(Form::XorI, a, c);
    default: return kNoReg;
  }
}

Reg X86Selector::integer_op(NodeRef n) {
  if (const Reg r = integer_pattern(n); r != kNoReg) return r;
  if (const Reg r = with_constant(n); r != kNoReg) return r;
  const Reg a = value(n->src(0));
  const Reg b = n->nsrc > 1 ? value(n->src(1)) : kNoReg;
  const bool is_u64 = n->dtype == DType::U64;
  switch (n->op) {
    case Op::Neg: return wrapped(n, with_immediate(Form::Neg, a, 0));
    case Op::Not: return extended(with_immediate(Form::Not, a, 0), n->dtype);
    case Op::Add: {
      const Reg r = general();
      emit(make(Form::Lea, 64, {r}, Address{.base = a, .index = b}));
      return wrapped(n, r);
    }
    case Op::Mul: return wrapped(n, two_address(Form::Imul, a, b));
    case Op::And: return two_address(Form::And, a, b);
    case Op::Or: return two_address(Form::Or, a, b);
    case Op::Xor: return two_address(Form::Xor, a, b);
    case Op::MulAcc:
      return wrapped(n, two_address(Form::Add, two_address(Form::Imul, a, b), value(n->src(2))));
    case Op::Max: return select_integer(n, is_u64 ? kBelow : kLess);
    case Op::Min: return select_integer(n, is_u64 ? kAbove : kGreater);
    case Op::Shl:
    case Op::Shr: return shift(n);
    case Op::CDiv:
    case Op::CMod: return divide(n);
    case Op::Dot2I16:
    case Op::DotPairs:
    case Op::Dot4: return dot(n);
    case Op::Lookup4: {
      const Reg x = looked_up(n, bits_to_vector(a, DType::F32), 128);
      return extended(vector_to_bits(x, DType::F32), n->dtype);
    }
    default: break;
  }
  internal_error("lower.x86", "{} on {} has no instruction; decompose should have replaced it",
                 info(n->op).mnemonic, name(n->dtype));
}

/// The first operand, or the second where their comparison gives `when_b`.
Reg X86Selector::select_integer(NodeRef n, Condition when_b) {
  const Reg r = copied(value(n->src(0)));
  emit(Form::Cmp, 64, {value(n->src(0)), value(n->src(1))});
  move_if(when_b, r, value(n->src(1)));
  return r;
}

void X86Selector::find_conditions() {
  NodeMap<NodeRef> made_in;  // of each comparison, the innermost loop
  SmallVector<NodeRef, 8> loops{nullptr};
  const auto decides = [](NodeRef n, size_t i) {
    if (n->op == Op::Where) {
      const bool number = is_int_const(n->src(1), 1) && is_int_const(n->src(2), 0);
      return i == 0 && n->lanes == 1 && !in_vector(n->dtype) && !number;
    }
    return n->op == Op::If || (n->op == Op::Load && i == 2) || (n->op == Op::Store && i == 3);
  };
  for (NodeRef n : program_.code) {
    for (size_t i = 0; i < n->nsrc; ++i) {
      const NodeRef* loop = made_in.find(n->src(i));
      if (loop && (*loop != loops.back() || !decides(n, i))) conditions_.set(n->src(i), false);
    }
    if (n->op == Op::Range) loops.push_back(n);
    if (n->op == Op::EndRange) loops.pop_back();
    const bool compares = n->op == Op::Lt || n->op == Op::Le || n->op == Op::Eq || n->op == Op::Ne;
    const DType of = compares ? n->src(0)->dtype : DType::Void;
    if (n->lanes > 1 || !is_int(of) || is_bool(of)) continue;
    made_in.set(n, loops.back());
    conditions_.set(n, true);
  }
}

/// Sets the flags; gives the condition under which `n` holds.
Condition X86Selector::compare(NodeRef n) {
  const bool is_u64 = n->src(0)->dtype == DType::U64;
  emit(Form::Cmp, 64, {value(n->src(0)), value(n->src(1))});
  switch (n->op) {
    case Op::Lt: return is_u64 ? kBelow : kLess;
    case Op::Le: return is_u64 ? kBelowEqual : kLessEqual;
    case Op::Eq: return kEqual;
    default: return kNotEqual;
  }
}

Condition X86Selector::flags_of(NodeRef n) {
  if (is_condition(n)) return compare(n);
  emit(Form::Test, 32, {value(n), value(n)});
  return kNotEqual;
}

int32_t X86Selector::skip_unless(NodeRef n) {
  const int32_t end = new_label();
  jump(Form::Jcc, end, static_cast<Condition>(flags_of(n) ^ 1));  // encodings come in pairs
  return end;
}

Reg X86Selector::integer_where(NodeRef n) {
  // A bool is 1 or 0 already.
  if (is_int_const(n->src(1), 1) && is_int_const(n->src(2), 0) && !is_condition(n->src(0)))
    return value(n->src(0));
  const Reg r = copied(value(n->src(2)));
  move_if(flags_of(n->src(0)), r, value(n->src(1)));
  return r;
}

Reg X86Selector::bool_op(NodeRef n) {
  if (const Reg r = bool_pattern(n); r != kNoReg) return r;
  const Reg a = value(n->src(0));
  const Reg b = n->nsrc > 1 ? value(n->src(1)) : kNoReg;
  auto inverted = [this](Reg r) { return with_immediate(Form::XorI, r, 1); };
  switch (n->op) {
    case Op::Neg: return a;
    case Op::Not: return inverted(a);
    case Op::Add:
    case Op::Max:
    case Op::Or: return two_address(Form::Or, a, b);
    case Op::Mul:
    case Op::Min:
    case Op::And: return two_address(Form::And, a, b);
    case Op::Xor:
    case Op::Ne: return two_address(Form::Xor, a, b);
    case Op::Eq: return inverted(two_address(Form::Xor, a, b));
    case Op::Lt: return two_address(Form::And, inverted(a), b);
    case Op::Le: return two_address(Form::Or, inverted(a), b);
    case Op::Shl:
    case Op::Shr: return two_address(Form::And, inverted(b), a);
    case Op::MulAcc: return two_address(Form::Or, two_address(Form::And, a, b), value(n->src(2)));
    default: break;
  }
  internal_error("lower.x86", "{} on bool has no instruction", info(n->op).mnemonic);
}

/// Shifts count modulo 64; amounts outside the dtype give 0, or the sign.
Reg X86Selector::shift(NodeRef n) {
  const Reg x = value(n->src(0)), r = general();
  const bool right = n->op == Op::Shr, keeps_sign = right && is_signed_int(n->dtype);
  const NodeRef by = n->src(1);
  if (by->vmin >= 0 && by->vmax < bits(n->dtype)) {  // as decomposition has it
    emit(keeps_sign ? Form::Sarx : right ? Form::Shrx : Form::Shlx, 64, {r, x, value(by)});
    return right ? r : extended(r, n->dtype);
  }
  const Reg amount = copied(value(by)), outside = integer(keeps_sign ? 63 : 0);
  emit(Form::CmpI, 64, {amount}, bits(n->dtype));
  if (keeps_sign) {
    move_if(kAboveEqual, amount, outside);
    emit(Form::Sarx, 64, {r, x, amount});
    return r;
  }
  emit(right ? Form::Shrx : Form::Shlx, 64, {r, x, amount});  // leaves the flags alone
  move_if(kAboveEqual, r, outside);
  return right ? r : extended(r, n->dtype);
}

/// In 64 bits, where only INT64_MIN / -1 would trap: dividing by -1 is negation.
Reg X86Selector::divide(NodeRef n) {
  const Reg low = general(), high = general(), x = value(n->src(0));
  Reg by = value(n->src(1));
  const bool is_signed = is_signed_int(n->dtype), quotient = n->op == Op::CDiv;
  const bool traps = n->dtype == DType::I64;
  if (traps) {
    const Reg one = integer(1);
    const Reg safe = copied(by);
    emit(Form::CmpI, 64, {by}, -1);
    move_if(kEqual, safe, one);
    by = safe;
  }
  emit(Form::Mov, 64, {low, x});
  if (is_signed) {
    emit(Form::Cqo, 64, {low, high});
    emit(Form::Idiv, 64, {by, low, high});
  } else {
    emit(Form::MovI32, 32, {high}, 0);
    emit(Form::Div, 64, {by, low, high});
  }
  const Reg r = copied(quotient ? low : high);
  if (!traps || !quotient) return extended(r, n->dtype);
  const Reg negated = with_immediate(Form::Neg, x, 0);
  emit(Form::CmpI, 64, {value(n->src(1))}, -1);
  move_if(kEqual, r, negated);
  return r;
}

}  // namespace weft::codegen
