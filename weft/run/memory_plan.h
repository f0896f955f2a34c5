// Memory plan: intermediates whose lifetimes do not meet share places in one arena per device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

/// A buffer is live from the step that first touches it to the one that last does, both included.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< of each lifetime, multiples of the alignment
  int64_t bytes = 0;             ///< of the arena
  int64_t least = 0;             ///< no plan can do with less: the most bytes live at one step
};

/// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
/// 2020): the largest first, each at the lowest offset free for its whole lifetime. Beyond 4096 of
/// them by time instead, each where it fits best. `alignment`: the device's.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, int64_t alignment);

}  // namespace weft
