#include "weft/render/x86.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/function_ref.h"
#include "weft/isa/x86.h"

namespace weft {
namespace {

using x86::Form;

constexpr Reg kCalleeSaved[] = {3, 5, 12, 13, 14, 15};  // rbx, rbp, r12 to r15
constexpr int64_t kCacheLine = 64;

/// General registers that the program names.
uint32_t named_registers(const MachineProgram& p) {
  uint32_t named = 0;
  auto note = [&named](Reg r) {
    if (r != kNoReg) named |= uint32_t{1} << r;
  };
  for (const Instruction& i : p.code) {
    if (i.form >= x86::kForms) continue;
    const x86::Description& d = x86::describe(i);
    for (size_t k = 0; k < d.operand_count; ++k)
      if (d.operands[k].kind == RegClass::General) note(i.regs[k]);
    if (i.has_memory) note(i.address.base), note(i.address.index);
  }
  return named;
}

/// The program between the instructions that make and undo its frame.
void each_instruction(const MachineProgram& p, FunctionRef<void(const Instruction&)> f) {
  const uint32_t named = named_registers(p);
  std::vector<Instruction> undo;
  for (Reg r : kCalleeSaved) {
    if ((named >> r & 1) == 0) continue;
    f(x86::make(Form::Push, 64, {r}));
    undo.insert(undo.begin(), x86::make(Form::Pop, 64, {r}));
  }
  if (p.frame_bytes > 0) {
    f(x86::make(Form::SubI, 64, {x86::kRsp}, p.frame_bytes));
    undo.insert(undo.begin(), x86::make(Form::AddI, 64, {x86::kRsp}, p.frame_bytes));
  }
  for (const Instruction& i : p.code) f(i);
  for (const Instruction& i : undo) f(i);
  f(x86::make(Form::VZeroupper, 0, {}));
  f(x86::make(Form::Ret, 0, {}));
}

}  // namespace

std::string encode_x86(const MachineProgram& program) {
  x86::Encoder encoder;
  each_instruction(program, [&](const Instruction& i) { encoder.emit(i); });
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
  each_instruction(program, [&](const Instruction& i) {
    text += strformat("{}{}\n", i.form == kLabel ? "" : "  ", x86::print(i));
  });
  return text;
}

}  // namespace weft
