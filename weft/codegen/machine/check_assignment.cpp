// The symbolic check of an allocation.
#include <map>

#include "weft/base/error.h"
#include "weft/codegen/machine/allocate.h"

namespace weft::codegen {
namespace {

class Checker {
 public:
  Checker(const MachineProgram& p, std::span<const Reg> assignment, const InstructionSet& set)
      : program_(p), assignment_(assignment), set_(set) {}

  void run() {
    for (size_t v = 0; v < program_.registers.size(); ++v)
      if (program_.registers[v].fixed != kNoReg)
        holds_[place(kFirstVirtual + static_cast<Reg>(v))] = kFirstVirtual + static_cast<Reg>(v);
    run(0, program_.code.size());
  }

 private:
  using Place = std::pair<RegClass, Reg>;
  using State = std::map<Place, Reg>;  // which virtual register each of the machine's holds

  Place place(Reg v) const { return {program_.of(v).kind, assignment_[v - kFirstVirtual]}; }

  /// Runs instructions [begin, end); a loop's body until what iterations begin with is settled.
  void run(size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      if (program_.code[at].form != kLoopBegin) {
        step(at);
        continue;
      }
      const size_t last = end_of_loop(at);
      for (State entry = holds_, common;; entry = holds_ = common) {
        run(at + 1, last);
        common = in_both(entry, holds_);
        if (common == entry) break;
      }
      at = last;
    }
  }

  static State in_both(const State& a, const State& b) {
    State both;
    for (const auto& [place, value] : a)
      if (const auto other = b.find(place); other != b.end() && other->second == value)
        both[place] = value;
    return both;
  }

  size_t end_of_loop(size_t at) const {
    int depth = 0;
    for (size_t i = at;; ++i) {
      depth += program_.code[i].form == kLoopBegin;
      depth -= program_.code[i].form == kLoopEnd;
      if (depth == 0) return i;
    }
  }

  void step(size_t at) {
    Instruction i = program_.code[at];
    const RegisterUses operands = set_.operands(i);
    for (const RegisterUse& o : operands) {
      if (!is_virtual(*o.reg) || !reads(o.access)) continue;
      const auto held = holds_.find(place(*o.reg));
      WEFT_CHECK(held != holds_.end() && held->second == *o.reg,
                 "instruction {}, {}: register {} does not hold its value", at, set_.print(i),
                 *o.reg - kFirstVirtual);
    }
    for (const RegisterUse& o : operands) {
      if (!is_virtual(*o.reg) || !writes(o.access)) continue;
      WEFT_CHECK(o.fixed == kNoReg || place(*o.reg).second == o.fixed,
                 "instruction {}, {}: not in the register it needs", at, set_.print(i));
      holds_[place(*o.reg)] = *o.reg;
    }
  }

  const MachineProgram& program_;
  std::span<const Reg> assignment_;
  const InstructionSet& set_;
  State holds_;
};

}  // namespace

void check_assignment(const MachineProgram& program, std::span<const Reg> assignment,
                      const InstructionSet& set) {
  Checker(program, assignment, set).run();
}

}  // namespace weft::codegen
