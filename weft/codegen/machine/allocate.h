// Register allocation: linear scan over intervals, the same for every instruction set.
#pragma once

#include "weft/isa/machine.h"

namespace weft::codegen {

/// Gives every virtual register of `program` one of the machine's, spilling where there are too
/// few: the value with the fewest uses (those in inner loops count tenfold each) per instruction
/// that it would occupy a register for. Constants, and loads that nothing changes until their last
/// use, are rematerialised instead of being stored. Moves between equal registers are gone
/// afterwards. Throws InternalError where two values need the same fixed register at once.
///
/// Method: Poletto and Sarkar, "Linear Scan Register Allocation", 1999; repeated with the spill
/// code in place until nothing spills.
void allocate(MachineProgram& program, const InstructionSet& set);

/// Runs `program` symbolically under `assignment` (by virtual register): the machine's registers
/// hold names of virtual ones, and every read must find its own. Throws InternalError with the
/// instruction where one does not.
void check_assignment(const MachineProgram& program, std::span<const Reg> assignment,
                      const InstructionSet& set);

}  // namespace weft::codegen
