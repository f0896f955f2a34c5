// How much of a process lies in memory.
#pragma once

#include <cstdint>

namespace weft {

/// Bytes. 0 where the system does not say.
struct ResidentMemory {
  int64_t now = 0, peak = 0;
};
/// Of the process `pid`; 0 is this one.
ResidentMemory resident_memory(int64_t pid = 0);

}  // namespace weft
