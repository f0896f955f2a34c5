// Instructions whose results nobody reads.
#pragma once

#include "weft/isa/machine.h"

namespace weft::codegen {

/// Leaves out every instruction that only writes registers which nothing that stays reads.
/// Selection may therefore fold a value into its users' addresses and immediates without asking
/// whether it is needed in a register as well. Flags are written beside registers only where nobody
/// reads them.
void remove_dead_code(MachineProgram& program, const InstructionSet& set);

}  // namespace weft::codegen
