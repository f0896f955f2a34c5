#include "weft/codegen/x86/frame.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/function_ref.h"
#include "weft/codegen/machine/flow.h"
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
    // It begins with a line, which no vector crosses then, and where the stack was lies behind it.
    const Address before{.base = x86::kRsp, .displacement = p.frame_bytes};
    f(x86::make(Form::Mov, 64, {x86::kRax, x86::kRsp}));
    f(x86::make(Form::SubI, 64, {x86::kRsp}, p.frame_bytes + 8));
    f(x86::make(Form::AndI, 64, {x86::kRsp}, -kCacheLine));
    f(x86::make(Form::MovStore, 64, {kNoReg, x86::kRax}, before));
    undo.insert(undo.begin(), x86::make(Form::MovLoad, 64, {x86::kRsp}, before));
  }
  for (const Instruction& i : p.code) f(i);
  for (const Instruction& i : undo) f(i);
  f(x86::make(Form::VZeroupper, 0, {}));
  f(x86::make(Form::Ret, 0, {}));
}

Flow flow_of(const Instruction& i) {
  if (static_cast<Form>(i.form) == Form::Ret) return Flow::Return;
  bool jumps = false, asks = false;
  for (const x86::Description::Operand& o : x86::describe(i).operands) {
    jumps |= o.role == x86::Role::Jump;
    asks |= o.role == x86::Role::Condition;
  }
  return !jumps ? Flow::Next : asks ? Flow::Branch : Flow::Jump;
}

FrameUse frame_use(const Instruction& i) {
  if (!i.has_memory || i.address.base != x86::kRsp) return FrameUse::None;
  const auto [loads, stores] = x86::memory_use(i);
  return stores ? FrameUse::Spill : loads ? FrameUse::Reload : FrameUse::None;
}

std::vector<CodeLine> lines_without_places(const MachineProgram& program, Core core) {
  std::vector<CodeLine> out;
  each_instruction(program, [&](const Instruction& i) {
    CodeLine& line = out.emplace_back(i);
    if (i.form >= x86::kForms) return;
    line.flow = flow_of(i);
    // Behind the frame lies where the stack was, which is no spilled value.
    if (i.address.displacement < program.frame_bytes) line.frame = frame_use(i);
    line.latency = x86::latency(i, core);
    line.port = x86::port_name(i);
  });
  return out;
}

}  // namespace

std::string encode_x86(const MachineProgram& program) {
  x86::Encoder encoder;
  each_instruction(program, [&](const Instruction& i) { encoder.emit(i); });
  if (!program.data.empty()) encoder.align(kCacheLine);
  // The longest first: no vector crosses a line.
  std::vector<const MachineProgram::Data*> data;
  for (const MachineProgram::Data& d : program.data) data.push_back(&d);
  std::ranges::sort(data, {}, [](const MachineProgram::Data* d) {
    return std::pair(-std::ssize(d->bytes), d->label);
  });
  for (const MachineProgram::Data* d : data) {
    encoder.bind(d->label);
    encoder.data(d->bytes);
  }
  const std::vector<uint8_t> bytes = encoder.finish();
  return {bytes.begin(), bytes.end()};
}

std::vector<CodeLine> lines_x86(const MachineProgram& program, Core core) {
  std::vector<CodeLine> out = lines_without_places(program, core);
  x86::Encoder encoder;  // labels stay open: distances have a fixed size
  for (CodeLine& line : out) {
    line.offset = static_cast<uint32_t>(encoder.size());
    if (line.instruction.form < x86::kForms) encoder.emit(line.instruction);
    line.bytes = static_cast<uint32_t>(encoder.size()) - line.offset;
  }
  return out;
}

std::string list_x86(const MachineProgram& program, Core core) {
  std::string text =
      strformat("# {} values in memory, {} computed again where they are used, {} bytes of frame\n",
                program.in_memory, program.rematerialised, program.frame_bytes);
  const std::vector<CodeLine> lines = lines_without_places(program, core);
  const std::vector<std::vector<Instruction>> loops = loop_bodies(lines, control_flow(lines));
  size_t loop = 0;
  for (const CodeLine& l : lines) {
    const uint16_t form = l.instruction.form;
    const std::string line = x86::print(l.instruction);
    if (form == kLoopBegin)
      append_format(text, "  {}: {}\n", line, text_of(x86::estimate_loop(loops[loop++], core)));
    else if (form >= x86::kForms)
      append_format(text, "{}{}\n", form == kLabel ? "" : "  ", line);
    else
      append_format(text, "  {:<56} ; {:>2} {}\n", line, l.latency, l.port);
  }
  return text;
}

}  // namespace weft::codegen
