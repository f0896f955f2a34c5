// WaitCheck: finds commands that use memory without having waited for what another queue did with
// it, whether or not that happens to be done.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "weft/device/device.h"
#include "weft/device/memory_uses.h"

namespace weft {

/// Vector clocks (Fidge, "Timestamps in message-passing systems that preserve the partial
/// ordering", 1988): for each queue, and for the host, how much of every queue is known to be done.
/// Any thread may call.
class WaitCheck {
 public:
  explicit WaitCheck(Device& device);

  /// A DeviceError where a command of the submission reads memory that another queue wrote, or
  /// writes what it read or wrote, at a point that nothing the submission waits for comes after.
  void check(const Submission& submission);
  /// The host has waited for the point: what it does from now on comes after it.
  void host_waited(TimelinePoint point);
  /// The same for the host's own reads and writes.
  void check_host(const Buffer& buffer, bool writes);

 private:
  static constexpr size_t kMostQueues = 4;
  using OfQueues = std::array<uint64_t, kMostQueues>;
  /// How much of each queue is known to be done.
  struct Clock {
    OfQueues at{};
    void join(const Clock& other);
  };

  size_t queues() const { return known_.size(); }
  void learn(Clock& now, TimelinePoint point);
  void check(const Submission& s, const Command& command, const Clock& now);
  void use(const Submission& s, const MemoryUse& use, const Clock& now, std::string_view who);

  Device& device_;
  std::mutex mutex_;
  std::vector<Clock> known_;
  Clock host_;
  std::vector<std::map<uint64_t, Clock>> history_;  // what was known when a point was reached
  MemoryUses uses_;
};

}  // namespace weft
