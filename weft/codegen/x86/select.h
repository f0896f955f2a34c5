// Selection of x86-64 instructions: a linear program becomes machine code over virtual registers.
#pragma once
#include "weft/graph/program.h"
#include "weft/isa/machine.h"
#include "weft/target/target.h"

namespace weft::codegen {

/// Of one lane, integers, bool and the bits of half floats are in general registers, extended to 64
/// bits as their dtype's sign says; f32 and f64 are in vector registers, as everything of more
/// lanes is (bools see selector.h).
MachineProgram select_x86(const LinearProgram& program, const Target& target);

}  // namespace weft::codegen
