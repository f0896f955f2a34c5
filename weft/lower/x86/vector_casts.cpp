// Conversions of vectors that fill one register on both sides; others go lane by lane.
#include <algorithm>
#include <bit>

#include "weft/lower/x86/selector.h"

namespace weft::lower {

using namespace x86;

namespace {

constexpr int64_t kOrdered = 7, kFloatNe = 4, kFloatGe = 0x1d, kUnordered = 3;

int width_for(int bits, int lanes) { return std::max(128, bits * lanes); }

}  // namespace

Parts X86Selector::vector_cast(NodeRef n) {
  const DType from = n->src(0)->dtype, to = n->dtype;
  const int lanes = n->lanes;
  if (from == to) return parts(n->src(0));
  if (is_bool(from)) {
    if (layout(to, lanes).parts != 1 || is_half_float(to)) return {};
    return {mask_to_vector(parts(n->src(0))[0], to, lanes)};
  }
  if (layout(from, lanes).parts != 1 || layout(to, lanes).parts != 1) return {};
  const Reg r = cast_part(parts(n->src(0))[0], from, to, lanes);
  return r == kNoReg ? Parts{} : Parts{r};
}

/// kNoReg where it takes more than a few instructions.
Reg X86Selector::cast_part(Reg x, DType from, DType to, int lanes) {
  auto convert = [&](Form form, int wider) {
    const int width = width_for(wider, lanes);
    const Reg r = vector_of(width);
    emit(form, width, {r, x});
    return r;
  };
  if (is_int(from) && is_int(to)) {
    if (bits(from) == bits(to)) return x;
    return bits(from) < bits(to) ? widened(x, from, bits(to), lanes)
                                 : narrowed(x, bits(from), bits(to), lanes);
  }
  if (is_int(from) && in_vector(to)) {
    if (bits(from) < 32) return cast_part(widened(x, from, 32, lanes), DType::I32, to, lanes);
    if (width_for(std::max(bits(from), bits(to)), lanes) > 512) return kNoReg;
    const bool s = is_signed_int(from);
    if (bits(from) == 32)
      return to == DType::F32 ? convert(s ? Form::VCvtdq2ps : Form::VCvtudq2ps, 32)
                              : convert(s ? Form::VCvtdq2pd : Form::VCvtudq2pd, 64);
    return to == DType::F32 ? convert(s ? Form::VCvtqq2ps : Form::VCvtuqq2ps, 64)
                            : convert(s ? Form::VCvtqq2pd : Form::VCvtuqq2pd, 64);
  }
  if (from == DType::F32 && to == DType::F64) return convert(Form::VCvtps2pd, 64);
  if (from == DType::F64 && to == DType::F32) return convert(Form::VCvtpd2ps, 64);
  if (from == DType::F16 && to == DType::F32) return convert(Form::VCvtph2ps, 32);
  if (from == DType::BF16 && to == DType::F32) {
    const Reg wide = convert(Form::VPmovzxWd, 32), r = vector_of(width_for(32, lanes));
    emit(Form::VPsllDi, width_for(32, lanes), {r, wide}, 16);
    return r;
  }
  if (from == DType::F32 && to == DType::F16) {
    const int width = width_for(32, lanes);
    const Reg r = vector_of(width);
    emit(Form::VCvtps2ph, width, {r, x}, 0);
    return r;
  }
  if (from == DType::F32 && to == DType::BF16) return floats_to_bfloats(x, lanes);
  if (in_vector(from) && (is_int(to) || is_bool(to))) return floats_to_integers(x, from, to, lanes);
  if (is_int(from) && is_bool(to)) {
    const Form form = bits(from) == 8    ? Form::VPtestmB
                      : bits(from) == 16 ? Form::VPtestmW
                      : bits(from) == 32 ? Form::VPtestmD
                                         : Form::VPtestmQ;
    const Reg m = mask();
    emit(form, width_for(bits(from), lanes), {m, x, x});
    return m;
  }
  return kNoReg;
}

Reg X86Selector::widened(Reg x, DType from, int to, int lanes) {
  const bool s = is_signed_int(from);
  Form form = s ? Form::VPmovsxDq : Form::VPmovzxDq;
  if (bits(from) == 8)
    form = to == 16   ? (s ? Form::VPmovsxBw : Form::VPmovzxBw)
           : to == 32 ? (s ? Form::VPmovsxBd : Form::VPmovzxBd)
                      : (s ? Form::VPmovsxBq : Form::VPmovzxBq);
  else if (bits(from) == 16)
    form = to == 32 ? (s ? Form::VPmovsxWd : Form::VPmovzxWd)
                    : (s ? Form::VPmovsxWq : Form::VPmovzxWq);
  const int width = width_for(to, lanes);
  const Reg r = vector_of(width);
  emit(form, width, {r, x});
  return r;
}

Reg X86Selector::narrowed(Reg x, int from, int to, int lanes) {
  const Form form = from == 16   ? Form::VPmovWb
                    : from == 32 ? (to == 8 ? Form::VPmovDb : Form::VPmovDw)
                    : to == 8    ? Form::VPmovQb
                    : to == 16   ? Form::VPmovQw
                                 : Form::VPmovQd;
  const Reg r = vector_of(std::max(128, to * lanes));
  emit(form, width_for(from, lanes), {r, x});
  return r;
}

/// 1 where the mask's bit is set, else 0.
Reg X86Selector::mask_to_vector(Reg chosen, DType to, int lanes) {
  const int width = width_for(bits(to), lanes);
  const uint64_t one = to == DType::F32 ? 0x3f800000 : to == DType::F64 ? 0x3ff0000000000000 : 1;
  const Form form = bits(to) == 8    ? Form::VMovdquB
                    : bits(to) == 16 ? Form::VMovdquW
                    : bits(to) == 32 ? Form::VMovups
                                     : Form::VMovupd;
  Instruction keep = make(form, width, {vector_of(width), all_lanes(one, bits(to), width)});
  keep.mask = chosen;
  keep.zeroing = true;
  emit(keep);
  return keep.regs[0];
}

/// As float_to_bfloat, in all lanes.
Reg X86Selector::floats_to_bfloats(Reg x, int lanes) {
  const int width = width_for(32, lanes);
  auto step = [&](Form form, Reg a, Reg b) {
    const Reg r = vector_of(width);
    emit(form, width, {r, a, b});
    return r;
  };
  const Reg upper = vector_of(width), rounded = vector_of(width), nan = mask();
  emit(Form::VPsrlDi, width, {upper, x}, 16);
  const Reg even = step(Form::VPandD, upper, all_lanes(1, 32, width));
  const Reg sum = step(Form::VPaddD, step(Form::VPaddD, x, even), all_lanes(0x7fff, 32, width));
  emit(Form::VPsrlDi, width, {rounded, sum}, 16);
  const Reg quiet = step(Form::VPorD, upper, all_lanes(0x40, 32, width));
  emit(Form::VCmpPsK, width, {nan, x, x}, kUnordered);
  Instruction choose = make(Form::VPblendmD, width, {vector_of(width), rounded, quiet});
  choose.mask = nan;
  emit(choose);
  return narrowed(choose.regs[0], 32, 16, lanes);
}

/// f32 to integers of at most 32 bits, f64 to i32; saturating, NaN to 0.
Reg X86Selector::floats_to_integers(Reg x, DType from, DType to, int lanes) {
  const int width = width_for(bits(from), lanes);
  const Form compare = of(from, Form::VCmpPsK, Form::VCmpPdK);
  const auto raw = [from](double v) {
    return from == DType::F32 ? std::bit_cast<uint32_t>(static_cast<float>(v))
                              : std::bit_cast<uint64_t>(v);
  };
  if (is_bool(to)) {
    const Reg m = mask();
    emit(compare, width, {m, x, all_lanes(0, 64, width)}, kFloatNe);
    return m;
  }
  if (from != DType::F32 || bits(to) > 32 || to == DType::U32) return kNoReg;
  Instruction keep = make(Form::VMovups, width, {vector_of(width), x});
  keep.mask = mask();
  keep.zeroing = true;
  emit(compare, width, {keep.mask, x, x}, kOrdered);
  emit(keep);
  auto clamp = [&](Form form, double limit) {
    const Reg r = vector_of(width);
    emit(form, width, {r, keep.regs[0], all_lanes(raw(limit), 32, width)});
    keep.regs[0] = r;
  };
  clamp(Form::VMaxPs, static_cast<double>(int_min(to)));
  if (bits(to) < 32) clamp(Form::VMinPs, static_cast<double>(int_max(to)));
  const Reg r = vector_of(width);
  emit(Form::VCvttps2dq, width, {r, keep.regs[0]});
  if (bits(to) < 32) return narrowed(r, 32, bits(to), lanes);
  // From 2^31 on the conversion gives the least integer instead of the largest.
  Instruction most =
      make(Form::VPblendmD, width, {vector_of(width), r, all_lanes(INT32_MAX, 32, width)});
  most.mask = mask();
  emit(compare, width, {most.mask, keep.regs[0], all_lanes(raw(0x1p31), 32, width)}, kFloatGe);
  emit(most);
  return most.regs[0];
}

}  // namespace weft::lower
