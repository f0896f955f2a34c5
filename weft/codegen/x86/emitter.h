// What the files of x86 selection write with: registers, labels, constants, short sequences.
#pragma once
#include <map>
#include <vector>

#include "weft/base/error.h"
#include "weft/isa/x86.h"
#include "weft/target/target.h"

namespace weft::codegen {

using x86::Form;

/// True for dtypes that are computed with in vector registers.
constexpr bool in_vector(DType d) { return d == DType::F32 || d == DType::F64; }

class X86Emitter {
 protected:
  explicit X86Emitter(const Target& target)
      : cpu_(target.cpu), register_bits_(target.vector_bits), wide_(register_bits_ == 512) {}

  /// True if there is an encoding of `form` that reaches all vector registers: with AVX-512 that is
  /// EVEX, before it VEX.
  bool usable(Form form) const;
  /// The first of some rows (pairs of key and form) with this key whose form is usable.
  template <class Rows, class Key>
  Form usable_form(const Rows& rows, Key key) const;

  // ---- registers
  Reg general() { return out_.fresh(RegClass::General, 64); }
  /// One f32 or f64; what the lanes above hold is of no consequence.
  Reg scalar() { return out_.fresh(RegClass::Vector, 128); }
  Reg vector_of(int width) { return out_.fresh(RegClass::Vector, width); }
  Reg mask() { return out_.fresh(RegClass::Mask, 64); }
  Reg fresh(DType d) { return in_vector(d) ? scalar() : general(); }
  bool is_mask_register(Reg r) const { return out_.of(r).kind == RegClass::Mask; }

  // ---- instructions
  void emit(const Instruction& i) { out_.code.push_back(i); }
  void emit(Form form, int width, std::initializer_list<Reg> regs, int64_t immediate = 0) {
    emit(x86::make(form, width, regs, immediate));
  }
  int32_t new_label() { return out_.labels++; }
  void jump(Form form, int32_t label, int64_t condition = 0);
  void place(int32_t label);
  void copy(Reg to, Reg from, DType dtype);

  // ---- into a new general register; the operands stay as they are
  Reg copied(Reg from);
  Reg two_address(Form form, Reg a, Reg b);
  Reg with_immediate(Form form, Reg a, int64_t immediate);
  Reg integer(int64_t value);
  Reg set_if(x86::Condition condition);
  void move_if(x86::Condition condition, Reg to, Reg from);

  // ---- into a new vector register
  /// The form for f32 or f64.
  static Form of(DType d, Form single, Form twice) { return d == DType::F32 ? single : twice; }
  Reg scalar_op(Form form, Reg a, Reg b);
  Reg vector_op(Form form, int width, Reg a, Reg b);
  Reg shifted_by(Form form, int width, Reg x, int amount);
  Reg float_constant(double value, DType dtype);
  Reg bits_to_vector(Reg r, DType dtype);
  Reg vector_to_bits(Reg x, DType dtype);
  /// A pattern of an element's width in every lane; not to be written to. It is made once, before
  /// everything else, and by allocation again where there are too few registers.
  Reg all_lanes(uint64_t bits, int element_bits, int width);
  /// The same of 16 bytes, in each 128 bits.
  Reg all_blocks(std::vector<uint8_t> bytes, int width);
  /// The same of a register's own bytes.
  Reg all_bytes(std::vector<uint8_t> bytes, int width);

  // ---- memory
  Address data_constant(std::vector<uint8_t> bytes);
  /// 16 bytes of a pattern.
  Address pattern(uint64_t bits, int width);
  /// Room in the frame for one node's detour through memory.
  Address scratch(int bytes);
  Reg load_scalar(DType dtype, const Address& from);
  void load_scalar_into(Reg to, DType dtype, const Address& from);
  void store_scalar(DType dtype, Reg from, const Address& to);

  /// The program, with constants behind its first instructions.
  MachineProgram finish(size_t entry_end);

  const CpuFeatures cpu_;
  const int register_bits_;  // of a vector register
  const bool wide_;          // AVX-512: mask registers, and twice as many vector registers
  MachineProgram out_;
  int32_t scratch_top_ = 0;

 private:
  Reg made_once(Form form, int width, const Address& from);

  std::map<std::vector<uint8_t>, int32_t> constants_;
  std::map<std::pair<int32_t, int>, Reg> made_once_;  // by label and width
  std::vector<Instruction> first_;
};

template <class Rows, class Key>
Form X86Emitter::usable_form(const Rows& rows, Key key) const {
  for (const auto& [k, form] : rows)
    if (k == key && usable(form)) return form;
  internal_error("lower.x86", "no form is usable");
}

}  // namespace weft::codegen
