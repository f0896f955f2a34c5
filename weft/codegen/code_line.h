// CodeLine: an instruction of a function with what people ask of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/isa/machine.h"

namespace weft {

/// Where a program goes on after an instruction.
enum class Flow : uint8_t { Next, Branch, Jump, Return };
/// What an instruction does with the slots of values that have no register.
enum class FrameUse : uint8_t { None, Reload, Spill };

/// Marks (labels, loops) are lines of no bytes.
struct CodeLine {
  Instruction instruction;
  uint32_t offset = 0, bytes = 0;  ///< in the function's code
  Flow flow = Flow::Next;          ///< a jump's label is the instruction's
  FrameUse frame = FrameUse::None;
  int latency = 0;             ///< cycles, estimated
  std::string_view port = {};  ///< that it takes
};

}  // namespace weft
