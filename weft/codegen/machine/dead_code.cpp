#include "weft/codegen/machine/dead_code.h"

#include <algorithm>

namespace weft::codegen {
namespace {

/// Marks what has an effect, and from there whatever writes a register that is read.
class Marker {
 public:
  Marker(MachineProgram& p, const InstructionSet& set)
      : needed_(p.code.size()), writers_(p.registers.size()) {
    first_read_.reserve(p.code.size() + 1);
    for (size_t at = 0; at < p.code.size(); ++at) visit(p.code[at], at, set);
    first_read_.push_back(reads_.size());
  }

  std::vector<char> run() {
    while (!open_.empty()) {
      const size_t at = open_.back();
      open_.pop_back();
      for (size_t i = first_read_[at]; i < first_read_[at + 1]; ++i) {
        for (size_t writer : writers_[reads_[i]]) need(writer);
        writers_[reads_[i]].clear();
      }
    }
    return std::move(needed_);
  }

 private:
  void visit(Instruction& i, size_t at, const InstructionSet& set) {
    first_read_.push_back(reads_.size());
    bool to_virtual = false, to_others = false;
    for (const RegisterUse& o : set.operands(i)) {
      (is_virtual(*o.reg) ? to_virtual : to_others) |= writes(o.access);
      if (!is_virtual(*o.reg)) continue;
      const uint32_t v = *o.reg - kFirstVirtual;
      if (reads(o.access)) reads_.push_back(v);
      if (writes(o.access)) writers_[v].push_back(at);
    }
    if (!to_virtual || to_others) need(at);
  }

  void need(size_t at) {
    if (needed_[at]) return;
    needed_[at] = 1;
    open_.push_back(at);
  }

  std::vector<char> needed_;
  std::vector<uint32_t> reads_;  // virtual registers, instruction after instruction
  std::vector<size_t> first_read_;
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
