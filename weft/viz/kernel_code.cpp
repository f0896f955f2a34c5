#include "weft/viz/kernel_code.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/codegen/codegen.h"
#include "weft/isa/x86.h"
#include "weft/viz/state.h"

namespace weft::viz {
namespace {

using codegen::kNoLoop;

constexpr size_t kMostLines = size_t{1} << 18;

/// The last pass of code generation; an Error where there is none.
const PassRow& last_codegen(const Session::Data& data, uint32_t kernel) {
  const KernelRow& k = data.kernels[kernel];
  for (size_t i = k.passes.size(); i-- > 0;) {
    const PassRow& pass = data.passes[k.passes[i]];
    if (pass.name.starts_with("codegen.") && pass.after != 0) return pass;
  }
  fail("viz.parameter",
       "of kernel {} no machine code of ours is recorded: its target is '{}'; the view kernel has "
       "the texts that there are",
       kernel, k.target.substr(0, 64));
}

MachineProgram program_of(const Session::Data& data, const PassRow& pass) {
  NodeSource nodes(data, pass);
  const StateView state = state_of(data, pass.after, nodes);
  if (state.kind != StateParts::Kind::Machine)
    fail("viz.damaged", "{}: what {} left is no machine code", data.path, pass.name);
  StoredMachine stored = machine_of(state, data.path);
  if (!is_allocated(stored.program))
    fail("viz.parameter", "code generation ended before registers were given");
  if (stored.program.code.size() > kMostLines)
    fail("viz.limit", "the kernel has {} instructions; at most {} are shown",
         stored.program.code.size(), kMostLines);
  return std::move(stored.program);
}

std::vector<CodeLine> lines_of(const MachineProgram& program, Core core, std::string_view what) {
  Target target;
  target.name = "x86";  // machine_of() knows no other
  try {
    return back_end_of(target).lines(program, core);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Internal) throw;
    fail("viz.damaged", "{}: an instruction has no encoding", what);
  }
}

uint32_t hottest(const KernelCode& code) {
  uint32_t best = kNoLoop;
  const auto rank = [&](uint32_t loop) {
    return std::pair(code.flow.loops[loop].depth, code.estimates[loop].cycles());
  };
  for (uint32_t i = 0; i < code.flow.loops.size(); ++i)
    if (best == kNoLoop || rank(i) > rank(best)) best = i;
  return best;
}

}  // namespace

KernelCode kernel_code(const Session::Data& data, uint32_t kernel) {
  const MachineProgram program = program_of(data, last_codegen(data, kernel));
  KernelCode out;
  out.frame_bytes = program.frame_bytes;
  out.in_memory = program.in_memory;
  out.rematerialised = program.rematerialised;
  out.core = core_named_in(data.processes[data.kernels[kernel].process].machine);
  out.lines = lines_of(program, out.core, data.path);
  out.flow = codegen::control_flow(out.lines);
  out.lives = codegen::register_lives(out.lines, out.flow, x86::instruction_set());
  for (const std::vector<Instruction>& body : codegen::loop_bodies(out.lines, out.flow))
    out.estimates.push_back(x86::estimate_loop(body, out.core));
  out.hot = hottest(out);
  const Bytes code = data.kernels[kernel].code;
  const CodeLine& last = out.lines.back();
  if (last.offset + last.bytes <= code.size()) out.bytes = code;
  return out;
}

bool has_kernel_code(const Session::Data& data, uint32_t kernel) {
  try {
    program_of(data, last_codegen(data, kernel));
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string KernelCode::text(size_t line) const { return x86::print(lines[line].instruction); }

Bytes KernelCode::bytes_of(size_t line) const {
  return bytes.empty() ? bytes : bytes.subspan(lines[line].offset, lines[line].bytes);
}

std::string KernelCode::block_name(size_t block) const {
  const codegen::CodeBlock& b = flow.blocks[block];
  std::string out = strformat("B{}", block);
  for (uint32_t i = b.begin; i < b.end && lines[i].instruction.form >= kLabel; ++i)
    if (lines[i].instruction.form == kLabel) {
      append_format(out, " .L{}", lines[i].instruction.label);
      break;
    }
  return out;
}

std::string register_name(const codegen::NamedRegister& reg) {
  return x86::register_name(reg.kind, reg.number, reg.kind == RegClass::General ? 64 : reg.bits);
}

}  // namespace weft::viz
