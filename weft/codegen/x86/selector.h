// The state of x86 selection, shared by its files.
#pragma once
#include <unordered_map>

#include "weft/base/function_ref.h"
#include "weft/codegen/x86/emitter.h"
#include "weft/codegen/x86/read_ahead.h"
#include "weft/codegen/x86/select.h"
#include "weft/graph/node_map.h"

namespace weft::codegen {

using Parts = SmallVector<Reg, 4>;

/// A vector's registers, lanes from the lowest on. Lanes of bools are one bit each in one mask
/// register with AVX-512, whose bits beyond the lanes are anything; else all ones or zeros, as wide
/// as what was compared.
struct Vector {
  Parts parts;
  int bits, lanes;
};

/// Instructions for one register of operands, or one f32 or f64.
struct PartOp {
  Op op;
  DType dtype;
  int width;  // of the registers
  Reg a, b = kNoReg, c = kNoReg;
  bool b_loses_ties = false;  // max(a, b) or min is a where they are equal; never NaN
};

/// A conversion that has one register on either side.
struct CastPart {
  Reg x;
  DType from, to;
  int lanes;
  bool whole = false;  // whole numbers: neither NaN nor subnormal
  int width_of(DType d) const { return std::max(128, bits(d) * lanes); }
  int width() const { return std::max(width_of(from), width_of(to)); }
};

class X86Selector : X86Emitter {
 public:
  X86Selector(const LinearProgram& program, const Target& target)
      : X86Emitter(target), program_(program), ahead_(reads_ahead(program, target)) {}
  MachineProgram run();

 private:
  struct OpenLoop {
    Reg counter = kNoReg, limit = kNoReg;  // none where there is at most one iteration
    int64_t size = 0;                      // where `limit` is kNoReg
    int32_t top = 0, end = 0;
  };

  // ---- select.cpp: control, memory, constants
  void enter();
  void select(NodeRef n);
  Reg compute(NodeRef n);
  void open_range(NodeRef n);
  void close_range();
  void compare_with_limit(const OpenLoop& loop);
  Reg load(NodeRef n);
  /// What a load reads so many bytes further on, a line once in a stretch.
  void prefetch(NodeRef n, const Ahead& ahead);
  void prefetch_lines(NodeRef n, const Ahead& ahead);
  void store(NodeRef n);
  NodeRef added_in_place(NodeRef store) const;
  Address address_of(NodeRef param, NodeRef index);
  /// True where what an earlier load read can be read from memory again.
  bool may_read_again(NodeRef n) const;
  Reg constant(NodeRef n);

  // ---- integers.cpp
  Reg integer_op(NodeRef n);
  /// An operation with a constant that fits an instruction; kNoReg where there is none.
  Reg with_constant(NodeRef n);
  Reg bool_op(NodeRef n);
  /// Comparisons that nothing but conditions of their own loop reads are made there, as flags.
  void find_conditions();
  void count_readers();
  bool is_condition(NodeRef n) const {
    const bool* found = conditions_.find(n);
    return found && *found;
  }
  x86::Condition compare(NodeRef n);
  x86::Condition flags_of(NodeRef n);
  int32_t skip_unless(NodeRef n);
  Reg integer_where(NodeRef n);
  Reg divide(NodeRef n);
  Reg shift(NodeRef n);
  Reg select_integer(NodeRef n, x86::Condition when_b);
  /// `r` with the bits above the dtype's as they have to be.
  Reg extended(Reg r, DType dtype);
  /// A register with the same low bits of a number as `r`: what that was extended from.
  Reg low_bits(Reg r, DType dtype) const;
  Reg wrapped(NodeRef n, Reg r);

  // ---- patterns.cpp: several ops as one instruction
  Reg integer_pattern(NodeRef n);
  Reg bool_pattern(NodeRef n);
  Vector vector_pattern(NodeRef n);
  Vector logic_of_three(NodeRef n);
  /// Lookup4 of one register.
  Reg looked_up(NodeRef n, Reg x, int width);
  Vector part_by_part(NodeRef n, FunctionRef<Reg(size_t part, int width)> make);

  // ---- floats.cpp
  Reg float_op(NodeRef n);
  Reg dot(NodeRef n);
  Reg float_comparison(NodeRef n);
  Reg float_where(NodeRef n);

  // ---- casts.cpp
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

  // ---- vectors.cpp: arithmetic on lanes
  /// How a vector lies in registers.
  struct Layout {
    int parts, per_part;  // registers; lanes of one
    int width;            // of the registers, at least 128
  };
  Layout layout(int bits, int lanes) const;
  void select_vector(NodeRef n);
  Vector vector_value(NodeRef n);
  Vector difference(NodeRef a, NodeRef b);
  Vector fused_vectors(NodeRef n);
  struct VectorForm;
  static const VectorForm kVectorForms[];
  const VectorForm* vector_form(Op op, DType dtype) const;
  Reg part_op(const PartOp& p);
  Reg bitwise(Op op, Reg a, Reg b, int width) { return part_op({op, DType::I64, width, a, b}); }
  Reg rounded(const PartOp& p, Form form);
  Reg mantissa(const PartOp& p, Form form);
  Reg from_zero(const PartOp& p, Form form);
  Reg flipped(const PartOp& p, Form form);
  Reg fused(const PartOp& p, Form form);
  Reg added_to_product(const PartOp& p, Form form);
  Reg multiplied_and_added(const PartOp& p, Form form);
  Reg float_extreme(const PartOp& p, Form form);
  Reg integer_extreme(const PartOp& p, Form form);
  Reg product_of_halves(const PartOp& p, Form form);
  Reg arithmetic_shift(const PartOp& p, Form form);
  Reg in_wider_lanes(const PartOp& p, Form form);

  // ---- masks.cpp: bool vectors
  Vector vector_comparison(NodeRef n);
  Vector vector_where(NodeRef n);
  Vector mask_op(NodeRef n);
  Reg compared(Op op, DType dtype, Reg a, Reg b, int width);
  Reg compared_floats(int64_t predicate, DType dtype, Reg a, Reg b, int width);
  Reg compared_lanes(Op op, DType dtype, Reg a, Reg b, int width);
  Reg is_not_zero(DType dtype, Reg x, int width);
  /// Lanes of `yes` where the mask holds, else of `no`, or zeros.
  Reg blended(Reg mask, Reg yes, Reg no, int bits, int width);
  Reg kept(Reg mask, Reg x, int bits, int width);
  Vector logic(Op op, const Vector& a, const Vector& b);
  Vector inverted(const Vector& m);
  /// A bool vector as it is to be beside lanes of `bits`.
  Vector mask_beside(NodeRef n, int bits);
  Reg part_of_mask(const Vector& m, int part, int lanes_each);
  Vector mask_of_parts(const Parts& parts, int bits, int lanes);
  Vector mask_of_bits(Reg bits, int lanes);
  /// 1 where it holds, else 0.
  Parts mask_to_numbers(const Vector& m, DType to);
  Reg bit_of_mask(const Vector& m, int lane);
  Reg any_of_mask(const Vector& m);

  // ---- vector_casts.cpp
  /// Empty where no instructions do it: then lanes are converted one at a time.
  Vector vector_cast(NodeRef n);
  struct CastForm;
  static const CastForm kCastForms[];
  const CastForm* cast_form(DType from, DType to) const;
  /// `whole`: of whole numbers, as integers are; they may have become floats.
  Parts converted(const Parts& x, DType from, DType to, int lanes, bool whole = false);
  Reg cast_part(const CastPart& c);
  Vector numbers_to_mask(const Parts& x, DType from, int lanes);
  Reg widened_bfloat(const CastPart& c, Form form);
  Reg rounded_bfloat(const CastPart& c, Form form);
  Reg narrowed(const CastPart& c, Form form);
  Reg from_u32(const CastPart& c, Form form);
  Reg from_u32_to_double(const CastPart& c, Form form);
  Reg from_64_bits(const CastPart& c, Form form);
  Reg to_integers(const CastPart& c, Form form);
  Reg to_unsigned(const CastPart& c, Form form);
  Reg saturated(const CastPart& c, Reg x);

  // ---- pieces.cpp: parts of registers
  Reg piece(const Parts& parts, int bits, int lanes, int first, int count);
  Reg joined(Parts pieces, int bits);
  Reg repeated(NodeRef vector, int bits, int width);
  Reg joined_pair(NodeRef low, NodeRef high, int bits);
  bool permutes_pairs(int size) const;
  bool unpacked(Reg out, Reg a, Reg b, std::span<const int> words, int width);
  Reg pair_permuted(Reg a, Reg b, std::span<const int> from, int size, int width);
  Vector transposed(NodeRef n);

  // ---- tiles.cpp
  static bool is_tile(NodeRef n);
  /// Local memory is part of the frame; tiles have their shapes before anything uses one.
  void reserve_local();
  Reg tile() { return out_.fresh(RegClass::Tile, 0); }
  Reg tile_of_zeros(NodeRef n);
  Address rows_at(NodeRef memory, NodeRef index, Reg distance);
  Reg tile_value(NodeRef n);
  void select_tile(NodeRef n);
  void store_tile(NodeRef n);

  // ---- lanes.cpp: memory, and what goes through it
  Vector vector_load(NodeRef n);
  void vector_store(NodeRef n);
  Vector load_vector(DType dtype, int lanes, const Address& from);
  void store_vector(DType dtype, const Vector& v, const Address& to);
  Vector splat(NodeRef n);
  Vector permuted(NodeRef n);
  Reg floats_side_by_side(std::span<const NodeRef> scalars, int size);
  Reg side_by_side(std::span<const NodeRef> scalars, int size, int width);
  Vector spread(NodeRef n);
  Vector consecutive(NodeRef n);
  Vector concatenated(NodeRef n);
  Vector gathered(NodeRef n);
  Vector strided(NodeRef n);
  Reg load_word(NodeRef load);
  Vector vec(NodeRef n);
  Vector chosen(NodeRef n);
  Vector as_stored(NodeRef n);
  Reg lane(NodeRef vector, int k);
  Vector lane_by_lane(NodeRef n);
  Reg new_part(const Vector& like);
  void copy_parts(const Vector& to, const Vector& from);
  Vector copy_of(const Vector& v);

  const Vector& vector(NodeRef n) { return vectors_[static_cast<size_t>(vector_at_.at(n))]; }
  void set_vector(NodeRef n, Vector v);
  Reg value(NodeRef n) const { return values_.at(n); }

  const LinearProgram& program_;
  const NodeMap<Ahead> ahead_;
  SmallVector<Address, 8> prefetched_ = {};  // in this stretch
  NodeMap<Reg> values_;                      // of one lane
  NodeMap<bool> conditions_;
  NodeMap<int> readers_;  // of loads and sums of one lane
  struct Extension {
    Reg from;
    int bits;
  };
  std::unordered_map<Reg, Extension> extended_from_;
  std::vector<OpenLoop> loops_;
  std::vector<int32_t> ifs_;
  std::vector<Vector> vectors_;
  NodeMap<uint32_t> vector_at_;
  NodeMap<uint32_t> loaded_in_;  // the stretch each load is in
  uint32_t stretch_ = 0;         // of instructions without stores, loops and conditions,
  bool ends_stretch_ = false;    // but for the last one
  Reg begin_ = kNoReg, end_ = kNoReg;
  Reg local_ = kNoReg;                   // where local memory begins,
  std::map<int64_t, int32_t> local_at_;  // and each of it there, by id
  int32_t local_bytes_ = 0;
  bool uses_tiles_ = false;
};

}  // namespace weft::codegen
