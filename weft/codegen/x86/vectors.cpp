// Arithmetic on vectors.
#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

namespace {

// Rounding, which raises nothing: towards zero, to the nearest.
constexpr int64_t kTowardsZero = 11, kNearest = 8;
constexpr int64_t kPositive = 12;  // mantissas in [1, 2), NaN of what is below 0, 1 of both zeros
// vrange: of values with their signs, the sign of the result kept.
constexpr int64_t kLeast = 4, kLargest = 5;

enum : uint8_t { kSigned = 1, kUnsigned = 2, kFloat = 4, kInt = kSigned | kUnsigned };

uint8_t kind_of(DType d) {
  if (in_vector(d)) return kFloat;
  return is_signed_int(d) ? kSigned : kUnsigned;
}

constexpr std::pair<DType, Form> kSubtractions[] = {
    {DType::F32, Form::VSubPs}, {DType::F64, Form::VSubPd}, {DType::I8, Form::VPsubB},
    {DType::U8, Form::VPsubB},  {DType::I16, Form::VPsubW}, {DType::U16, Form::VPsubW},
    {DType::I32, Form::VPsubD}, {DType::U32, Form::VPsubD}, {DType::I64, Form::VPsubQ},
    {DType::U64, Form::VPsubQ}};

/// True where b is a constant such that max(a, b), or min, is a wherever the two are equal: no NaN,
/// nor the zero that wins.
bool loses_ties(Op op, NodeRef b) {
  if (b->op == Op::Splat) b = b->src(0);
  if (b->op != Op::Const || !is_float(b->dtype)) return false;
  const double v = const_value(b).as_double();
  return v < 0 || v > 0 || (v == 0 && std::signbit(v) == (op == Op::Max));
}

}  // namespace

/// How one register of results is made: by one instruction, or by a function around it. The first
/// row with an instruction that this CPU has counts.
struct X86Selector::VectorForm {
  Op op;
  uint8_t kinds;
  int bits;  // of an element; 0: any
  Form form;
  Reg (X86Selector::*make)(const PartOp&, Form) = nullptr;
};

const X86Selector::VectorForm X86Selector::kVectorForms[] = {
    {Op::Add, kFloat, 32, Form::VAddPs},
    {Op::Add, kFloat, 64, Form::VAddPd},
    {Op::Add, kInt, 8, Form::VPaddB},
    {Op::Add, kInt, 16, Form::VPaddW},
    {Op::Add, kInt, 32, Form::VPaddD},
    {Op::Add, kInt, 64, Form::VPaddQ},
    {Op::Neg, kInt, 8, Form::VPsubB, &X86Selector::from_zero},
    {Op::Neg, kInt, 16, Form::VPsubW, &X86Selector::from_zero},
    {Op::Neg, kInt, 32, Form::VPsubD, &X86Selector::from_zero},
    {Op::Neg, kInt, 64, Form::VPsubQ, &X86Selector::from_zero},
    {Op::Neg, kFloat, 0, Form::VPxorQ, &X86Selector::flipped},
    {Op::Neg, kFloat, 0, Form::VPxor, &X86Selector::flipped},
    {Op::Not, kInt, 0, Form::VPxorQ, &X86Selector::flipped},
    {Op::Not, kInt, 0, Form::VPxor, &X86Selector::flipped},
    {Op::Mul, kFloat, 32, Form::VMulPs},
    {Op::Mul, kFloat, 64, Form::VMulPd},
    {Op::Mul, kInt, 8, Form::VPmullW, &X86Selector::in_wider_lanes},
    {Op::Mul, kInt, 16, Form::VPmullW},
    {Op::Mul, kInt, 32, Form::VPmullD},
    {Op::Mul, kInt, 64, Form::VPmullQ},
    {Op::Mul, kInt, 64, Form::VPmulUdq, &X86Selector::product_of_halves},
    {Op::MulAcc, kFloat, 32, Form::VFmadd231Ps, &X86Selector::fused},
    {Op::MulAcc, kFloat, 64, Form::VFmadd231Pd, &X86Selector::fused},
    {Op::MulAcc, kInt, 0, Form::VPaddD, &X86Selector::multiplied_and_added},
    {Op::Dot2, kFloat, 32, Form::VDpbf16ps, &X86Selector::fused},
    {Op::Dot4, kInt, 32, Form::VPdpbusd, &X86Selector::fused},
    {Op::Dot4, kInt, 32, Form::VPdpbusdVex, &X86Selector::fused},
    {Op::Dot2I16, kInt, 32, Form::VPdpwssd, &X86Selector::fused},
    {Op::Dot2I16, kInt, 32, Form::VPdpwssdVex, &X86Selector::fused},
    {Op::Dot2I16, kInt, 32, Form::VPmaddWd, &X86Selector::added_to_product},
    {Op::DotPairs, kInt, 32, Form::VPmaddUbsw},
    {Op::Div, kFloat, 32, Form::VDivPs},
    {Op::Div, kFloat, 64, Form::VDivPd},
    {Op::Sqrt, kFloat, 32, Form::VSqrtPs},
    {Op::Sqrt, kFloat, 64, Form::VSqrtPd},
    {Op::Trunc, kFloat, 32, Form::VRndscalePs, &X86Selector::rounded},
    {Op::Trunc, kFloat, 64, Form::VRndscalePd, &X86Selector::rounded},
    {Op::Trunc, kFloat, 32, Form::VRoundPs, &X86Selector::rounded},
    {Op::Trunc, kFloat, 64, Form::VRoundPd, &X86Selector::rounded},
    {Op::Rint, kFloat, 32, Form::VRndscalePs, &X86Selector::rounded},
    {Op::Rint, kFloat, 64, Form::VRndscalePd, &X86Selector::rounded},
    {Op::Rint, kFloat, 32, Form::VRoundPs, &X86Selector::rounded},
    {Op::Rint, kFloat, 64, Form::VRoundPd, &X86Selector::rounded},
    {Op::Ldexp, kFloat, 32, Form::VScalefPs},
    {Op::Ldexp, kFloat, 64, Form::VScalefPd},
    {Op::Logb, kFloat, 32, Form::VGetexpPs},
    {Op::Logb, kFloat, 64, Form::VGetexpPd},
    {Op::Mantissa, kFloat, 32, Form::VGetmantPs, &X86Selector::mantissa},
    {Op::Mantissa, kFloat, 64, Form::VGetmantPd, &X86Selector::mantissa},
    {Op::And, kInt, 0, Form::VPandQ},
    {Op::And, kInt, 0, Form::VPand},
    {Op::Or, kInt, 0, Form::VPorQ},
    {Op::Or, kInt, 0, Form::VPor},
    {Op::Xor, kInt, 0, Form::VPxorQ},
    {Op::Xor, kInt, 0, Form::VPxor},
    {Op::Max, kFloat, 32, Form::VMaxPs, &X86Selector::float_extreme},
    {Op::Max, kFloat, 64, Form::VMaxPd, &X86Selector::float_extreme},
    {Op::Max, kSigned, 8, Form::VPmaxSb},
    {Op::Max, kSigned, 16, Form::VPmaxSw},
    {Op::Max, kSigned, 32, Form::VPmaxSd},
    {Op::Max, kSigned, 64, Form::VPmaxSq},
    {Op::Max, kUnsigned, 8, Form::VPmaxUb},
    {Op::Max, kUnsigned, 16, Form::VPmaxUw},
    {Op::Max, kUnsigned, 32, Form::VPmaxUd},
    {Op::Max, kUnsigned, 64, Form::VPmaxUq},
    {Op::Max, kInt, 64, Form::VBlendvpd, &X86Selector::integer_extreme},
    {Op::Min, kFloat, 32, Form::VMinPs, &X86Selector::float_extreme},
    {Op::Min, kFloat, 64, Form::VMinPd, &X86Selector::float_extreme},
    {Op::Min, kSigned, 8, Form::VPminSb},
    {Op::Min, kSigned, 16, Form::VPminSw},
    {Op::Min, kSigned, 32, Form::VPminSd},
    {Op::Min, kSigned, 64, Form::VPminSq},
    {Op::Min, kUnsigned, 8, Form::VPminUb},
    {Op::Min, kUnsigned, 16, Form::VPminUw},
    {Op::Min, kUnsigned, 32, Form::VPminUd},
    {Op::Min, kUnsigned, 64, Form::VPminUq},
    {Op::Min, kInt, 64, Form::VBlendvpd, &X86Selector::integer_extreme},
    // Amounts beyond the width give 0, or the sign, as the ops do.
    {Op::Shl, kInt, 8, Form::VPsllWi, &X86Selector::in_wider_lanes},
    {Op::Shl, kInt, 16, Form::VPsllvW},
    {Op::Shl, kInt, 16, Form::VPsllDi, &X86Selector::in_wider_lanes},
    {Op::Shl, kInt, 32, Form::VPsllvD},
    {Op::Shl, kInt, 64, Form::VPsllvQ},
    {Op::Shr, kInt, 8, Form::VPsrlWi, &X86Selector::in_wider_lanes},
    {Op::Shr, kUnsigned, 16, Form::VPsrlvW},
    {Op::Shr, kSigned, 16, Form::VPsravW},
    {Op::Shr, kInt, 16, Form::VPsrlDi, &X86Selector::in_wider_lanes},
    {Op::Shr, kUnsigned, 32, Form::VPsrlvD},
    {Op::Shr, kUnsigned, 64, Form::VPsrlvQ},
    {Op::Shr, kSigned, 32, Form::VPsravD},
    {Op::Shr, kSigned, 64, Form::VPsravQ},
    {Op::Shr, kSigned, 64, Form::VPsrlvQ, &X86Selector::arithmetic_shift},
};

const X86Selector::VectorForm* X86Selector::vector_form(Op op, DType d) const {
  const auto* row = std::find_if(std::begin(kVectorForms), std::end(kVectorForms), [&](auto& f) {
    return f.op == op && (f.kinds & kind_of(d)) != 0 && (f.bits == 0 || f.bits == bits(d)) &&
           usable(f.form);
  });
  return row == std::end(kVectorForms) || is_half(d) ? nullptr : row;
}

Reg X86Selector::part_op(const PartOp& p) {
  const VectorForm* row = vector_form(p.op, p.dtype);
  WEFT_CHECK(row, "{} on {} has no instruction; decompose should have replaced it",
             info(p.op).mnemonic, name(p.dtype));
  if (row->make) return (this->*row->make)(p, row->form);
  if (p.b != kNoReg) return vector_op(row->form, p.width, p.a, p.b);
  const Reg r = vector_of(p.width);
  emit(row->form, p.width, {r, p.a});
  return r;
}

// ---- more than one instruction

Reg X86Selector::rounded(const PartOp& p, Form form) {
  return shifted_by(form, p.width, p.a, p.op == Op::Rint ? kNearest : kTowardsZero);
}

Reg X86Selector::mantissa(const PartOp& p, Form form) {
  return shifted_by(form, p.width, p.a, kPositive);
}

Reg X86Selector::from_zero(const PartOp& p, Form form) {
  return vector_op(form, p.width, all_lanes(0, 64, p.width), p.a);
}

/// The sign of floats, all bits of integers.
Reg X86Selector::flipped(const PartOp& p, Form form) {
  const int width = bits(p.dtype);
  const uint64_t flip = p.op == Op::Not ? ~uint64_t{0} >> (64 - width) : uint64_t{1} << (width - 1);
  return vector_op(form, p.width, p.a, all_lanes(flip, width, p.width));
}

Reg X86Selector::fused(const PartOp& p, Form form) {
  const Reg r = vector_of(p.width);
  emit(Form::VMovaps, p.width, {r, p.c});
  emit(form, p.width, {r, p.a, p.b});
  return r;
}

Reg X86Selector::added_to_product(const PartOp& p, Form form) {
  const Reg product = vector_op(form, p.width, p.a, p.b);
  return part_op({Op::Add, p.dtype, p.width, product, p.c});
}

Reg X86Selector::multiplied_and_added(const PartOp& p, Form) {
  const Reg product = part_op({Op::Mul, p.dtype, p.width, p.a, p.b});
  return part_op({Op::Add, p.dtype, p.width, product, p.c});
}

/// max(b, a) is a where the two are equal or one is a NaN. Equal numbers differ in the sign of zero
/// alone: the bits of both decide, or the instruction that knows of signs.
Reg X86Selector::float_extreme(const PartOp& p, Form form) {
  const Reg a_first = vector_op(form, p.width, p.b, p.a);
  if (p.b_loses_ties) return a_first;
  const bool max = p.op == Op::Max;
  const Form range = of(p.dtype, Form::VRangePs, Form::VRangePd);
  Reg most = vector_of(p.width);
  if (usable(range))
    emit(range, p.width, {most, p.a, p.b}, max ? kLargest : kLeast);
  else
    most = bitwise(max ? Op::And : Op::Or, a_first, vector_op(form, p.width, p.a, p.b), p.width);
  const Reg nan = compared_floats(kUnordered, p.dtype, p.a, p.b, p.width);
  const Reg sum = part_op({Op::Add, p.dtype, p.width, p.a, p.b});
  return blended(nan, sum, most, bits(p.dtype), p.width);
}

Reg X86Selector::integer_extreme(const PartOp& p, Form) {
  const Reg less = compared(Op::Lt, p.dtype, p.a, p.b, p.width);
  const bool max = p.op == Op::Max;
  return blended(less, max ? p.b : p.a, max ? p.a : p.b, bits(p.dtype), p.width);
}

/// Of 64 bits, where `form` multiplies 32: low * low + ((high * low + low * high) << 32).
Reg X86Selector::product_of_halves(const PartOp& p, Form form) {
  const Reg a_high = shifted_by(Form::VPsrlQi, p.width, p.a, 32);
  const Reg b_high = shifted_by(Form::VPsrlQi, p.width, p.b, 32);
  const Reg cross = vector_op(Form::VPaddQ, p.width, vector_op(form, p.width, a_high, p.b),
                              vector_op(form, p.width, p.a, b_high));
  return vector_op(Form::VPaddQ, p.width, vector_op(form, p.width, p.a, p.b),
                   shifted_by(Form::VPsllQi, p.width, cross, 32));
}

/// Negative numbers are flipped around a logical shift.
Reg X86Selector::arithmetic_shift(const PartOp& p, Form form) {
  const Reg sign = compared(Op::Lt, p.dtype, p.a, all_lanes(0, 64, p.width), p.width);
  const Reg shifted = vector_op(form, p.width, bitwise(Op::Xor, p.a, sign, p.width), p.b);
  return bitwise(Op::Xor, shifted, sign, p.width);
}

/// In lanes of twice the width, once for the lower and once for the upper half of each.
Reg X86Selector::in_wider_lanes(const PartOp& p, Form) {
  const int half = bits(p.dtype), width = p.width;
  const bool from_bytes = half == 8;
  const DType wider = is_unsigned(p.dtype) ? (from_bytes ? DType::U16 : DType::U32)
                                           : (from_bytes ? DType::I16 : DType::I32);
  const Form up = from_bytes ? Form::VPsllWi : Form::VPsllDi;
  const Form down = from_bytes ? Form::VPsrlWi : Form::VPsrlDi;
  const uint64_t low_bits = (uint64_t{1} << half) - 1;
  const Reg lower = all_lanes(low_bits, 2 * half, width);
  const Reg upper = all_lanes(low_bits << half, 2 * half, width);
  auto op = [&](Reg a, Reg b) { return part_op({p.op, wider, width, a, b}); };
  auto in = [&](Reg a, Reg half_lanes) { return bitwise(Op::And, a, half_lanes, width); };
  const Reg b_high = shifted_by(down, width, p.b, half);
  Reg low, high;
  if (p.op == Op::Mul) {
    low = in(op(p.a, p.b), lower);
    high = shifted_by(up, width, op(shifted_by(down, width, p.a, half), b_high), half);
  } else if (p.op == Op::Shl) {
    low = in(op(p.a, in(p.b, lower)), lower);
    high = op(in(p.a, upper), b_high);
  } else {
    const Reg raised = shifted_by(up, width, p.a, half);  // with its own sign
    low = shifted_by(down, width, in(op(raised, in(p.b, lower)), upper), half);
    high = in(op(p.a, b_high), upper);
  }
  return bitwise(Op::Or, low, high, width);
}

// ---- whole vectors

X86Selector::Layout X86Selector::layout(int bits, int lanes) const {
  if (bits == 1) return {1, lanes, 64};
  const int total = lanes * bits, parts = std::max(1, total / register_bits_);
  return {parts, lanes / parts, std::max(128, total / parts)};
}

void X86Selector::set_vector(NodeRef n, Vector v) {
  vector_at_[n] = static_cast<uint32_t>(vectors_.size());
  vectors_.push_back(std::move(v));
}

Reg X86Selector::new_part(const Vector& like) {
  return like.bits == 1 ? mask() : vector_of(layout(like.bits, like.lanes).width);
}

void X86Selector::copy_parts(const Vector& to, const Vector& from) {
  for (size_t p = 0; p < to.parts.size(); ++p)
    emit(to.bits == 1 ? Form::KmovQ : Form::VMovaps, layout(to.bits, to.lanes).width,
         {to.parts[p], from.parts[p]});
}

Vector X86Selector::copy_of(const Vector& v) {
  Vector out{{}, v.bits, v.lanes};
  for (size_t p = 0; p < v.parts.size(); ++p) out.parts.push_back(new_part(v));
  copy_parts(out, v);
  return out;
}

void X86Selector::select_vector(NodeRef n) {
  switch (n->op) {
    case Op::Store: return vector_store(n);
    case Op::SetAcc: {
      const Vector to = vector(n->src(0));
      return copy_parts(
          to, is_bool(n->src(1)->dtype) ? mask_beside(n->src(1), to.bits) : vector(n->src(1)));
    }
    case Op::Acc:
    case Op::GetAcc: return set_vector(n, copy_of(Vector(vector(n->src(0)))));
    case Op::Load: return set_vector(n, vector_load(n));
    case Op::Splat: return set_vector(n, splat(n));
    case Op::Vec: return set_vector(n, vec(n));
    case Op::Trn: return set_vector(n, transposed(n));
    default: return set_vector(n, vector_value(n));
  }
}

Vector X86Selector::vector_value(NodeRef n) {
  const NodeRef first = n->src(0);
  // The bits of a bool are 0 or 1, but a vector of bools is a mask.
  const bool of_mask = is_bool(n->dtype) || is_bool(first->dtype);
  if (n->op == Op::Cast || (n->op == Op::Bitcast && of_mask)) {
    Vector converted = vector_cast(n);
    return converted.parts.empty() ? lane_by_lane(n) : converted;
  }
  if (n->op == Op::Bitcast) return vector(first);
  if (n->op == Op::Where) return vector_where(n);
  if (is_bool(first->dtype)) return mask_op(n);
  if (has_trait(n->op, kBoolResult)) return vector_comparison(n);
  if (n->op == Op::Add && n->src(0)->op == Op::Neg) return difference(n->src(1), n->src(0)->src(0));
  if (n->op == Op::Add && n->src(1)->op == Op::Neg) return difference(n->src(0), n->src(1)->src(0));
  if (n->op == Op::MulAcc && is_float(n->dtype)) return fused_vectors(n);
  if (Vector made = vector_pattern(n); !made.parts.empty()) return made;
  if (!vector_form(n->op, n->dtype)) return lane_by_lane(n);
  Vector out{{}, bits(n->dtype), n->lanes};
  auto part = [&](size_t operand, size_t p) {
    return operand < n->nsrc ? vector(n->src(operand)).parts[p] : kNoReg;
  };
  const Layout l = layout(out.bits, out.lanes);
  for (size_t p = 0; p < static_cast<size_t>(l.parts); ++p)
    out.parts.push_back(part_op({n->op, n->dtype, l.width, part(0, p), part(1, p), part(2, p),
                                 n->nsrc > 1 && loses_ties(n->op, n->src(1))}));
  return out;
}

/// a * b + c, where what is negated is taken off; the same but for the sign of a NaN.
Vector X86Selector::fused_vectors(NodeRef n) {
  using X = Form;
  static constexpr Form kForms[2][2][2] = {
      {{X::VFmadd231Ps, X::VFmadd231Pd}, {X::VFmsub231Ps, X::VFmsub231Pd}},
      {{X::VFnmadd231Ps, X::VFnmadd231Pd}, {X::VFnmsub231Ps, X::VFnmsub231Pd}}};
  NodeRef of[3];
  bool negated[3];
  for (size_t i = 0; i < 3; ++i) {
    negated[i] = n->src(i)->op == Op::Neg;
    of[i] = negated[i] ? n->src(i)->src(0) : n->src(i);
  }
  const Form form = kForms[negated[0] != negated[1]][negated[2]][bits(n->dtype) == 64];
  const Vector a = vector(of[0]), b = vector(of[1]), c = vector(of[2]);
  return part_by_part(n, [&](size_t p, int width) {
    return fused({n->op, n->dtype, width, a.parts[p], b.parts[p], c.parts[p]}, form);
  });
}

/// Exactly what adding the negation gives, but for the sign of a NaN.
Vector X86Selector::difference(NodeRef a, NodeRef b) {
  const Vector &x = vector(a), &y = vector(b);
  const Layout l = layout(x.bits, x.lanes);
  Vector out{{}, x.bits, x.lanes};
  for (size_t p = 0; p < x.parts.size(); ++p)
    out.parts.push_back(
        vector_op(usable_form(kSubtractions, a->dtype), l.width, x.parts[p], y.parts[p]));
  return out;
}

}  // namespace weft::codegen
