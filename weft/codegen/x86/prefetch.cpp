#include "weft/codegen/x86/prefetch.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "weft/isa/x86.h"

namespace weft::codegen {
namespace {

constexpr int32_t kLine = 64;  // bytes that one prefetch brings

/// Where each virtual register is written.
class Writes {
 public:
  Writes(MachineProgram& program, const InstructionSet& set) : at_(program.registers.size()) {
    for (size_t i = 0; i < program.code.size(); ++i)
      for (const RegisterUse& use : set.operands(program.code[i]))
        if (writes(use.access) && is_virtual(*use.reg)) at_[*use.reg - kFirstVirtual].push_back(i);
  }
  bool any(Reg r, size_t from, size_t to = SIZE_MAX) const {
    if (r == kNoReg) return false;
    if (!is_virtual(r)) return true;
    const std::vector<size_t>& at = at_[r - kFirstVirtual];
    const auto next = std::ranges::lower_bound(at, from);
    return next != at.end() && *next < to;
  }
  bool any(const Address& a, size_t from, size_t to = SIZE_MAX) const {
    return any(a.base, from, to) || any(a.index, from, to);
  }

 private:
  std::vector<std::vector<size_t>> at_;  // by number - kFirstVirtual
};

bool ends_straight_line(const Instruction& i) {
  return i.form >= x86::kForms || x86::describe(i).port == x86::Port::Branch;
}

bool reads_memory(const Instruction& i, const InstructionSet& set) {
  return i.has_memory && i.address.label < 0 && !set.stores(i) &&
         i.form != static_cast<uint16_t>(x86::Form::Lea);
}

/// Addresses that are read from `from` on until control may go elsewhere, known where the loop at
/// `begin` begins and others in every iteration of the loop around it.
std::vector<Address> read_after(size_t from, size_t begin, size_t around, const Writes& written,
                                const MachineProgram& program, const InstructionSet& set) {
  std::vector<Address> found;
  for (size_t i = from; i < program.code.size() && !ends_straight_line(program.code[i]); ++i) {
    const Address& a = program.code[i].address;
    if (reads_memory(program.code[i], set) && !written.any(a, begin, i) && written.any(a, around))
      found.push_back(a);
  }
  return found;
}

/// One of each line, as far as addresses tell.
void keep_lines(std::vector<Address>& all) {
  const auto place = [](const Address& a) { return std::tuple(a.base, a.index, a.scale); };
  std::ranges::sort(all, {}, [&](const Address& a) {
    return std::tuple_cat(place(a), std::tuple(a.displacement));
  });
  std::vector<Address> lines;
  for (const Address& a : all)
    if (lines.empty() || place(lines.back()) != place(a) ||
        a.displacement - lines.back().displacement >= kLine)
      lines.push_back(a);
  all = std::move(lines);
}

}  // namespace

void prefetch_after_loops(MachineProgram& program, const InstructionSet& set) {
  const Writes written(program, set);
  std::vector<std::vector<Address>> before(program.code.size());
  std::vector<size_t> open;
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (program.code[i].form == kLoopBegin) open.push_back(i);
    if (program.code[i].form != kLoopEnd) continue;
    const size_t begin = open.back(), after = i + 2;  // behind the label where the loop ends
    open.pop_back();
    if (open.empty()) continue;
    before[begin] = read_after(after, begin, open.back(), written, program, set);
    keep_lines(before[begin]);
  }
  std::vector<Instruction> code;
  for (size_t i = 0; i < program.code.size(); ++i) {
    for (const Address& a : before[i]) code.push_back(x86::make(x86::Form::Prefetcht0, 8, {}, a));
    code.push_back(program.code[i]);
  }
  program.code = std::move(code);
}

}  // namespace weft::codegen
