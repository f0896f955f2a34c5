#include "weft/codegen/machine/dead_code.h"

#include <algorithm>

namespace weft::codegen {
namespace {

/// Marks what has an effect, and from there whatever writes a register that is read.
class Marker {
 public:
  Marker(MachineProgram& p, const InstructionSet& set)
      : needed_(p.code.size()), program_(p), set_(set), writers_(p.registers.size()) {
    for (size_t at = 0; at < p.code.size(); ++at) {
      bool only_registers = false;
      for (const RegisterUse& o : set.operands(p.code[at])) {
        if (!writes(o.access)) continue;
        only_registers = is_virtual(*o.reg);
        if (!only_registers) break;
        writers_[*o.reg - kFirstVirtual].push_back(at);
      }
      if (!only_registers) need(at);
    }
  }

  std::vector<char> run() {
    while (!open_.empty()) {
      const size_t at = open_.back();
      open_.pop_back();
      for (const RegisterUse& o : set_.operands(program_.code[at])) {
        if (!reads(o.access) || !is_virtual(*o.reg)) continue;
        for (size_t writer : writers_[*o.reg - kFirstVirtual]) need(writer);
        writers_[*o.reg - kFirstVirtual].clear();
      }
    }
    return std::move(needed_);
  }

 private:
  void need(size_t at) {
    if (needed_[at]) return;
    needed_[at] = 1;
    open_.push_back(at);
  }

  std::vector<char> needed_;
  MachineProgram& program_;
  const InstructionSet& set_;
  std::vector<SmallVector<size_t, 2>> writers_;  // by virtual register
  std::vector<size_t> open_;
};

}  // namespace

void remove_dead_code(MachineProgram& program, const InstructionSet& set) {
  const std::vector<char> needed = Marker(program, set).run();
  size_t kept = 0;
  for (size_t at = 0; at < needed.size(); ++at)
    if (needed[at]) program.code[kept++] = program.code[at];
  program.code.resize(kept);
}

}  // namespace weft::codegen
