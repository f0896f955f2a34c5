// Machine code of x86-64 with the frame a function needs, as bytes and as text.
#pragma once
#include <string>
#include <vector>

#include "weft/codegen/code_line.h"
#include "weft/target/core.h"

namespace weft::codegen {

/// The function's bytes, position-independent, constants behind the code. Registers must have been
/// allocated. Saves the registers that the System V ABI makes callees save, if they are used.
std::string encode_x86(const MachineProgram& program);
/// The same, one instruction a line with its latency and port; at the beginning of loops what an
/// iteration is estimated to take on that core, first what allocation left in memory.
std::string list_x86(const MachineProgram& program, Core core);
/// The same as data, with where each instruction lies in the function's bytes.
std::vector<CodeLine> lines_x86(const MachineProgram& program, Core core);

}  // namespace weft::codegen
