#include "weft/lower/allocate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "weft/base/error.h"

namespace weft::lower {
namespace {

constexpr int32_t kNowhere = -1;

/// Positions [begin, end] at which a register is taken: twice an instruction's number where it
/// reads, one more where it writes.
struct Range {
  int32_t begin, end;
};

/// Where a virtual register holds a value that is still needed; between ranges its register is
/// free, as an accumulator's is while the next sum is on its way.
struct Interval {
  Reg reg = kNoReg;
  int32_t begin = INT32_MAX, end = kNowhere;
  SmallVector<Range, 4> ranges;  // the last one first
  float uses = 0;                // weighted by loop depth
  int writes = 0;
  int32_t write = kNowhere;  // the instruction of the last one
  Reg fixed = kNoReg;
  Reg hint = kNoReg;       // a register, perhaps virtual, that would save a move
  bool temporary = false;  // made by spilling: must have a register

  bool used() const { return end != kNowhere; }
  float weight() const {
    if (temporary) return std::numeric_limits<float>::infinity();
    int32_t taken = 1;
    for (const Range& r : ranges) taken += r.end - r.begin;
    return uses / static_cast<float>(taken);
  }
};

bool overlap(const Interval& a, const Interval& b) {
  if (a.begin > b.end || b.begin > a.end) return false;
  for (size_t i = 0, k = 0; i < a.ranges.size() && k < b.ranges.size();) {
    const Range x = a.ranges[i], y = b.ranges[k];
    if (x.begin <= y.end && y.begin <= x.end) return true;
    (x.begin > y.end ? i : k)++;
  }
  return false;
}

class Intervals {
 public:
  Intervals(MachineProgram& p, const InstructionSet& set, size_t first_temporary)
      : of(p.registers.size()), program_(p), set_(set) {
    for (size_t v = 0; v < of.size(); ++v) {
      of[v].reg = kFirstVirtual + static_cast<Reg>(v);
      of[v].temporary = v >= first_temporary;
      of[v].fixed = p.registers[v].fixed;
      if (of[v].fixed != kNoReg) touch(of[v], 0, 1);  // its value comes from outside
    }
    for (size_t at = 0; at < p.code.size(); ++at) visit(static_cast<int32_t>(at));
    open_.resize(of.size(), kNowhere);
    for (size_t at = p.code.size(); at-- > 0;) find_ranges(static_cast<int32_t>(at));
    for (Interval& v : of)
      if (open_[v.reg - kFirstVirtual] != kNowhere) close(v, v.begin);
  }

  std::vector<Interval> of;

 private:
  struct Loop {
    int32_t begin, end;
    std::vector<size_t> carried;  // have a value before it, and are used in it
  };

  /// Forward: extent, weight, and what loops carry from one iteration to the next.
  void visit(int32_t at) {
    Instruction& i = program_.code[static_cast<size_t>(at)];
    skips_.push_back(skips_.empty() ? kNowhere : skips_.back());
    if (i.form == kLabel && i.label >= 0) end_skip(i.label);
    if (i.form < kLabel && i.label >= 0) begin_skip(at, i.label);
    if (i.form == kLoopBegin) {
      inside_.push_back(loops_.size());
      loops_.push_back({at, at, {}});
      weight_ *= 10;
    }
    if (i.form == kLoopEnd) leave_loop(at);
    for (const RegisterUse& o : set_.operands(i)) {
      if (!is_virtual(*o.reg)) continue;
      Interval& v = of[*o.reg - kFirstVirtual];
      if (o.fixed != kNoReg) v.fixed = o.fixed;
      if (reads(o.access)) touch(v, 2 * at, weight_);
      if (writes(o.access)) {
        touch(v, 2 * at + 1, weight_);
        ++v.writes;
        v.write = at;
      }
    }
    if (set_.is_move(i) && is_virtual(i.regs[0]) && is_virtual(i.regs[1])) {
      of[i.regs[0] - kFirstVirtual].hint = i.regs[1];
      of[i.regs[1] - kFirstVirtual].hint = i.regs[0];
    }
  }

  void touch(Interval& v, int32_t position, float weight) {
    v.begin = std::min(v.begin, position);
    v.end = std::max(v.end, position);
    v.uses += weight;
  }

  void leave_loop(int32_t at) {
    Loop& loop = loops_[inside_.back()];
    inside_.pop_back();
    weight_ /= 10;
    loop.end = at;
    for (size_t v = 0; v < of.size(); ++v) {
      if (of[v].begin >= 2 * loop.begin || of[v].end <= 2 * loop.begin) continue;
      of[v].end = std::max(of[v].end, 2 * at + 1);
      loop.carried.push_back(v);
    }
  }

  // Instructions that a forward jump may skip: skips_ has, per instruction, where the innermost
  // such stretch began.
  void begin_skip(int32_t at, int32_t label) {
    if (bound_.contains(label)) return;  // a loop's way back
    open_skips_.push_back({at, label});
    skips_.back() = at;
  }
  void end_skip(int32_t label) {
    bound_[label] = true;
    std::erase_if(open_skips_, [label](const auto& s) { return s.second == label; });
    skips_.back() = open_skips_.empty() ? kNowhere : open_skips_.back().first;
  }

  /// Backward: a read opens a range, a write ends it. Where the write may be skipped and an older
  /// value be needed instead, that one's range begins at the jump.
  void find_ranges(int32_t at) {
    Instruction& i = program_.code[static_cast<size_t>(at)];
    if (const auto older = older_.find(at); older != older_.end())
      for (size_t v : older->second) open(v, 2 * at);
    if (i.form == kLoopEnd || i.form == kLoopBegin)
      for (const Loop& loop : loops_)
        if (at == (i.form == kLoopEnd ? loop.end : loop.begin))
          for (size_t v : loop.carried) open(v, i.form == kLoopEnd ? 2 * at + 1 : 2 * at);
    const RegisterUses uses = set_.operands(i);
    for (const RegisterUse& o : uses) {
      if (!is_virtual(*o.reg) || !writes(o.access)) continue;
      const size_t v = *o.reg - kFirstVirtual;
      open(v, 2 * at + 1);
      if (o.access != Access::Write) continue;
      close(of[v], 2 * at + 1);
      const int32_t jump = skips_[static_cast<size_t>(at)];
      if (of[v].begin < 2 * jump) older_[jump].push_back(v);
    }
    for (const RegisterUse& o : uses)
      if (is_virtual(*o.reg) && reads(o.access)) open(*o.reg - kFirstVirtual, 2 * at);
  }

  void open(size_t v, int32_t end) {
    if (open_[v] == kNowhere) open_[v] = end;
  }
  void close(Interval& v, int32_t begin) {
    v.ranges.push_back({begin, open_[v.reg - kFirstVirtual]});
    open_[v.reg - kFirstVirtual] = kNowhere;
  }

  MachineProgram& program_;
  const InstructionSet& set_;
  std::vector<Loop> loops_;
  std::vector<size_t> inside_;
  std::vector<int32_t> skips_, open_;
  std::vector<std::pair<int32_t, int32_t>> open_skips_;  // where, to which label
  std::map<int32_t, bool> bound_;
  std::map<int32_t, std::vector<size_t>> older_;  // by jump: what is needed where it is taken
  float weight_ = 1;
};

/// One pass over all intervals of a program.
class Scan {
 public:
  Scan(const MachineProgram& p, const InstructionSet& set, std::vector<Interval>& intervals)
      : program_(p), set_(set), intervals_(intervals), assigned(intervals.size(), kNoReg) {
    for (size_t v = 0; v < intervals.size(); ++v)
      if (intervals[v].fixed != kNoReg && intervals[v].used()) fixed_.push_back(v);
  }

  void run() {
    std::vector<size_t> order;
    for (size_t v = 0; v < intervals_.size(); ++v)
      if (intervals_[v].used()) order.push_back(v);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const int32_t x = intervals_[a].begin, y = intervals_[b].begin;
      return x != y ? x < y : a < b;
    });
    for (size_t v : order) {
      expire(intervals_[v].begin);
      place(v);
    }
  }

 private:
  RegClass kind(size_t v) const { return program_.registers[v].kind; }

  void expire(int32_t position) {
    std::erase_if(active_, [&](size_t v) { return intervals_[v].end < position; });
  }

  /// Registers that `v` may have as far as fixed intervals go, as bits.
  uint64_t allowed(size_t v) const {
    uint64_t bits = 0;
    for (Reg r : set_.allocatable(kind(v))) bits |= uint64_t{1} << r;
    for (size_t f : fixed_)
      if (f != v && kind(f) == kind(v) && overlap(intervals_[f], intervals_[v]))
        bits &= ~(uint64_t{1} << intervals_[f].fixed);
    return bits;
  }

  void place(size_t v) {
    Interval& now = intervals_[v];
    if (now.fixed != kNoReg) {
      for (size_t f : fixed_)
        WEFT_CHECK(f == v || intervals_[f].fixed != now.fixed || kind(f) != kind(v) ||
                       !overlap(intervals_[f], now),
                   "two values need register {} at instruction {}", now.fixed, now.begin / 2);
      return give(v, now.fixed);
    }
    const uint64_t may = allowed(v);
    uint64_t free = may;
    for (size_t a : active_)
      if (kind(a) == kind(v) && overlap(intervals_[a], now)) free &= ~(uint64_t{1} << assigned[a]);
    if (free != 0) return give(v, preferred(now, free));
    evict_for(v, may);
  }

  Reg preferred(const Interval& v, uint64_t free) const {
    Reg hint = v.hint;
    if (is_virtual(hint)) {
      const Interval& other = intervals_[hint - kFirstVirtual];
      hint = other.fixed != kNoReg ? other.fixed : assigned[hint - kFirstVirtual];
    }
    if (hint != kNoReg && (free >> hint & 1) != 0) return hint;
    for (Reg r : set_.allocatable(program_.of(v.reg).kind))
      if ((free >> r & 1) != 0) return r;
    return kNoReg;
  }

  void give(size_t v, Reg r) {
    assigned[v] = r;
    active_.push_back(v);
  }

  /// What would have to leave each register for `v`, and the cheapest of them: it goes to memory,
  /// or `v` does.
  void evict_for(size_t v, uint64_t may) {
    std::array<float, 64> cost{};
    for (size_t a : active_) {
      if (kind(a) != kind(v) || !overlap(intervals_[a], intervals_[v])) continue;
      cost[assigned[a]] += intervals_[a].fixed != kNoReg ? std::numeric_limits<float>::infinity()
                                                         : intervals_[a].weight();
    }
    Reg cheapest = kNoReg;
    for (Reg r : set_.allocatable(kind(v)))
      if ((may >> r & 1) != 0 && (cheapest == kNoReg || cost[r] < cost[cheapest])) cheapest = r;
    WEFT_CHECK(cheapest != kNoReg, "no register is left beside the fixed ones");
    if (cost[cheapest] >= intervals_[v].weight()) {
      WEFT_CHECK(!intervals_[v].temporary, "one instruction needs more registers than there are");
      return spilled.push_back(v);
    }
    std::erase_if(active_, [&](size_t a) {
      const bool leaves =
          kind(a) == kind(v) && assigned[a] == cheapest && overlap(intervals_[a], intervals_[v]);
      if (leaves) spilled.push_back(a);
      return leaves;
    });
    give(v, cheapest);
  }

  const MachineProgram& program_;
  const InstructionSet& set_;
  std::vector<Interval>& intervals_;
  std::vector<size_t> fixed_, active_;

 public:
  std::vector<Reg> assigned;    // by virtual register
  std::vector<size_t> spilled;  // virtual registers that got none
};

/// Rewrites a program so that some virtual registers live in memory, or are computed where needed.
class Spiller {
 public:
  Spiller(MachineProgram& p, const InstructionSet& set, const std::vector<Interval>& intervals,
          const std::vector<size_t>& spilled)
      : program_(p), set_(set), home_(p.registers.size()) {
    for (size_t v : spilled) {
      const Interval& i = intervals[v];
      home_[v].spilled = true;
      if (i.writes == 1 && i.fixed == kNoReg &&
          set.is_repeatable(p.code[static_cast<size_t>(i.write)]))
        home_[v].again = p.code[static_cast<size_t>(i.write)];
      else
        home_[v].offset = slot(p.registers[v].bits / 8);
    }
  }

  void run() {
    std::vector<Instruction> code;
    code.reserve(program_.code.size());
    for (Instruction& i : program_.code) rewrite(i, code);
    program_.code = std::move(code);
  }

 private:
  struct Home {
    bool spilled = false;
    int32_t offset = kNowhere;
    Instruction again;  // where there is no slot
  };

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
      if (!is_virtual(v) || v - kFirstVirtual >= home_.size() || !home_[v - kFirstVirtual].spilled)
        continue;
      auto use = std::find_if(uses.begin(), uses.end(), [v](const Use& u) { return u.reg == v; });
      if (use == uses.end()) {
        uses.push_back({v, program_.fresh(program_.of(v).kind, program_.of(v).bits)});
        use = uses.end() - 1;
      }
      use->read |= reads(o.access);
      use->written |= writes(o.access);
      *o.reg = use->temporary;
    }
    return uses;
  }

  void rewrite(Instruction& i, std::vector<Instruction>& code) {
    const SmallVector<Use, 8> uses = uses_in(i);
    for (const Use& u : uses) {
      const Home& home = home_[u.reg - kFirstVirtual];
      if (u.written && home.offset == kNowhere) return;  // computed again where it is used
      if (u.read) code.push_back(load(home, program_.of(u.reg), u.temporary));
    }
    code.push_back(i);
    for (const Use& u : uses)
      if (u.written)
        code.push_back(store(home_[u.reg - kFirstVirtual], program_.of(u.reg), u.temporary));
  }

  Instruction store(const Home& home, MachineProgram::Virtual type, Reg from) const {
    return set_.spill(type.kind, type.bits, from, home.offset);
  }
  Instruction load(const Home& home, MachineProgram::Virtual type, Reg to) const {
    if (home.offset != kNowhere) return set_.reload(type.kind, type.bits, to, home.offset);
    Instruction again = home.again;
    again.regs[0] = to;
    return again;
  }

  MachineProgram& program_;
  const InstructionSet& set_;
  std::vector<Home> home_;
};

void apply(MachineProgram& p, const InstructionSet& set, std::span<const Reg> assigned) {
  std::vector<Instruction> code;
  code.reserve(p.code.size());
  for (Instruction& i : p.code) {
    for (const RegisterUse& o : set.operands(i))
      if (is_virtual(*o.reg)) *o.reg = assigned[*o.reg - kFirstVirtual];
    if (!set.is_move(i) || i.regs[0] != i.regs[1]) code.push_back(i);
  }
  p.code = std::move(code);
}

}  // namespace

void allocate(MachineProgram& program, const InstructionSet& set) {
  const size_t first_temporary = program.registers.size();
  for (;;) {
    Intervals intervals(program, set, first_temporary);
    Scan scan(program, set, intervals.of);
    scan.run();
    if (scan.spilled.empty()) {
#ifdef WEFT_DEV
      check_assignment(program, scan.assigned, set);
#endif
      return apply(program, set, scan.assigned);
    }
    Spiller(program, set, intervals.of, scan.spilled).run();
  }
}

}  // namespace weft::lower
