#include "weft/codegen/machine/allocate.h"

#include <algorithm>
#include <array>
#include <limits>

#include "weft/base/error.h"
#include "weft/codegen/machine/intervals.h"

namespace weft::codegen {
namespace {

/// A register of the machine during the scan: the intervals that were given it and may meet those
/// still to come.
class Taken {
 public:
  struct Holder {
    uint32_t v;
    uint32_t left;  // how many of its ranges end at or after the present position
  };

  void give(uint32_t v, const Interval& to) {
    if (holders_.empty()) holders_.reserve(8);
    holders_.push_back({v, static_cast<uint32_t>(to.ranges.size())});
    end_ = kNowhere;
  }
  /// Whether `now`, which begins no earlier than what was asked before, meets a holder.
  bool meets(const Interval& now, std::span<const Interval> intervals) {
    if (end_ < now.begin) move_to(now.begin, intervals);
    if (begin_ > now.end) return false;
    if (now.ranges.size() == 1) return true;
    return std::any_of(holders_.begin(), holders_.end(),
                       [&](const Holder& h) { return overlap(intervals[h.v], h.left, now); });
  }
  /// What those that meet `now` are worth together.
  float cost(const Interval& now, std::span<const Interval> intervals) const {
    float sum = 0;
    for (const Holder& h : holders_)
      if (overlap(intervals[h.v], h.left, now)) sum += intervals[h.v].cost();
    return sum;
  }
  /// Those that meet `now` lose the register; they are appended to `lost`.
  void evict(const Interval& now, std::span<const Interval> intervals,
             std::vector<uint32_t>& lost) {
    std::erase_if(holders_, [&](const Holder& h) {
      const bool leaves = overlap(intervals[h.v], h.left, now);
      if (leaves) lost.push_back(h.v);
      return leaves;
    });
    end_ = kNowhere;
  }

 private:
  /// Forgets what ended before `position`, and finds the first range of all that did not.
  void move_to(int32_t position, std::span<const Interval> intervals) {
    begin_ = end_ = INT32_MAX;
    std::erase_if(holders_, [&](Holder& h) {
      const auto& ranges = intervals[h.v].ranges;
      while (h.left > 0 && ranges[h.left - 1].end < position) --h.left;
      if (h.left == 0) return true;
      const Range next = ranges[h.left - 1];
      if (next.begin < begin_) begin_ = next.begin, end_ = next.end;
      return false;
    });
  }

  std::vector<Holder> holders_;
  int32_t begin_ = INT32_MAX, end_ = INT32_MAX;  // the first range from the present position on
};

bool contains(std::span<const Reg> registers, Reg r) {
  return std::find(registers.begin(), registers.end(), r) != registers.end();
}

/// One pass over all intervals of a program.
class Scan {
 public:
  Scan(const MachineProgram& p, const InstructionSet& set, const Intervals& intervals)
      : program_(p),
        set_(set),
        intervals_(intervals.of),
        order_(intervals.by_begin),
        assigned(intervals_.size(), kNoReg) {
    for (size_t k = 0; k < classes_.size(); ++k)
      classes_[k].registers.resize(1 + std::ranges::max(set.allocatable(static_cast<RegClass>(k))));
    for (uint32_t v : order_)
      if (intervals_[v].fixed != kNoReg) of(v).fixed.push_back(v);
  }

  void run() {
    for (uint32_t v : order_) place(v);
  }

 private:
  struct Class {
    std::vector<uint32_t> fixed;  // intervals that have to be in one register
    std::vector<Taken> registers;
  };

  RegClass kind(uint32_t v) const { return program_.registers[v].kind; }
  Class& of(uint32_t v) { return classes_[static_cast<size_t>(kind(v))]; }

  using Registers = SmallVector<Reg, 8>;
  /// Registers that fixed intervals need while `v` lives.
  Registers kept_from(const Class& in, uint32_t v) const {
    Registers kept;
    for (uint32_t f : in.fixed)
      if (f != v && overlap(intervals_[f], intervals_[v])) kept.push_back(intervals_[f].fixed);
    return kept;
  }
  bool given_out(uint32_t v, Reg r) const { return contains(set_.allocatable(kind(v)), r); }

  void place(uint32_t v) {
    const Interval& now = intervals_[v];
    Class& in = of(v);
    if (now.fixed != kNoReg) {
      for (uint32_t f : in.fixed)
        WEFT_CHECK(f == v || intervals_[f].fixed != now.fixed || !overlap(intervals_[f], now),
                   "two values need register {} at instruction {}", now.fixed, now.begin / 2);
      return give(in, v, now.fixed);
    }
    const Registers kept = kept_from(in, v);
    auto free = [&](Reg r) {
      return (kept.empty() || !contains(kept, r)) && !in.registers[r].meets(now, intervals_);
    };
    const Reg hint = hint_of(now);
    const bool hinted = hint != kNoReg && given_out(v, hint);
    for (std::span<const Reg> choice :
         {std::span(&hint, hinted ? 1 : 0), set_.allocatable(kind(v))})
      for (Reg r : choice)
        if (free(r)) return give(in, v, r);
    evict_for(in, v, kept);
  }

  /// The machine's register that would save a move.
  Reg hint_of(const Interval& v) const {
    if (!is_virtual(v.hint)) return v.hint;
    const Interval& other = intervals_[v.hint - kFirstVirtual];
    return other.fixed != kNoReg ? other.fixed : assigned[v.hint - kFirstVirtual];
  }

  void give(Class& in, uint32_t v, Reg r) {
    assigned[v] = r;
    if (r >= in.registers.size()) in.registers.resize(r + 1);  // fixed, and never given out
    in.registers[r].give(v, intervals_[v]);
  }

  /// The cheapest of what would have to leave the registers for `v` goes to memory, or `v` does.
  void evict_for(Class& in, uint32_t v, const Registers& kept) {
    const Interval& now = intervals_[v];
    Reg cheapest = kNoReg;
    float least = 0;
    for (Reg r : set_.allocatable(kind(v))) {
      if (contains(kept, r)) continue;
      const float here = in.registers[r].cost(now, intervals_);
      if (cheapest == kNoReg || here < least) cheapest = r, least = here;
    }
    WEFT_CHECK(cheapest != kNoReg, "no register is left beside the fixed ones");
    if (least >= now.weight) {
      WEFT_CHECK(!now.temporary, "one instruction needs more registers than there are");
      return spilled.push_back(v);
    }
    in.registers[cheapest].evict(now, intervals_, spilled);
    give(in, v, cheapest);
  }

  const MachineProgram& program_;
  const InstructionSet& set_;
  const std::vector<Interval>& intervals_;
  const std::vector<uint32_t>& order_;
  std::array<Class, static_cast<size_t>(RegClass::Count)> classes_;

 public:
  std::vector<Reg> assigned;      // by virtual register
  std::vector<uint32_t> spilled;  // virtual registers that got none
};

/// Rewrites a program so that some virtual registers live in memory, or are rematerialised.
class Spiller {
 public:
  Spiller(MachineProgram& p, const InstructionSet& set, const std::vector<Interval>& intervals,
          const std::vector<uint32_t>& spilled)
      : program_(p), set_(set), spills_(p.registers.size()) {
    for (uint32_t v : spilled) spills_[v].spilled = true;
    for (uint32_t v : spilled) {
      const Interval& i = intervals[v];
      if (i.rematerialisable && finds_address(p.code[static_cast<size_t>(i.write)], intervals)) {
        spills_[v].maker = p.code[static_cast<size_t>(i.write)];
        ++p.rematerialised;
      } else {
        spills_[v].offset = slot(p.registers[v].bits / 8);
        ++p.in_memory;
      }
    }
  }

  void run() {
    std::vector<Instruction> code;
    code.reserve(program_.code.size());
    for (Instruction& i : program_.code) {
      if (i.form >= kLabel || i.label >= 0) at_ += kNear;
      rewrite(i, code);
      ++at_;
    }
    std::erase_if(code, [](const Instruction& i) { return i.form == kNothing; });
    program_.code = std::move(code);
  }

 private:
  // What stands where an instruction was.
  static constexpr uint16_t kNothing = UINT16_MAX;

  struct Spill {
    bool spilled = false;
    int32_t offset = kNowhere;
    Instruction maker = {};  // where there is no slot: it is rematerialised
    Reg loaded = kNoReg;     // the temporary that has it since the use at
    int32_t at = kNowhere;
    size_t stored = SIZE_MAX;  // the instruction that did, where nothing loaded it since
  };

  /// What is rematerialised must find the registers of its address. Temporaries are for one
  /// instruction: kept until the last of its uses, they would be too many for others, and cannot be
  /// spilled.
  bool finds_address(const Instruction& i, const std::vector<Interval>& intervals) const {
    auto stays = [&](Reg v) {
      return !is_spilled(v) && !(is_virtual(v) && intervals[v - kFirstVirtual].temporary);
    };
    return !i.has_memory || (stays(i.address.base) && stays(i.address.index));
  }
  bool is_spilled(Reg v) const {
    return is_virtual(v) && v - kFirstVirtual < spills_.size() &&
           spills_[v - kFirstVirtual].spilled;
  }

  int32_t slot(int32_t bytes) {
    bytes = std::max(bytes, 8);
    program_.frame_bytes = (program_.frame_bytes + bytes - 1) / bytes * bytes + bytes;
    return program_.frame_bytes - bytes;
  }

  /// A spilled register in one instruction, which may name it more than once.
  struct Use {
    Reg reg, temporary;
    bool read = false, written = false;
  };

  SmallVector<Use, 8> uses_in(Instruction& i) {
    SmallVector<Use, 8> uses;
    for (const RegisterUse& o : set_.operands(i)) {
      const Reg v = *o.reg;
      if (!is_spilled(v)) continue;
      auto use = std::find_if(uses.begin(), uses.end(), [v](const Use& u) { return u.reg == v; });
      if (use == uses.end()) {
        uses.push_back({v, temporary_for(spills_[v - kFirstVirtual], program_.of(v))});
        use = uses.end() - 1;
      }
      use->read |= reads(o.access);
      use->written |= writes(o.access);
      *o.reg = use->temporary;
    }
    return uses;
  }

  /// One that has the value, where it was loaded a few instructions before. That keeps
  /// temporaries, which cannot be spilled, for longer: only of classes with registers to spare.
  Reg temporary_for(const Spill& spill, MachineProgram::Virtual type) {
    const bool near = spill.loaded != kNoReg && at_ - spill.at <= kNear;
    if (near && set_.allocatable(type.kind).size() >= kSpare) return spill.loaded;
    return program_.fresh(type.kind, type.bits);
  }

  void rewrite(Instruction& i, std::vector<Instruction>& code) {
    const SmallVector<Use, 8> uses = uses_in(i);
    for (const Use& u : uses) {
      Spill& spill = spills_[u.reg - kFirstVirtual];
      if (u.written && spill.offset == kNowhere) return;  // rematerialised where it is used
      const bool here = spill.loaded == u.temporary;
      // Still in its register, which is written again: only what is in memory then counts.
      if (here && u.written && spill.stored != SIZE_MAX) code[spill.stored].form = kNothing;
      if (!here) spill.stored = SIZE_MAX;
      if (u.read && !here) code.push_back(load(spill, program_.of(u.reg), u.temporary));
      spill.loaded = u.temporary;
      spill.at = at_;
    }
    code.push_back(i);
    for (const Use& u : uses) {
      if (!u.written) continue;
      spills_[u.reg - kFirstVirtual].stored = code.size();
      code.push_back(store(spills_[u.reg - kFirstVirtual], program_.of(u.reg), u.temporary));
    }
  }

  Instruction store(const Spill& spill, MachineProgram::Virtual type, Reg from) const {
    return set_.spill(type.kind, type.bits, from, spill.offset);
  }
  Instruction load(const Spill& spill, MachineProgram::Virtual type, Reg to) const {
    if (spill.offset != kNowhere) return set_.reload(type.kind, type.bits, to, spill.offset);
    Instruction copy = spill.maker;
    copy.regs[0] = to;
    return copy;
  }

  static constexpr int32_t kNear = 2;   // instructions between two uses of a temporary, at most
  static constexpr size_t kSpare = 16;  // registers: more than so many instructions name at once

  MachineProgram& program_;
  const InstructionSet& set_;
  std::vector<Spill> spills_;
  int32_t at_ = 0;  // the instruction; further than kNear from what is before a mark or jump
};

/// Where some can be rematerialised, those alone: without them, others may keep their registers.
std::vector<uint32_t> cheapest(const std::vector<Interval>& intervals,
                               const std::vector<uint32_t>& spilled) {
  std::vector<uint32_t> made_again;
  for (uint32_t v : spilled)
    if (intervals[v].rematerialisable) made_again.push_back(v);
  return made_again.empty() ? spilled : made_again;
}

void apply(MachineProgram& p, const InstructionSet& set, std::span<const Reg> assigned) {
  size_t kept = 0;
  for (Instruction& i : p.code) {
    for (const RegisterUse& o : set.operands(i))
      if (is_virtual(*o.reg)) *o.reg = assigned[*o.reg - kFirstVirtual];
    if (!set.is_move(i) || i.regs[0] != i.regs[1]) p.code[kept++] = i;
  }
  p.code.resize(kept);
}

}  // namespace

void allocate(MachineProgram& program, const InstructionSet& set) {
  const size_t first_temporary = program.registers.size();
  for (;;) {
    const Intervals intervals = find_intervals(program, set, first_temporary);
    Scan scan(program, set, intervals);
    scan.run();
    if (scan.spilled.empty()) {
#ifdef WEFT_DEV
      check_assignment(program, scan.assigned, set);
#endif
      return apply(program, set, scan.assigned);
    }
    Spiller(program, set, intervals.of, cheapest(intervals.of, scan.spilled)).run();
  }
}

}  // namespace weft::codegen
