#include "weft/codegen/machine/intervals.h"

#include <algorithm>
#include <map>

namespace weft::codegen {
namespace {

class Finder {
 public:
  Finder(MachineProgram& p, const InstructionSet& set, size_t first_temporary)
      : program_(p), set_(set) {
    of_.reserve(p.registers.size());
    by_begin_.reserve(p.registers.size());
    for (size_t v = 0; v < p.registers.size(); ++v) {
      of_.emplace_back(kFirstVirtual + static_cast<Reg>(v), p.registers[v], v >= first_temporary);
      if (of_[v].fixed == kNoReg) continue;
      touch(of_[v], 0, 0);  // its value comes from outside
      of_[v].uses = 1;
    }
  }

  Intervals run() {
    const size_t size = program_.code.size();
    skips_.reserve(size);
    first_.reserve(size + 1);
    operands_.reserve(3 * size);
    counted_.resize(of_.size(), SIZE_MAX);
    made_.resize(of_.size());
    for (size_t at = 0; at < size; ++at) visit(static_cast<int32_t>(at));
    first_.push_back(operands_.size());
    open_.resize(of_.size(), kNowhere);
    for (size_t at = size; at-- > 0;) find_ranges(static_cast<int32_t>(at));
    for (Interval& v : of_) {
      if (open_[v.reg - kFirstVirtual] != kNowhere) close(v, v.begin);
      v.weight = weight_of(v);
    }
    sort_by_begin();
    return {std::move(of_), std::move(by_begin_)};
  }

 private:
  /// A virtual register in an instruction.
  struct Operand {
    uint32_t v;  // without kFirstVirtual
    OperandAccess access;
  };
  struct Loop {
    int32_t begin;
    float around;                   // weight of an access outside of it
    std::vector<uint32_t> carried;  // have a value before it, and are used in it
  };

  std::span<const Operand> operands(int32_t begin, int32_t end) const {
    const size_t first = first_[static_cast<size_t>(begin)];
    const auto e = static_cast<size_t>(end);
    const size_t last = e < first_.size() ? first_[e] : operands_.size();
    return {operands_.data() + first, last - first};
  }

  /// Forward: extent, weight, and what loops carry from one iteration to the next.
  void visit(int32_t at) {
    Instruction& i = program_.code[static_cast<size_t>(at)];
    first_.push_back(operands_.size());
    skips_.push_back(skips_.empty() ? kNowhere : skips_.back());
    if (i.form >= kLabel || i.label >= 0) ++stretch_;
    if (i.form >= kLabel) return visit_mark(i, at);
    if (i.label >= 0) begin_skip(at, i.label);
    for (const RegisterUse& o : set_.operands(i)) {
      if (!is_virtual(*o.reg)) continue;
      operands_.push_back({*o.reg - kFirstVirtual, o.access});
      Interval& v = of_[operands_.back().v];
      if (o.fixed != kNoReg) v.fixed = o.fixed;
      const bool read = reads(o.access), written = writes(o.access);
      touch(v, 2 * at + (read ? 0 : 1), 2 * at + (written ? 1 : 0));
      if (read) v.uses += weight_, check_inputs(v);
      if (!written) continue;
      v.uses += weight_;
      ++v.writes;
      v.write = at;
      note_write(v, i);
    }
    if (set_.stores(i)) ++stretch_;
    if (!set_.is_move(i) || !is_virtual(i.regs[0]) || !is_virtual(i.regs[1])) return;
    of_[i.regs[0] - kFirstVirtual].hint = i.regs[1];
    of_[i.regs[1] - kFirstVirtual].hint = i.regs[0];
  }

  // ---- values that may be rematerialised: at every read, what they are made of is as it was

  struct Made {
    int32_t stretch = kNowhere;             // where it was written; kNowhere: may be had anywhere
    int base_writes = 0, index_writes = 0;  // of the registers of its address, until then
    float weight = 0;                       // of an access there
  };

  int writes_of(Reg r) const { return is_virtual(r) ? of_[r - kFirstVirtual].writes : 0; }

  void note_write(Interval& v, const Instruction& i) {
    const Repeat repeat = set_.repeat(i);
    v.rematerialisable = v.writes == 1 && v.fixed == kNoReg && repeat != Repeat::Never;
    if (repeat != Repeat::WhileInputsStay) return;
    made_[v.reg - kFirstVirtual] = {stretch_, writes_of(i.address.base), writes_of(i.address.index),
                                    weight_};
  }

  void check_inputs(Interval& v) {
    const Made& made = made_[v.reg - kFirstVirtual];
    if (!v.rematerialisable || made.stretch == kNowhere) return;
    const Address& from = program_.code[static_cast<size_t>(v.write)].address;
    v.rematerialisable = made.stretch == stretch_ && made.base_writes == writes_of(from.base) &&
                         made.index_writes == writes_of(from.index);
  }

  void visit_mark(const Instruction& i, int32_t at) {
    if (i.form == kLabel && i.label >= 0) end_skip(i.label);
    if (i.form == kLoopBegin) {
      inside_.push_back(loops_.size());
      loops_.push_back({at, weight_, {}});
      weight_ *= rounds_of(i);
    }
    if (i.form == kLoopEnd) leave_loop(at);
  }

  /// How often an access in a loop is weighted: beyond some hundred rounds it is all that counts.
  static float rounds_of(const Instruction& begin) {
    constexpr int64_t kUnknown = 10, kMost = 100;
    return static_cast<float>(begin.immediate > 0 ? std::min(begin.immediate, kMost) : kUnknown);
  }

  /// What is first met later begins later, but for the operands of one instruction.
  void sort_by_begin() {
    for (size_t i = 1; i < by_begin_.size(); ++i) {
      const uint32_t v = by_begin_[i];
      size_t k = i;
      for (; k > 0 && before(v, by_begin_[k - 1]); --k) by_begin_[k] = by_begin_[k - 1];
      by_begin_[k] = v;
    }
  }
  bool before(uint32_t a, uint32_t b) const {
    const int32_t x = of_[a].begin, y = of_[b].begin;
    return x != y ? x < y : a < b;
  }

  void touch(Interval& v, int32_t first, int32_t last) {
    if (!v.used()) by_begin_.push_back(v.reg - kFirstVirtual);
    v.begin = std::min(v.begin, first);
    v.end = std::max(v.end, last);
  }

  void leave_loop(int32_t at) {
    const size_t number = inside_.back();
    Loop& loop = loops_[number];
    inside_.pop_back();
    ends_.push_back(number);
    weight_ = loop.around;
    for (const Operand& o : operands(loop.begin, at)) {
      Interval& v = of_[o.v];
      if (v.begin >= 2 * loop.begin || counted_[o.v] == number) continue;
      counted_[o.v] = number;
      v.end = std::max(v.end, 2 * at + 1);
      loop.carried.push_back(o.v);
    }
  }

  // Instructions that a forward jump may skip: skips_ has, per instruction, where the innermost
  // such stretch began.
  void begin_skip(int32_t at, int32_t label) {
    if (static_cast<size_t>(label) < bound_.size() && bound_[static_cast<size_t>(label)])
      return;  // a loop's way back
    open_skips_.push_back({at, label});
    skips_.back() = at;
  }
  void end_skip(int32_t label) {
    const auto number = static_cast<size_t>(label);
    if (number >= bound_.size()) bound_.resize(number + 1);
    bound_[number] = true;
    std::erase_if(open_skips_, [label](const auto& s) { return s.second == label; });
    skips_.back() = open_skips_.empty() ? kNowhere : open_skips_.back().first;
  }

  /// Backward: a read opens a range, a write ends it. Where the write may be skipped and an older
  /// value be needed instead, that one's range begins at the jump.
  void find_ranges(int32_t at) {
    const uint16_t form = program_.code[static_cast<size_t>(at)].form;
    if (const auto older = older_.find(at); older != older_.end())
      for (uint32_t v : older->second) open(v, 2 * at);
    if (form == kLoopEnd) {
      inside_.push_back(ends_.back());
      ends_.pop_back();
      for (uint32_t v : loops_[inside_.back()].carried) open(v, 2 * at + 1);
    }
    if (form == kLoopBegin) {
      for (uint32_t v : loops_[inside_.back()].carried) open(v, 2 * at);
      inside_.pop_back();
    }
    const std::span<const Operand> uses = operands(at, at + 1);
    for (const Operand& o : uses) {
      if (!writes(o.access)) continue;
      open(o.v, 2 * at + 1);
      if (o.access != OperandAccess::Write) continue;
      close(of_[o.v], 2 * at + 1);
      const int32_t jump = skips_[static_cast<size_t>(at)];
      if (of_[o.v].begin < 2 * jump) older_[jump].push_back(o.v);
    }
    for (const Operand& o : uses)
      if (reads(o.access)) open(o.v, 2 * at);
  }

  void open(uint32_t v, int32_t end) {
    if (open_[v] == kNowhere) open_[v] = end;
  }
  void close(Interval& v, int32_t begin) {
    v.ranges.push_back({begin, open_[v.reg - kFirstVirtual]});
    open_[v.reg - kFirstVirtual] = kNowhere;
  }

  float weight_of(const Interval& v) const {
    if (v.temporary) return std::numeric_limits<float>::infinity();
    int32_t taken = 1;
    for (const Range& r : v.ranges) taken += r.end - r.begin;
    return (v.uses - saved(v)) / static_cast<float>(taken);
  }
  /// What is rematerialised in one stretch is loaded for its first read, not before.
  float saved(const Interval& v) const {
    const bool local = v.rematerialisable && made_[v.reg - kFirstVirtual].stretch != kNowhere;
    return local ? 2 * made_[v.reg - kFirstVirtual].weight : 0;
  }

  MachineProgram& program_;
  const InstructionSet& set_;
  std::vector<Interval> of_;
  std::vector<uint32_t> by_begin_;
  std::vector<Operand> operands_;
  std::vector<size_t> first_;  // of each instruction's operands
  std::vector<Loop> loops_;
  std::vector<size_t> inside_, ends_;  // loops that are open; in the order they end
  std::vector<size_t> counted_;        // the last loop that carries a register
  std::vector<int32_t> skips_, open_;
  std::vector<std::pair<int32_t, int32_t>> open_skips_;  // where, to which label
  std::vector<bool> bound_;                              // labels that were passed
  std::map<int32_t, std::vector<uint32_t>> older_;  // by jump: what is needed where it is taken
  std::vector<Made> made_;
  int32_t stretch_ = 0;  // counts stretches of code that run whole and change no memory
  float weight_ = 1;
};

}  // namespace

bool overlap(const Interval& a, size_t count, const Interval& b) {
  if (a.begin > b.end || b.begin > a.end) return false;
  for (size_t i = count, k = b.ranges.size(); i > 0 && k > 0;) {
    const Range x = a.ranges[i - 1], y = b.ranges[k - 1];
    if (x.begin <= y.end && y.begin <= x.end) return true;
    (x.end < y.begin ? i : k)--;
  }
  return false;
}

Intervals find_intervals(MachineProgram& program, const InstructionSet& set,
                         size_t first_temporary) {
  return Finder(program, set, first_temporary).run();
}

}  // namespace weft::codegen
