// What is read right after a loop comes while the loop runs.
#pragma once
#include "weft/isa/machine.h"

namespace weft::codegen {

/// Before each loop inside of another, prefetches what the instructions after it read at addresses
/// that are known by then: a tile of a product that is added to what lies in memory would wait for
/// that once a tile.
void prefetch_after_loops(MachineProgram& program, const InstructionSet& set);

}  // namespace weft::codegen
