#include "weft/codegen/x86/prefetch.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/isa/x86.h"

namespace weft::codegen {
namespace {

constexpr int32_t kLine = 64;  // bytes that one prefetch brings

/// Where virtual registers that are asked about are written.
class Writes {
 public:
  explicit Writes(size_t registers) : asked_(registers), at_(registers) {}

  void ask(Reg r) {
    if (is_virtual(r)) asked_[r - kFirstVirtual] = 1;
  }
  void find(MachineProgram& program, const InstructionSet& set) {
    for (size_t i = 0; i < program.code.size(); ++i)
      for (const RegisterUse& use : set.operands(program.code[i]))
        if (writes(use.access) && is_virtual(*use.reg) && asked_[*use.reg - kFirstVirtual])
          at_[*use.reg - kFirstVirtual].push_back(i);
  }
  bool any(Reg r, size_t from, size_t to = SIZE_MAX) const {
    if (r == kNoReg) return false;
    if (!is_virtual(r)) return true;
    const SmallVector<size_t, 2>& at = at_[r - kFirstVirtual];
    const auto next = std::lower_bound(at.begin(), at.end(), from);
    return next != at.end() && *next < to;
  }
  bool any(const Address& a, size_t from, size_t to = SIZE_MAX) const {
    return any(a.base, from, to) || any(a.index, from, to);
  }

 private:
  std::vector<char> asked_;  // by number - kFirstVirtual
  std::vector<SmallVector<size_t, 2>> at_;
};

/// A loop in another, and what is read after it until control may go elsewhere.
struct Inner {
  size_t begin, around;
  std::vector<size_t> reads;
};

bool ends_straight_line(const Instruction& i) {
  return i.form >= x86::kForms || x86::describe(i).port == x86::Port::Branch;
}

bool is_prefetch(const Instruction& i) {
  return i.form == static_cast<uint16_t>(x86::Form::Prefetcht0) ||
         i.form == static_cast<uint16_t>(x86::Form::Prefetcht1);
}

bool reads_memory(const Instruction& i, const InstructionSet& set) {
  return i.has_memory && i.address.label < 0 && !set.stores(i) &&
         i.form != static_cast<uint16_t>(x86::Form::Lea);
}

std::vector<Inner> find_inner(const MachineProgram& program, const InstructionSet& set) {
  const std::vector<Instruction>& code = program.code;
  std::vector<Inner> found;
  std::vector<size_t> open;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].form == kLoopBegin) open.push_back(i);
    if (code[i].form != kLoopEnd) continue;
    const size_t begin = open.back();
    open.pop_back();
    if (open.empty()) continue;
    Inner loop{begin, open.back(), {}};
    // Behind the label where the loop ends.
    for (size_t k = i + 2; k < code.size() && !ends_straight_line(code[k]); ++k)
      if (reads_memory(code[k], set)) loop.reads.push_back(k);
    if (!loop.reads.empty()) found.push_back(std::move(loop));
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
  const std::vector<Inner> loops = find_inner(program, set);
  if (loops.empty()) return;
  Writes written(program.registers.size());
  for (const Inner& loop : loops)
    for (size_t i : loop.reads)
      for (Reg r : {program.code[i].address.base, program.code[i].address.index}) written.ask(r);
  written.find(program, set);
  std::vector<std::vector<Address>> before(program.code.size());
  for (const Inner& loop : loops) {
    // Known where the loop begins, and others in every iteration of the loop around it.
    for (size_t i : loop.reads) {
      const Address& a = program.code[i].address;
      if (!written.any(a, loop.begin, i) && written.any(a, loop.around))
        before[loop.begin].push_back(a);
    }
    keep_lines(before[loop.begin]);
  }
  std::vector<Instruction> code;
  code.reserve(program.code.size());
  for (size_t i = 0; i < program.code.size(); ++i) {
    for (const Address& a : before[i]) code.push_back(x86::make(x86::Form::Prefetcht0, 8, {}, a));
    code.push_back(program.code[i]);
  }
  program.code = std::move(code);
}

void spread_prefetches(MachineProgram& program) {
  constexpr size_t kMany = 4;
  std::vector<Instruction> code;
  code.reserve(program.code.size());
  for (auto next = program.code.begin(); next != program.code.end();) {
    const auto work = std::find_if_not(next, program.code.end(), is_prefetch);
    const auto many = static_cast<size_t>(work - next);
    if (many < kMany) {
      code.push_back(*next++);
      continue;
    }
    const auto end = std::find_if(work, program.code.end(), ends_straight_line);
    const auto before = std::max<size_t>(1, static_cast<size_t>(end - work) / many);
    for (auto at = work; at != end; ++at) {
      if (next != work && static_cast<size_t>(at - work) % before == 0) code.push_back(*next++);
      code.push_back(*at);
    }
    code.insert(code.end(), next, work);
    next = end;
  }
  program.code = std::move(code);
}

}  // namespace weft::codegen
