// Code generation: a linear program becomes machine code, by the table of back ends.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/codegen/code_line.h"
#include "weft/graph/program.h"
#include "weft/isa/machine.h"
#include "weft/rewrite/pass.h"
#include "weft/target/core.h"
#include "weft/target/target.h"

namespace weft {

/// What a machine is to code generation: a row of the table in codegen.cpp. Allocation and its
/// check are the same for all.
struct BackEnd {
  std::string_view target;  ///< Target::name of what it makes code for
  const InstructionSet& (*instructions)(const Target&);
  /// Instructions over virtual registers. Arguments arrive as target/kernel_abi.h says.
  MachineProgram (*select)(const LinearProgram&, const Target&);
  /// The function's bytes, with the frame it needs: position-independent, constants behind the
  /// code.
  std::string (*encode)(const MachineProgram&);
  /// The same for people: an instruction a line, estimates for that core beside.
  std::string (*list)(const MachineProgram&, Core);
  /// The same as data. InternalError where an instruction has no encoding.
  std::vector<CodeLine> (*lines)(const MachineProgram&, Core);
};

/// For targets with `machine_code` only.
const BackEnd& back_end_of(const Target& target);

namespace codegen {

/// A linear program on its way to machine code.
struct State {
  const LinearProgram& program;
  const Target& target;
  const BackEnd& back_end;
  const InstructionSet& instructions;
  MachineProgram code = {};
  std::string bytes = {};
  mutable std::string recorded = {};  ///< of parts()

  std::string_view name() const { return program.name; }
  PassView view() const;
  std::string text() const;
  StateParts parts() const;
};

}  // namespace codegen

/// In order.
std::span<const Pass<codegen::State>> codegen_passes();

struct MachineCode {
  std::string bytes;       ///< position-independent
  MachineProgram program;  ///< what they encode, over the machine's registers; for listings
};
MachineCode generate_code(const LinearProgram& program, const Target& target);

}  // namespace weft
