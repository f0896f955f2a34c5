// What is read later comes while other things are computed.
#pragma once
#include "weft/isa/machine.h"

namespace weft::codegen {

/// Before each loop inside of another, prefetches what the instructions after it read at addresses
/// that are known by then: a tile of a product that is added to what lies in memory would wait for
/// that once a tile.
void prefetch_after_loops(MachineProgram& program, const InstructionSet& set);
/// Prefetches that come one after the other go between the instructions that follow them. Each
/// takes one of the few buffers for lines that are on their way (16 in Intel's cores), which loads
/// would wait for.
void spread_prefetches(MachineProgram& program);

}  // namespace weft::codegen
