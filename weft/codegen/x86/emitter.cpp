#include "weft/codegen/x86/emitter.h"

#include <algorithm>
#include <bit>

#include "weft/base/error.h"

namespace weft::codegen {

using namespace x86;

bool X86Emitter::usable(Form form) const {
  const Description& d = describe(form);
  return wide_ ? d.has_evex && cpu_.has(d.evex) : d.has_vex && cpu_.has(d.vex);
}

// ---- control

void X86Emitter::jump(Form form, int32_t label, int64_t condition) {
  Instruction i = make(form, 0, {}, condition);
  i.label = label;
  emit(i);
}

void X86Emitter::place(int32_t label) { emit(Instruction{.form = kLabel, .label = label}); }

// ---- general registers

void X86Emitter::copy(Reg to, Reg from, DType dtype) {
  if (in_vector(dtype))
    emit(Form::VMovaps, 128, {to, from});
  else
    emit(Form::Mov, 64, {to, from});
}

Reg X86Emitter::copied(Reg from) {
  const Reg r = general();
  emit(Form::Mov, 64, {r, from});
  return r;
}

Reg X86Emitter::two_address(Form form, Reg a, Reg b) {
  const Reg r = copied(a);
  emit(form, 64, {r, b});
  return r;
}

Reg X86Emitter::with_immediate(Form form, Reg a, int64_t immediate) {
  const Reg r = copied(a);
  emit(form, 64, {r}, immediate);
  return r;
}

Reg X86Emitter::integer(int64_t v) {
  const Reg r = general();
  if (v >= 0 && v <= UINT32_MAX)
    emit(Form::MovI32, 32, {r}, v);
  else if (v >= INT32_MIN && v < 0)
    emit(Form::MovI, 64, {r}, v);
  else
    emit(Form::MovI64, 64, {r}, v);
  return r;
}

Reg X86Emitter::set_if(Condition condition) {
  const Reg low = general(), r = general();
  emit(Form::Setcc, 8, {kNoReg, low}, condition);
  emit(Form::MovzxB, 32, {r, low});
  return r;
}

void X86Emitter::move_if(Condition condition, Reg to, Reg from) {
  emit(Form::Cmovcc, 64, {kNoReg, to, from}, condition);
}

// ---- vector registers

Reg X86Emitter::vector_op(Form form, int width, Reg a, Reg b) {
  const Reg r = vector_of(width);
  emit(form, width, {r, a, b});
  return r;
}

Reg X86Emitter::scalar_op(Form form, Reg a, Reg b) { return vector_op(form, 128, a, b); }

Reg X86Emitter::shifted_by(Form form, int width, Reg x, int amount) {
  const Reg r = vector_of(width);
  emit(form, width, {r, x}, amount);
  return r;
}

Reg X86Emitter::float_constant(double value, DType dtype) {
  const Reg r = scalar();
  const uint64_t raw = dtype == DType::F32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                           : std::bit_cast<uint64_t>(value);
  emit(make(of(dtype, Form::VMovss, Form::VMovsd), 128, {r}, pattern(raw, bits(dtype))));
  return r;
}

Reg X86Emitter::bits_to_vector(Reg r, DType dtype) {
  const Reg x = scalar();
  emit(of(dtype, Form::VMovdTo, Form::VMovqTo), 128, {x, r});
  return x;
}

Reg X86Emitter::vector_to_bits(Reg x, DType dtype) {
  const Reg r = general();
  emit(of(dtype, Form::VMovdFrom, Form::VMovqFrom), 128, {r, x});
  return r;
}

Reg X86Emitter::all_lanes(uint64_t bits, int element_bits, int width) {
  return made_once(Form::VPbroadcastQ, width, pattern(bits, element_bits));
}

Reg X86Emitter::all_blocks(std::vector<uint8_t> bytes, int width) {
  const Form spread = wide_ ? Form::VBroadcastI32x4 : Form::VBroadcastI128;
  return made_once(width == 128 ? Form::VMovups : spread, width, data_constant(std::move(bytes)));
}

Reg X86Emitter::all_bytes(std::vector<uint8_t> bytes, int width) {
  return made_once(Form::VMovups, width, data_constant(std::move(bytes)));
}

Reg X86Emitter::made_once(Form form, int width, const Address& from) {
  const auto [known, added] = made_once_.try_emplace({from.label, width}, kNoReg);
  if (added) {
    known->second = vector_of(width);
    first_.push_back(make(form, width, {known->second}, from));
  }
  return known->second;
}

MachineProgram X86Emitter::finish(size_t entry_end) {
  out_.code.insert(out_.code.begin() + static_cast<ptrdiff_t>(entry_end), first_.begin(),
                   first_.end());
  return std::move(out_);
}

// ---- memory

Address X86Emitter::data_constant(std::vector<uint8_t> bytes) {
  const auto [at, added] = constants_.try_emplace(bytes, out_.labels);
  if (added) out_.data.push_back({new_label(), std::move(bytes)});
  return {.label = at->second};
}

Address X86Emitter::pattern(uint64_t bits, int width) {
  std::vector<uint8_t> bytes(16);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(bits >> (8 * i % static_cast<size_t>(width)));
  return data_constant(std::move(bytes));
}

Address X86Emitter::scratch(int bytes) {
  const int32_t at = scratch_top_;
  scratch_top_ += (bytes + 63) / 64 * 64;
  out_.frame_bytes = std::max(out_.frame_bytes, scratch_top_);
  return {.base = kRsp, .displacement = at};
}

Reg X86Emitter::load_scalar(DType dtype, const Address& from) {
  const Reg to = fresh(dtype);
  load_scalar_into(to, dtype, from);
  return to;
}

void X86Emitter::load_scalar_into(Reg to, DType dtype, const Address& from) {
  const bool is_signed = is_signed_int(dtype);
  if (in_vector(dtype))
    emit(make(of(dtype, Form::VMovss, Form::VMovsd), 128, {to}, from));
  else if (bits(dtype) == 8)
    emit(make(is_signed ? Form::MovsxB : Form::MovzxB, is_signed ? 64 : 32, {to}, from));
  else if (bits(dtype) == 16)
    emit(make(is_signed ? Form::MovsxW : Form::MovzxW, is_signed ? 64 : 32, {to}, from));
  else if (dtype == DType::I32)
    emit(make(Form::Movsxd, 64, {to}, from));
  else
    emit(make(Form::MovLoad, bits(dtype), {to}, from));
}

void X86Emitter::store_scalar(DType dtype, Reg from, const Address& to) {
  if (in_vector(dtype))
    emit(make(of(dtype, Form::VMovssStore, Form::VMovsdStore), 128, {kNoReg, from}, to));
  else if (bits(dtype) == 8)
    emit(make(Form::MovStoreB, 8, {kNoReg, from}, to));
  else if (bits(dtype) == 16)
    emit(make(Form::MovStoreW, 16, {kNoReg, from}, to));
  else
    emit(make(Form::MovStore, bits(dtype), {kNoReg, from}, to));
}

}  // namespace weft::codegen
