// Arenas that the captured functions of a Context share: one of them runs at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weft/run/arenas.h"
#include "weft/run/command_list.h"

namespace weft {

/// Memory of a device, as large as the one of those who share it that needs the most: what is in it
/// does not outlive a run. There as long as somebody holds it.
class SharedArena {
 public:
  explicit SharedArena(Device& device) : device_(&device) {}

  /// So many bytes are needed as long as the result lives.
  std::shared_ptr<const int64_t> need(int64_t bytes);
  /// Another one than before where more is needed, or no half of it any more. `holders`: how many
  /// needs there are. Errors: of the device's memory; there is none then until it is asked for
  /// again.
  Buffer& memory(size_t holders);
  Device& device() const { return *device_; }

 private:
  Device* device_;
  std::vector<std::weak_ptr<const int64_t>> needs_;
  bool more_ = false;  // needs than memory_ is for
  std::shared_ptr<Buffer> memory_;
};

/// By number on each device.
class SharedArenas {
 public:
  std::shared_ptr<SharedArena> get(Device& device, size_t number);

 private:
  std::vector<std::pair<size_t, std::weak_ptr<SharedArena>>> arenas_;
};

/// The part of one captured function in them.
class ArenaShares {
 public:
  ArenaShares() = default;
  /// All of it, or an Error that says what the most of it is for.
  ArenaShares(const PlannedMemory& plan, SharedArenas& all, StepLines lines);

  /// Before a run: where each intermediate lies now, into `memory`, which is by buffer of the
  /// schedule.
  void place(std::span<BufferSlice> memory);
  int64_t bytes() const;  ///< that it needs

 private:
  struct Share {
    Buffer& memory() const { return arena->memory(static_cast<size_t>(arena.use_count())); }

    std::shared_ptr<SharedArena> arena;
    std::shared_ptr<const int64_t> need;
    std::vector<std::pair<int, BufferSlice>> places;  ///< of buffers of the schedule
    uint64_t placed_in = 0;                           ///< serial of the memory; 0: none yet
  };
  std::vector<Share> shares_;
};

}  // namespace weft
