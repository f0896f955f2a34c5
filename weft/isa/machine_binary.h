// Machine programs as bytes, for recordings: instructions only, to be printed and estimated.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weft/isa/machine.h"

namespace weft {

/// `set`: the name of the target whose table the forms are rows of. Layout: text set; varints
/// labels, frame bytes, in memory, rematerialised, count; each instruction: varint form, width,
/// flags, then what the flags say is there (mask, registers, address, immediate, label). Constants
/// are left out.
std::string machine_bytes(const MachineProgram& program, std::string_view set);

struct StoredMachine {
  std::string_view set;  ///< in what was read
  MachineProgram program;
};
/// `forms`: how many rows the set of that name has; 0: it is not known here. Damaged data is an
/// Error naming `what`; loops that are returned are balanced, forms exist.
StoredMachine read_machine(std::span<const std::byte> data, std::string_view what,
                           size_t (*forms)(std::string_view set));

}  // namespace weft
