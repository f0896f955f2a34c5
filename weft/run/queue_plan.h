// QueuePlan: which of its device's queues each command of a run goes to, and what it waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/device/memory_uses.h"

namespace weft {

/// A command goes where the newest one is that it depends on, if nothing was given to that queue
/// since, else to the queue that has the fewest: what is independent runs side by side. It depends
/// on what used its bytes of memory before, places in an arena that are used again too.
class QueuePlan {
 public:
  explicit QueuePlan(Device& device);

  struct Place {
    int queue = 0;
    /// Commands of other queues, of each at most one, that the queue must wait for and has not.
    SmallVector<size_t, 4> after;
  };
  /// Of the next command, whose number is higher than those before.
  Place add(size_t number, const Command& command);
  /// What comes from here on waits for everything before, whatever memory it uses.
  void add_barrier() { barrier_ = newest_; }

  Device& device() const { return *device_; }

 private:
  size_t queue_for(const QueuePoints& needed) const;

  Device* device_;
  MemoryUses uses_;
  // Numbers of commands, plus 1: points to MemoryUses.
  std::vector<uint64_t> newest_, barrier_;    // of each queue
  std::vector<std::vector<uint64_t>> known_;  // what each queue has waited for, of each
  std::vector<size_t> count_;
};

}  // namespace weft
