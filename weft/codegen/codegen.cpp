#include "weft/codegen/codegen.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/codegen/machine/allocate.h"
#include "weft/codegen/machine/dead_code.h"
#include "weft/codegen/x86/frame.h"
#include "weft/codegen/x86/select.h"
#include "weft/graph/print.h"
#include "weft/isa/machine_binary.h"
#include "weft/isa/x86.h"

namespace weft {
namespace {

const InstructionSet& x86_instructions(const Target& target) {
  return x86::instruction_set(target.vector_bits == 512);
}

constexpr BackEnd kBackEnds[] = {
    {"x86", x86_instructions, codegen::select_x86, codegen::encode_x86, codegen::list_x86,
     codegen::lines_x86},
};

}  // namespace

const BackEnd& back_end_of(const Target& target) {
  const auto* row = std::find_if(std::begin(kBackEnds), std::end(kBackEnds),
                                 [&](const BackEnd& b) { return b.target == target.name; });
  WEFT_CHECK(row != std::end(kBackEnds), "target {} has no machine code", target.name);
  return *row;
}

namespace {

using codegen::State;

constexpr Pass<State> kPasses[] = {
    {"codegen.select", "instructions over virtual registers",
     [](State& s) { s.code = s.back_end.select(s.program, s.target); }},
    Pass<State>{"codegen.remove_dead_code", "what was folded into others is gone",
                [](State& s) { codegen::remove_dead_code(s.code, s.instructions); }}
        .as_optional(),
    {"codegen.allocate", "the machine's registers, and a frame for what did not fit",
     [](State& s) { codegen::allocate(s.code, s.instructions); }},
    {"codegen.encode", "bytes: the function with its frame, constants behind it",
     [](State& s) { s.bytes = s.back_end.encode(s.code); }},
};

}  // namespace

namespace codegen {

PassView State::view() const {
  return {static_cast<int64_t>(code.code.size()), hash_text(bytes, hash_text(text()))};
}

std::string State::text() const {
  if (code.code.empty()) return print_program(program);
  std::string out;
  for (const Instruction& i : code.code) (out += instructions.print(i)) += '\n';
  return out;
}

StateParts State::parts() const {
  if (code.code.empty()) return StateParts::of(program);
  // The last pass makes bytes of what the one before left.
  if (bytes.empty() || recorded.empty()) recorded = machine_bytes(code, target.name);
  return {StateParts::Kind::Machine, {}, {}, nullptr, recorded};
}

}  // namespace codegen

std::span<const Pass<codegen::State>> codegen_passes() { return kPasses; }

MachineCode generate_code(const LinearProgram& program, const Target& target) {
  const BackEnd& back_end = back_end_of(target);
  codegen::State state{program, target, back_end, back_end.instructions(target)};
  run_passes(codegen_passes(), state);
  Tracer& tracer = Context::current().tracer();
  tracer.add(Counter::SpilledRegisters, state.code.in_memory);
  tracer.add(Counter::RepeatedValues, state.code.rematerialised);
  tracer.add(Counter::StackBytes, state.code.frame_bytes);
  return {std::move(state.bytes), std::move(state.code)};
}

}  // namespace weft
