// The state of x86 selection, shared by its files: control and memory, integers, floats, casts.
#pragma once
#include <map>

#include "weft/graph/node_map.h"
#include "weft/isa/x86.h"
#include "weft/lower/select_x86.h"

namespace weft::lower {

using x86::Form;

/// True for dtypes that are computed with in vector registers.
constexpr bool in_vector(DType d) { return d == DType::F32 || d == DType::F64; }
constexpr bool is_half_float(DType d) { return d == DType::F16 || d == DType::BF16; }

class X86Selector {
 public:
  X86Selector(const LinearProgram& program, const Target& target)
      : program_(program), target_(target) {}
  MachineProgram run();

 private:
  struct OpenLoop {
    Reg counter, limit;
    int64_t size;  // where `limit` is kNoReg
    int32_t top, end;
  };

  // ---- select_x86.cpp: control, memory, constants
  void enter();
  void select(NodeRef n);
  Reg compute(NodeRef n);
  void open_range(NodeRef n);
  void close_range();
  void compare_with_limit(const OpenLoop& loop);
  void open_if(NodeRef n);
  Reg load(NodeRef n);
  void store(NodeRef n);
  Address address_of(NodeRef param, NodeRef index);
  int32_t skip_unless(Reg condition);
  Reg constant(NodeRef n);
  Reg variable(NodeRef n);

  // ---- x86_integers.cpp
  Reg integer_op(NodeRef n);
  Reg bool_op(NodeRef n);
  Reg integer_comparison(NodeRef n);
  Reg integer_where(NodeRef n);
  Reg divide(NodeRef n);
  Reg shift(NodeRef n);
  Reg select_integer(NodeRef n, x86::Condition when_b);
  /// `r` with the bits above the dtype's as they have to be.
  Reg extended(Reg r, DType dtype);
  Reg wrapped(NodeRef n, Reg r);

  // ---- x86_floats.cpp
  Reg float_op(NodeRef n);
  Reg float_comparison(NodeRef n);
  Reg float_where(NodeRef n);
  Reg float_max(NodeRef n);
  Reg float_blend(Reg mask, Reg yes, Reg no, DType dtype);

  // ---- x86_casts.cpp
  Reg cast(NodeRef n);
  Reg bitcast(NodeRef n);
  Reg to_float(Reg r, DType from, DType to);
  Reg integer_to_float(Reg r, DType from, DType to);
  Reg unsigned_to_float(Reg r, DType to);
  Reg float_to_integer(Reg x, DType from, DType to);
  Reg double_to_narrow(Reg x, DType to);
  Reg double_to_i64(Reg x);
  Reg double_to_u64(Reg x);
  Reg to_half(Reg r, DType from, DType to);
  Reg float_to_half(Reg x, DType to);
  Reg float_to_bfloat(Reg x);
  Reg rounded_to_odd(Reg x);
  Reg sticky(Reg r, DType from);

  // ---- emission
  Reg value(NodeRef n) const { return values_.at(n); }
  Reg general() { return out_.fresh(RegClass::General, 64); }
  Reg vector() { return out_.fresh(RegClass::Vector, 128); }
  Reg fresh(DType d) { return in_vector(d) ? vector() : general(); }
  int32_t new_label() { return out_.labels++; }
  void emit(const Instruction& i) { out_.code.push_back(i); }
  void emit(Form form, int width, std::initializer_list<Reg> regs, int64_t immediate = 0) {
    emit(x86::make(form, width, regs, immediate));
  }
  void jump(Form form, int32_t label, int64_t condition = 0);
  void place(int32_t label);
  void copy(Reg to, Reg from, DType dtype);
  /// A new register with a copy, for instructions that change their first operand.
  Reg copied(Reg from);
  Reg two_address(Form form, Reg a, Reg b);
  Reg with_immediate(Form form, Reg a, int64_t immediate, int width = 64);
  Reg integer(int64_t value);
  Reg set_if(x86::Condition condition);
  void move_if(x86::Condition condition, Reg to, Reg from);
  /// The form for f32 or f64.
  static Form of(DType d, Form single, Form twice) { return d == DType::F32 ? single : twice; }
  Reg three(Form form, Reg a, Reg b);
  /// A constant in memory, 16 bytes of the pattern.
  Address pattern(uint64_t bits, int width);
  Reg float_constant(double value, DType dtype);
  Reg bits_to_vector(Reg r, DType dtype);
  Reg vector_to_bits(Reg x, DType dtype);

  const LinearProgram& program_;
  const Target& target_;
  MachineProgram out_;
  NodeMap<Reg> values_;
  std::vector<OpenLoop> loops_;
  std::vector<int32_t> ifs_;
  std::map<std::pair<uint64_t, int>, int32_t> patterns_;
  Reg begin_ = kNoReg, end_ = kNoReg;
};

}  // namespace weft::lower
