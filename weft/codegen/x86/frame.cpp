#include "weft/codegen/x86/frame.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/function_ref.h"
#include "weft/isa/x86.h"
#include "weft/isa/x86_estimate.h"

namespace weft::codegen {
namespace {

using x86::Form;

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
  for (Reg r : x86::kCalleeSaved) {
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

std::string summary(const x86::Estimate& e) {
  return strformat("{} instructions, {:.1f} cycles ({} {:.1f}, chain {:.1f}), {} bytes in, {} out",
                   e.instructions, e.cycles(), e.busiest, e.ports, e.chain, e.loaded, e.stored);
}

/// Per loop in the order in which they begin: what an iteration takes without inner loops.
std::vector<std::string> loop_summaries(const MachineProgram& p) {
  std::vector<std::vector<Instruction>> bodies;
  std::vector<size_t> open;
  for (const Instruction& i : p.code) {
    if (i.form == kLoopBegin) open.push_back(bodies.size()), bodies.emplace_back();
    if (i.form == kLoopEnd) open.pop_back();
    if (!open.empty() && i.form < x86::kForms) bodies[open.back()].push_back(i);
  }
  std::vector<std::string> out;
  for (const std::vector<Instruction>& body : bodies)
    out.push_back(summary(x86::estimate_loop(body)));
  return out;
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
  std::string text =
      strformat("# {} values in memory, {} computed again where they are used, {} bytes of frame\n",
                program.in_memory, program.rematerialised, program.frame_bytes);
  const std::vector<std::string> loops = loop_summaries(program);
  size_t loop = 0;
  each_instruction(program, [&](const Instruction& i) {
    const std::string line = x86::print(i);
    if (i.form == kLoopBegin)
      append_format(text, "  {}: {}\n", line, loops[loop++]);
    else if (i.form >= x86::kForms)
      append_format(text, "{}{}\n", i.form == kLabel ? "" : "  ", line);
    else
      append_format(text, "  {:<56} ; {:>2} {}\n", line, x86::latency(i), x86::port_name(i));
  });
  return text;
}

}  // namespace weft::codegen
