// The state of x86 selection, shared by its files: control and memory, integers, floats, casts.
#pragma once
#include <map>

#include "weft/graph/node_map.h"
#include "weft/isa/x86.h"
#include "weft/lower/x86/select.h"

namespace weft::lower {

using x86::Form;

/// True for dtypes that are computed with in vector registers.
constexpr bool in_vector(DType d) { return d == DType::F32 || d == DType::F64; }
constexpr bool is_half_float(DType d) { return d == DType::F16 || d == DType::BF16; }

/// The registers of a vector, lanes from the lowest on. A bool vector is one mask register, whose
/// bits beyond the lanes are anything.
using Parts = SmallVector<Reg, 4>;

class X86Selector {
 public:
  X86Selector(const LinearProgram& program, const Target& target)
      : program_(program), wide_(target.vector_bits == 512) {}
  MachineProgram run();

 private:
  struct OpenLoop {
    Reg counter, limit;
    int64_t size;  // where `limit` is kNoReg
    int32_t top, end;
  };

  // ---- select.cpp: control, memory, constants
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
  /// True where what an earlier load read can be read from memory again.
  bool may_read_again(NodeRef n) const;
  int32_t skip_unless(Reg condition);
  Reg constant(NodeRef n);
  Reg variable(NodeRef n);

  // ---- integers.cpp
  Reg integer_op(NodeRef n);
  /// An operation with a constant that fits an instruction; kNoReg where there is none.
  Reg with_constant(NodeRef n);
  Reg bool_op(NodeRef n);
  Reg integer_comparison(NodeRef n);
  Reg integer_where(NodeRef n);
  Reg divide(NodeRef n);
  Reg shift(NodeRef n);
  Reg select_integer(NodeRef n, x86::Condition when_b);
  /// `r` with the bits above the dtype's as they have to be.
  Reg extended(Reg r, DType dtype);
  Reg wrapped(NodeRef n, Reg r);

  // ---- floats.cpp
  Reg float_op(NodeRef n);
  Reg float_comparison(NodeRef n);
  Reg float_where(NodeRef n);
  Reg float_max(NodeRef n);
  Reg float_blend(Reg mask, Reg yes, Reg no, DType dtype);

  // ---- casts.cpp
  Reg cast(NodeRef n);
  Reg bitcast(NodeRef n);
  Reg to_float(Reg r, DType from, DType to);
  Reg integer_to_float(Reg r, DType from, DType to);
  Reg unsigned_to_float(Reg r, DType to);
  Reg float_to_integer(Reg x, DType from, DType to);
  Reg or_zero_if_nan(Reg x);
  Reg double_to_narrow(Reg x, DType to);
  Reg double_to_i64(Reg x);
  Reg double_to_u64(Reg x);
  Reg to_half(Reg r, DType from, DType to);
  Reg float_to_half(Reg x, DType to);
  Reg float_to_bfloat(Reg x);
  Reg rounded_to_odd(Reg x);
  Reg sticky(Reg r, DType from);

  // ---- vectors.cpp: arithmetic on lanes
  /// How a vector lies in registers.
  struct Layout {
    int lanes, parts;
    int per_part;  // lanes of one register
    int width;     // of the registers, at least 128
    int bytes;     // of an element
  };
  static Layout layout(DType dtype, int lanes);
  static Layout layout(NodeRef n) { return layout(n->dtype, n->lanes); }
  void select_vector(NodeRef n);
  Parts vector_op(NodeRef n);
  Parts mask_op(NodeRef n);
  Parts vector_where(NodeRef n);
  Parts vector_comparison(NodeRef n);
  Parts vector_max(NodeRef n);
  Parts vector_negation(NodeRef n);
  Parts vector_mulacc(NodeRef n);
  Reg mask_three(Form form, Reg a, Reg b);
  Reg joined_masks(std::span<const Reg> masks, int lanes_each);
  Reg part_of_mask(Reg mask, int first_lane);

  // ---- vector_casts.cpp
  /// Empty where no instructions do it: then lanes are converted one at a time.
  Parts vector_cast(NodeRef n);
  Reg cast_part(Reg x, DType from, DType to, int lanes);
  Reg widened(Reg x, DType from, int bits, int lanes);
  Reg narrowed(Reg x, int from_bits, int bits, int lanes);
  Reg mask_to_vector(Reg mask, DType to, int lanes);
  Reg floats_to_bfloats(Reg x, int lanes);
  Reg floats_to_integers(Reg x, DType from, DType to, int lanes);

  // ---- lanes.cpp: memory, and what goes through it
  Parts vector_load(NodeRef n);
  void vector_store(NodeRef n);
  Parts load_parts(DType dtype, int lanes, const Address& from);
  void store_parts(DType dtype, int lanes, const Parts& parts, const Address& to);
  Parts splat(NodeRef n);
  Parts splat_of_load(NodeRef load, const Layout& l);
  Parts vec(NodeRef n);
  Reg lane(NodeRef n);
  Parts lane_by_lane(NodeRef n);
  Reg one_lane(NodeRef vector, const Address& stored, int k);
  Address scratch(int bytes);
  Parts mask_of_bits(Reg bits);

  // ---- emission
  Parts& parts(NodeRef n) { return vectors_[static_cast<size_t>(vector_at_.at(n))]; }
  void set_parts(NodeRef n, Parts p);
  Reg vector_of(int width) { return out_.fresh(RegClass::Vector, width); }
  Reg mask() { return out_.fresh(RegClass::Mask, 64); }
  /// A pattern of an element's width in every lane.
  Reg all_lanes(uint64_t bits, int element_bits, int width);
  Reg load_scalar(DType dtype, const Address& from);
  void load_scalar_into(Reg to, DType dtype, const Address& from);
  void store_scalar(DType dtype, Reg from, const Address& to);
  void copy_part(Reg to, Reg from, DType dtype, int width);
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
  const bool wide_;  // AVX-512: masks, 32 registers of 512 bits
  MachineProgram out_;
  NodeMap<Reg> values_;
  std::vector<OpenLoop> loops_;
  std::vector<int32_t> ifs_;
  std::map<std::pair<uint64_t, int>, int32_t> patterns_;
  std::vector<Parts> vectors_;
  NodeMap<uint32_t> vector_at_;
  int32_t scratch_top_ = 0;
  NodeRef in_scratch_ = nullptr;  // the vector that lies there, for its next lane
  NodeMap<uint32_t> loaded_in_;   // the stretch each load is in
  uint32_t stretch_ = 0;          // of instructions without stores, loops and conditions
  Reg begin_ = kNoReg, end_ = kNoReg;
};

}  // namespace weft::lower
