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

/// Freed memory that lies between what is still used goes back to the system, where the C library
/// can do that: after work that takes much and is not done again soon, such as compiling.
void give_back_free_memory();

}  // namespace weft
