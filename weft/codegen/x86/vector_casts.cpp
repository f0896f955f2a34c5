// Conversions of vectors, in pieces that fill one register on the side of the wider elements.
#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

namespace {

constexpr DTypeSet set_of(std::initializer_list<DType> list) {
  DTypeSet set = 0;
  for (DType d : list) set |= dtype_bit(d);
  return set;
}
constexpr DTypeSet kI8 = set_of({DType::I8}), kI16 = set_of({DType::I16}),
                   kI32 = set_of({DType::I32}), kI64 = set_of({DType::I64});
constexpr DTypeSet kU8 = set_of({DType::U8}), kU16 = set_of({DType::U16}),
                   kU32 = set_of({DType::U32}), kU64 = set_of({DType::U64});
constexpr DTypeSet kF16 = set_of({DType::F16}), kBF16 = set_of({DType::BF16}),
                   kF32 = set_of({DType::F32}), kF64 = set_of({DType::F64});
constexpr DTypeSet k8 = kI8 | kU8, k16 = kI16 | kU16, k32 = kI32 | kU32, k64 = kI64 | kU64;

/// To this dtype from 32 bits, what is beyond its range to its ends.
constexpr std::pair<DType, Form> kSaturating[] = {{DType::I8, Form::VPmovsDb},
                                                  {DType::I16, Form::VPmovsDw},
                                                  {DType::U8, Form::VPmovusDb},
                                                  {DType::U16, Form::VPmovusDw}};

/// Conversions in two steps, of which the first is exact.
struct Detour {
  DTypeSet from, to;
  DType via;
};
constexpr Detour kDetours[] = {
    {k8 | k16, kF32 | kF64, DType::I32},
    {k8 | k16, kF16 | kBF16, DType::F32},
    {kF16, kBF16 | kF64 | k8 | k16 | k32 | k64, DType::F32},
    {kBF16, kF16 | kF64 | k8 | k16 | k32 | k64, DType::F32},
};

DType detour(DType from, DType to) {
  for (const Detour& d : kDetours)
    if ((d.from & dtype_bit(from)) != 0 && (d.to & dtype_bit(to)) != 0) return d.via;
  return DType::Void;
}

}  // namespace

/// One register's conversion: an instruction, or a function around it. The first row with an
/// instruction that this CPU has counts.
struct X86Selector::CastForm {
  DTypeSet from, to;
  Form form;
  Reg (X86Selector::*make)(const CastPart&, Form) = nullptr;
};

const X86Selector::CastForm X86Selector::kCastForms[] = {
    {kI32, kF32, Form::VCvtdq2ps},
    {kU32, kF32, Form::VCvtudq2ps},
    {kU32, kF32, Form::VCvtdq2ps, &X86Selector::from_u32},
    {kI32, kF64, Form::VCvtdq2pd},
    {kU32, kF64, Form::VCvtudq2pd},
    {kU32, kF64, Form::VPmovzxDq, &X86Selector::from_u32_to_double},
    {kI64, kF32, Form::VCvtqq2ps},
    {kU64, kF32, Form::VCvtuqq2ps},
    {kI64, kF64, Form::VCvtqq2pd},
    {kU64, kF64, Form::VCvtuqq2pd},
    {k64, kF64, Form::VSubPd, &X86Selector::from_64_bits},
    {kF32, kF64, Form::VCvtps2pd},
    {kF64, kF32, Form::VCvtpd2ps},
    {kF16, kF32, Form::VCvtph2ps},
    {kF32, kF16, Form::VCvtps2ph},
    {kBF16, kF32, Form::VPmovzxWd, &X86Selector::widened_bfloat},
    {kF32, kBF16, Form::VPsrlDi, &X86Selector::rounded_bfloat},
    {kF32, kU8 | kU16 | kU32, Form::VCvttps2udq, &X86Selector::to_unsigned},
    {kF64, kU8 | kU16 | kU32, Form::VCvttpd2udq, &X86Selector::to_unsigned},
    {kF32, kU64, Form::VCvttps2uqq, &X86Selector::to_unsigned},
    {kF64, kU64, Form::VCvttpd2uqq, &X86Selector::to_unsigned},
    {kF32, kI64, Form::VCvttps2qq, &X86Selector::to_integers},
    {kF64, kI64, Form::VCvttpd2qq, &X86Selector::to_integers},
    {kF32, k8 | k16 | kI32, Form::VCvttps2dq, &X86Selector::to_integers},
    {kF64, k8 | k16 | kI32, Form::VCvttpd2dq, &X86Selector::to_integers},
    {kI8, k16, Form::VPmovsxBw},
    {kI8, k32, Form::VPmovsxBd},
    {kI8, k64, Form::VPmovsxBq},
    {kI16, k32, Form::VPmovsxWd},
    {kI16, k64, Form::VPmovsxWq},
    {kI32, k64, Form::VPmovsxDq},
    {kU8, k16, Form::VPmovzxBw},
    {kU8, k32, Form::VPmovzxBd},
    {kU8, k64, Form::VPmovzxBq},
    {kU16, k32, Form::VPmovzxWd},
    {kU16, k64, Form::VPmovzxWq},
    {kU32, k64, Form::VPmovzxDq},
    {k16, k8, Form::VPmovWb},
    {k32, k8, Form::VPmovDb},
    {k32, k16, Form::VPmovDw},
    {k64, k8, Form::VPmovQb},
    {k64, k16, Form::VPmovQw},
    {k64, k32, Form::VPmovQd},
    {k16 | k32 | k64, k8 | k16 | k32, Form::VPshufB, &X86Selector::narrowed},
};

const X86Selector::CastForm* X86Selector::cast_form(DType from, DType to) const {
  const auto* row = std::find_if(std::begin(kCastForms), std::end(kCastForms), [&](auto& f) {
    return (f.from & dtype_bit(from)) != 0 && (f.to & dtype_bit(to)) != 0 && usable(f.form);
  });
  return row == std::end(kCastForms) ? nullptr : row;
}

Reg X86Selector::cast_part(const CastPart& c) {
  const CastForm* row = cast_form(c.from, c.to);
  WEFT_CHECK(row, "no instruction from {} to {}", name(c.from), name(c.to));
  if (row->make) return (this->*row->make)(c, row->form);
  const Reg r = vector_of(c.width_of(c.to));
  emit(row->form, c.width(), {r, c.x});
  return r;
}

// ---- whole vectors

Vector X86Selector::vector_cast(NodeRef n) {
  const DType from = n->src(0)->dtype, to = n->dtype;
  const int lanes = n->lanes;
  if (from == to) return vector(n->src(0));
  // In memory a bool is the byte it becomes.
  if (is_bool(from) && bits(to) == 8 && may_read_again(n->src(0)))
    return load_vector(DType::U8, lanes, address_of(n->src(0)->src(0), n->src(0)->src(1)));
  if (is_bool(from))
    return {mask_to_numbers(mask_beside(n->src(0), bits(to)), to), bits(to), lanes};
  const Parts x = vector(n->src(0)).parts;
  if (is_bool(to)) return numbers_to_mask(x, from, lanes);
  const bool was_int = n->src(0)->op == Op::Cast && is_int(n->src(0)->src(0)->dtype);
  return {converted(x, from, to, lanes, is_int(from) || was_int), bits(to), lanes};
}

Parts X86Selector::converted(const Parts& x, DType from, DType to, int lanes, bool whole) {
  if (is_int(from) && is_int(to) && bits(from) == bits(to)) return x;
  if (const DType via = detour(from, to); via != DType::Void)
    return converted(converted(x, from, via, lanes), via, to, lanes, whole);
  if (!cast_form(from, to)) return {};
  const int each = layout(bits(to), lanes).per_part;
  const int step = std::min(each, layout(bits(from), lanes).per_part);
  Parts out;
  for (int first = 0; first < lanes; first += each) {
    Parts pieces;
    for (int at = first; at < first + each; at += step)
      pieces.push_back(cast_part({piece(x, bits(from), lanes, at, step), from, to, step, whole}));
    out.push_back(joined(std::move(pieces), step * bits(to)));
  }
  return out;
}

Vector X86Selector::numbers_to_mask(const Parts& x, DType from, int lanes) {
  if (is_half(from))
    return numbers_to_mask(converted(x, from, DType::F32, lanes), DType::F32, lanes);
  Parts masks;
  for (Reg part : x) masks.push_back(is_not_zero(from, part, layout(bits(from), lanes).width));
  return mask_of_parts(masks, bits(from), lanes);
}

// ---- more than one instruction

Reg X86Selector::widened_bfloat(const CastPart& c, Form widen) {
  const Reg wide = vector_of(c.width());
  emit(widen, c.width(), {wide, c.x});
  return shifted_by(Form::VPsllDi, c.width(), wide, 16);
}

/// As float_to_bfloat, in all lanes. The instruction for it takes subnormal numbers for 0 (Intel's
/// manual, volume 2, VCVTNEPS2BF16).
Reg X86Selector::rounded_bfloat(const CastPart& c, Form down) {
  const int width = c.width();
  if (c.whole && usable(Form::VCvtneps2bf16)) {
    const Reg r = vector_of(c.width_of(DType::BF16));
    emit(Form::VCvtneps2bf16, width, {r, c.x});
    return r;
  }
  auto constant = [&](uint64_t bits) { return all_lanes(bits, 32, width); };
  const Reg upper = shifted_by(down, width, c.x, 16);
  const Reg even = bitwise(Op::And, upper, constant(1), width);
  const Reg sum =
      vector_op(Form::VPaddD, width, vector_op(Form::VPaddD, width, c.x, even), constant(0x7fff));
  const Reg quiet = bitwise(Op::Or, upper, constant(0x40), width);
  const Reg nan = compared_floats(kUnordered, DType::F32, c.x, c.x, width);
  const Reg r = blended(nan, quiet, shifted_by(down, width, sum, 16), 32, width);
  return cast_part({r, DType::U32, DType::U16, c.lanes});
}

/// Without AVX-512: each half of a 128-bit lane to its front, then the halves together.
Reg X86Selector::narrowed(const CastPart& c, Form shuffle) {
  int from = bits(c.from);
  const int to = bits(c.to);
  // The lowest `narrow` bits of every element of `wide`; zeros behind them.
  auto picks = [this](int wide, int narrow) {
    std::vector<uint8_t> bytes(16, 0x80);
    for (int k = 0; k < 128 * narrow / wide / 8; ++k)
      bytes[static_cast<size_t>(k)] =
          static_cast<uint8_t>(k / (narrow / 8) * (wide / 8) + k % (narrow / 8));
    return data_constant(std::move(bytes));
  };
  Reg x = c.x;
  if (from * c.lanes == 256) {
    const Reg order = vector_of(256);
    emit(make(Form::VBroadcastI128, 256, {order}, picks(from, from / 2)));
    x = shifted_by(Form::VPermQi, 256, vector_op(shuffle, 256, x, order), 8);  // quarters 0 and 2
    from /= 2;
  }
  if (from == to) return x;
  const Reg r = vector_of(128);
  emit(make(shuffle, 128, {r, x}, picks(from, to)));
  return r;
}

/// upper half * 2^16 + lower half, rounded once.
Reg X86Selector::from_u32(const CastPart& c, Form convert) {
  const int width = c.width();
  auto converted_half = [&](Reg half) {
    const Reg r = vector_of(width);
    emit(convert, width, {r, half});
    return r;
  };
  const Reg upper = converted_half(shifted_by(Form::VPsrlDi, width, c.x, 16));
  const Reg lower = converted_half(bitwise(Op::And, c.x, all_lanes(0xffff, 32, width), width));
  const Reg scale = all_lanes(std::bit_cast<uint32_t>(0x1p16f), 32, width);
  return part_op({Op::MulAcc, DType::F32, width, upper, scale, lower});
}

/// As the low bits of 2^52, which is then taken off.
Reg X86Selector::from_u32_to_double(const CastPart& c, Form widen) {
  const int width = c.width();
  const Reg wide = vector_of(width), base = all_lanes(std::bit_cast<uint64_t>(0x1p52), 64, width);
  emit(widen, width, {wide, c.x});
  return vector_op(Form::VSubPd, width, bitwise(Op::Or, wide, base, width), base);
}

/// The upper half as the low bits of 2^84, the lower as those of 2^52: their sum less both is
/// rounded once. Signed halves are first moved up by 2^31.
Reg X86Selector::from_64_bits(const CastPart& c, Form subtract) {
  const int width = c.width();
  const bool is_signed = is_signed_int(c.from);
  const double bias = is_signed ? 0x1p63 : 0;
  auto number = [&](double v) { return all_lanes(std::bit_cast<uint64_t>(v), 64, width); };
  Reg upper = shifted_by(Form::VPsrlQi, width, c.x, 32);
  if (is_signed) upper = bitwise(Op::Xor, upper, all_lanes(0x80000000, 64, width), width);
  upper = bitwise(Op::Or, upper, number(0x1p84), width);
  const Reg lower = bitwise(Op::Or, bitwise(Op::And, c.x, all_lanes(0xffffffff, 64, width), width),
                            number(0x1p52), width);
  const Reg exact = vector_op(subtract, width, upper, number(0x1p84 + 0x1p52 + bias));
  return vector_op(Form::VAddPd, width, exact, lower);
}

/// From 32 bits to fewer, what is beyond their range to its ends; without AVX-512 nothing is.
Reg X86Selector::saturated(const CastPart& c, Reg x) {
  if (!wide_) return cast_part({x, DType::I32, c.to, c.lanes});
  const Reg r = vector_of(c.width_of(c.to));
  emit(usable_form(kSaturating, c.to), c.width_of(DType::I32), {r, x});
  return r;
}

/// Saturating, NaN to 0. What a conversion has no number for becomes the least one, as is right for
/// what is below; a mask leaves 0 for NaN.
Reg X86Selector::to_integers(const CastPart& c, Form convert) {
  const int width = c.width_of(c.from);
  const bool narrow = bits(c.to) < 32;
  const DType made = bits(c.to) == 64 ? DType::I64 : DType::I32;
  const int made_width = c.width_of(made);
  auto number = [&](double v) {
    const uint64_t raw = c.from == DType::F64 ? std::bit_cast<uint64_t>(v)
                                              : std::bit_cast<uint32_t>(static_cast<float>(v));
    return all_lanes(raw, bits(c.from), width);
  };
  const Reg ordered = compared_floats(kOrdered, c.from, c.x, c.x, width);
  Reg x = wide_ ? c.x : kept(ordered, c.x, bits(c.from), width);
  const bool has_largest = narrow || (c.from == DType::F64 && made == DType::I32);  // as a float
  if (has_largest)
    x = vector_op(of(c.from, Form::VMinPs, Form::VMinPd), width, x,
                  number(static_cast<double>(int_max(c.to))));
  if (narrow && !wide_)
    x = vector_op(of(c.from, Form::VMaxPs, Form::VMaxPd), width, x,
                  number(static_cast<double>(int_min(c.to))));
  Instruction conversion = make(convert, std::max(width, made_width), {vector_of(made_width), x});
  if (wide_) conversion.mask = ordered, conversion.zeroing = true;
  emit(conversion);
  const Reg r = conversion.regs[0];
  if (narrow) return saturated(c, r);
  if (has_largest) return r;
  const Reg beyond =
      compared_floats(kFloatGe, c.from, x, number(std::ldexp(1.0, bits(made) - 1)), width);
  return blended(beyond, all_lanes(int_max(made), bits(made), made_width), r, bits(made),
                 made_width);
}

/// The same with conversions to unsigned numbers, which give the largest for what is above.
Reg X86Selector::to_unsigned(const CastPart& c, Form convert) {
  const int width = c.width_of(c.from);
  const DType made = bits(c.to) == 64 ? DType::U64 : DType::U32;
  // Of NaN and a number the instruction takes its second operand.
  const Reg x =
      vector_op(of(c.from, Form::VMaxPs, Form::VMaxPd), width, c.x, all_lanes(0, 64, width));
  const Reg r = vector_of(c.width_of(made));
  emit(convert, std::max(width, c.width_of(made)), {r, x});
  return bits(c.to) < 32 ? saturated(c, r) : r;
}

}  // namespace weft::codegen
