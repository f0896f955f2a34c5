// Conversions of one lane. What the machine does outside the target's range is never relied on.
#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

namespace {

constexpr double kTwo63 = 0x1p63, kTwo64 = 0x1p64;

}  // namespace

Reg X86Selector::cast(NodeRef n) {
  const DType from = n->src(0)->dtype, to = n->dtype;
  const Reg r = value(n->src(0));
  if (from == to) return r;
  if (is_half(from)) {
    const Reg x = to_float(r, from, DType::F32);
    if (to == DType::F32) return x;
    if (in_vector(to)) return to_float(x, DType::F32, to);
    return is_half(to) ? to_half(x, DType::F32, to) : float_to_integer(x, DType::F32, to);
  }
  if (in_vector(to)) return to_float(r, from, to);
  if (is_half(to)) return to_half(r, from, to);
  if (in_vector(from)) return float_to_integer(r, from, to);
  if (is_bool(to)) {
    emit(Form::Test, 64, {r, r});
    return set_if(kNotEqual);
  }
  const NodeRef x = n->src(0);
  const bool same = x->vmin >= 0 && x->vmax <= static_cast<int64_t>(int_max(to) & INT64_MAX);
  return same ? r : extended(r, to);
}

/// Bits of half floats have no sign to extend.
Reg X86Selector::bitcast(NodeRef n) {
  const DType from = n->src(0)->dtype, to = n->dtype;
  const Reg r = value(n->src(0));
  if (is_bool(to)) return cast(n);
  if (in_vector(from) == in_vector(to))
    return in_vector(to) ? r : extended(r, is_half(to) ? DType::U16 : to);
  if (in_vector(to)) return bits_to_vector(r, to);
  return extended(vector_to_bits(r, from), to);
}

// ---- to f32 and f64

Reg X86Selector::to_float(Reg r, DType from, DType to) {
  const Reg x = scalar();
  if (from == DType::BF16) return bits_to_vector(with_immediate(Form::ShlI, r, 16), DType::F32);
  if (from == DType::F16) {
    emit(Form::VCvtph2ps, 128, {x, bits_to_vector(r, DType::F32)});
    return x;
  }
  if (!in_vector(from)) return integer_to_float(r, from, to);
  return scalar_op(to == DType::F64 ? Form::VCvtss2sd : Form::VCvtsd2ss, r, r);
}

Reg X86Selector::integer_to_float(Reg r, DType from, DType to) {
  const bool is_u64 = from == DType::U64;
  if (is_u64 && !usable(Form::VCvtusi2sdQ)) return unsigned_to_float(r, to);
  const Reg x = scalar(), zero = float_constant(0, to);  // its upper lanes are copied
  emit(is_u64 ? of(to, Form::VCvtusi2ssQ, Form::VCvtusi2sdQ)
              : of(to, Form::VCvtsi2ssQ, Form::VCvtsi2sdQ),
       128, {x, zero, r});
  return x;
}

/// Above INT64_MAX half of it is converted, with the bit that is lost kept for rounding, and
/// doubled.
Reg X86Selector::unsigned_to_float(Reg r, DType to) {
  const Reg half =
      two_address(Form::Or, with_immediate(Form::ShrI, r, 1), with_immediate(Form::AndI, r, 1));
  const Reg chosen = copied(r);
  emit(Form::Test, 64, {r, r});
  move_if(kLess, chosen, half);
  const Reg x = integer_to_float(chosen, DType::I64, to);
  const Reg twice = scalar_op(of(to, Form::VAddSs, Form::VAddSd), x, x);
  const Reg sign = with_immediate(Form::SarI, r, 63);
  return blended(bits_to_vector(sign, DType::F64), twice, x, bits(to), 128);
}

// ---- from f32 and f64: towards zero, saturating, NaN to 0

Reg X86Selector::float_to_integer(Reg x, DType from, DType to) {
  if (from == DType::F32) x = to_float(x, from, DType::F64);  // exact
  if (is_bool(to)) {
    emit(Form::VUcomisd, 128, {x, float_constant(0, DType::F64)});
    const Reg parity = set_if(kParity), differs = set_if(kNotEqual);
    return two_address(Form::Or, parity, differs);
  }
  x = kept(compared_floats(kOrdered, DType::F64, x, x, 128), x, 64, 128);
  if (to == DType::I64) return double_to_i64(x);
  if (to == DType::U64) return double_to_u64(x);
  return double_to_narrow(x, to);
}

Reg X86Selector::double_to_narrow(Reg x, DType to) {
  const double least = static_cast<double>(int_min(to)), most = static_cast<double>(int_max(to));
  x = scalar_op(Form::VMaxSd, x, float_constant(least, DType::F64));
  x = scalar_op(Form::VMinSd, x, float_constant(most, DType::F64));
  const Reg r = general();
  emit(Form::VCvttsd2siQ, 128, {r, x});
  return r;
}

/// Below its range the conversion gives INT64_MIN, which is right; above it, too, which is not.
Reg X86Selector::double_to_i64(Reg x) {
  const Reg r = general(), most = integer(INT64_MAX), limit = float_constant(kTwo63, DType::F64);
  emit(Form::VCvttsd2siQ, 128, {r, x});
  emit(Form::VUcomisd, 128, {x, limit});
  move_if(kAboveEqual, r, most);
  return r;
}

/// From 2^63 on the first conversion gives the sign bit alone, and the second what is above it.
Reg X86Selector::double_to_u64(Reg x) {
  x = scalar_op(Form::VMaxSd, x, float_constant(0, DType::F64));
  const Reg low = general(), high = general(), most = integer(-1);
  const Reg limit = float_constant(kTwo64, DType::F64);
  emit(Form::VCvttsd2siQ, 128, {low, x});
  emit(Form::VCvttsd2siQ, 128,
       {high, scalar_op(Form::VSubSd, x, float_constant(kTwo63, DType::F64))});
  const Reg above = two_address(Form::And, high, with_immediate(Form::SarI, low, 63));
  const Reg r = two_address(Form::Or, low, above);
  emit(Form::VUcomisd, 128, {x, limit});
  move_if(kAboveEqual, r, most);
  return r;
}

// ---- to f16 and bf16

/// Through f32, rounded so that rounding once more is as if from the original.
Reg X86Selector::to_half(Reg r, DType from, DType to) {
  if (from == DType::F32) return float_to_half(r, to);
  if (from != DType::F64) {
    if (bits(from) == 64) r = sticky(r, from);
    r = integer_to_float(r, from, DType::F64);
  }
  return float_to_half(rounded_to_odd(r), to);
}

Reg X86Selector::float_to_half(Reg x, DType to) {
  if (to == DType::BF16) return float_to_bfloat(x);
  const Reg h = scalar();
  emit(Form::VCvtps2ph, 128, {h, x}, 0);  // to nearest even
  return extended(vector_to_bits(h, DType::F32), DType::U16);
}

/// To nearest even by integer arithmetic; NaN stays NaN, made quiet.
Reg X86Selector::float_to_bfloat(Reg x) {
  const Reg u = vector_to_bits(x, DType::F32), upper = with_immediate(Form::ShrI, u, 16);
  const Reg even = with_immediate(Form::AndI, upper, 1);
  Reg r = with_immediate(Form::AddI, two_address(Form::Add, u, even), 0x7fff);
  r = with_immediate(Form::ShrI, r, 16);
  const Reg quiet = with_immediate(Form::OrI, upper, 0x40);
  emit(of(DType::F32, Form::VUcomiss, Form::VUcomisd), 128, {x, x});
  move_if(kParity, r, quiet);
  return extended(r, DType::U16);
}

/// f64 to f32: what is not exact gets an odd last bit, between the two neighbours.
Reg X86Selector::rounded_to_odd(Reg x) {
  const Reg f = to_float(x, DType::F64, DType::F32), back = to_float(f, DType::F32, DType::F64);
  auto magnitude = [this](Reg d) {
    return with_immediate(Form::ShlI, vector_to_bits(d, DType::F64), 1);
  };
  const Reg u = vector_to_bits(f, DType::F32), nearer = with_immediate(Form::SubI, u, 1);
  const Reg far = magnitude(back), near = magnitude(x);
  const Reg down = copied(u);
  emit(Form::Cmp, 64, {far, near});
  move_if(kAbove, down, nearer);
  const Reg odd = with_immediate(Form::OrI, down, 1), r = copied(u);
  emit(Form::VUcomisd, 128, {back, x});
  move_if(kNotEqual, r, odd);
  emit(Form::VUcomisd, 128, {x, x});
  move_if(kParity, r, u);
  return bits_to_vector(r, DType::F32);
}

/// An integer beyond 2^53, whose low 12 bits f64 may round away, has the lowest kept bit set if any
/// of them is.
Reg X86Selector::sticky(Reg r, DType from) {
  const Reg low = with_immediate(Form::AndI, r, 0xfff);
  const Reg rounded = with_immediate(Form::AndI, r, -0x1000);
  const Reg marked = with_immediate(Form::OrI, rounded, 0x1000);
  const Reg kept = copied(rounded);
  emit(Form::Test, 64, {low, low});
  move_if(kNotEqual, kept, marked);
  // |r| > 2^53; of u64 without the sign.
  Reg distance = r;
  if (from == DType::I64) distance = two_address(Form::Add, r, integer(int64_t{1} << 53));
  const Reg limit = integer(int64_t{1} << (from == DType::I64 ? 54 : 53)), out = copied(r);
  emit(Form::Cmp, 64, {distance, limit});
  move_if(kAbove, out, kept);
  return out;
}

}  // namespace weft::codegen
