#include "weft/render/x86.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/isa/x86.h"

namespace weft {
namespace {

using x86::Form;

constexpr Reg kCalleeSaved[] = {3, 5, 12, 13, 14, 15};  // rbx, rbp, r12 to r15
constexpr int64_t kCacheLine = 64;

/// The program between the instructions that make and undo its frame.
std::vector<Instruction> whole_function(const MachineProgram& p) {
  std::vector<bool> used(16);
  for (Instruction i : p.code)
    for (const RegisterUse& o : x86::instruction_set().operands(i))
      if (o.kind == RegClass::General) used[*o.reg] = true;
  std::vector<Instruction> all, undo;
  for (Reg r : kCalleeSaved) {
    if (!used[r]) continue;
    all.push_back(x86::make(Form::Push, 64, {r}));
    undo.insert(undo.begin(), x86::make(Form::Pop, 64, {r}));
  }
  if (p.frame_bytes > 0) {
    all.push_back(x86::make(Form::SubI, 64, {x86::kRsp}, p.frame_bytes));
    undo.insert(undo.begin(), x86::make(Form::AddI, 64, {x86::kRsp}, p.frame_bytes));
  }
  all.insert(all.end(), p.code.begin(), p.code.end());
  all.insert(all.end(), undo.begin(), undo.end());
  all.push_back(x86::make(Form::VZeroupper, 0, {}));
  all.push_back(x86::make(Form::Ret, 0, {}));
  return all;
}

}  // namespace

std::string encode_x86(const MachineProgram& program) {
  x86::Encoder encoder;
  for (const Instruction& i : whole_function(program)) encoder.emit(i);
  if (!program.data.empty()) encoder.align(kCacheLine);
  for (const MachineProgram::Data& d : program.data) {
    encoder.bind(d.label);
    encoder.data(d.bytes);
  }
  const std::vector<uint8_t> bytes = encoder.finish();
  return {bytes.begin(), bytes.end()};
}

std::string list_x86(const MachineProgram& program) {
  std::string text;
  for (const Instruction& i : whole_function(program))
    text += strformat("{}{}\n", i.form == kLabel ? "" : "  ", x86::print(i));
  return text;
}

}  // namespace weft
