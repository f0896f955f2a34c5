// Where virtual registers hold values that are still needed: what linear scan works on.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "weft/isa/machine.h"

namespace weft::codegen {

constexpr int32_t kNowhere = -1;

/// Positions [begin, end] at which a register is taken: twice an instruction's number where it
/// reads, one more where it writes.
struct Range {
  int32_t begin, end;
};

/// Where a virtual register holds a value that is still needed; between ranges its register is
/// free, as an accumulator's is while the next sum is on its way.
struct Interval {
  Interval(Reg of, MachineProgram::Virtual type, bool is_temporary)
      : reg(of), fixed(type.fixed), temporary(is_temporary) {}

  Reg reg;
  int32_t begin = INT32_MAX, end = kNowhere;
  SmallVector<Range, 4> ranges;  // the last one first
  float uses = 0;                // weighted by loop depth
  int writes = 0;
  int32_t write = kNowhere;  // the instruction of the last one
  Reg fixed;
  Reg hint = kNoReg;              // a register, perhaps virtual, that would save a move
  bool temporary;                 // made by spilling: must have a register
  bool rematerialisable = false;  // its only write may be repeated before every read instead

  float weight = 0;  // what a register is worth to it: uses per position that it is taken for

  bool used() const { return end != kNowhere; }
  /// Of taking its register away.
  float cost() const { return fixed != kNoReg ? std::numeric_limits<float>::infinity() : weight; }
};

/// Whether a range of `b` meets one of the first `count` of a.ranges: the program's last.
bool overlap(const Interval& a, size_t count, const Interval& b);
inline bool overlap(const Interval& a, const Interval& b) { return overlap(a, a.ranges.size(), b); }

/// The intervals of a program's virtual registers.
struct Intervals {
  std::vector<Interval> of;        // by number
  std::vector<uint32_t> by_begin;  // the numbers of those in use; of equal begins the lower first
};

/// Registers from `first_temporary` on are temporary.
Intervals find_intervals(MachineProgram& program, const InstructionSet& set,
                         size_t first_temporary);

}  // namespace weft::codegen
