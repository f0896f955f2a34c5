// Timelines: monotonic counters that say how far a queue has come; what host waits and queues wait
// on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace weft {

/// A 64-bit counter that only grows. Points on it are values; a point is reached when the counter
/// is at least that value. Any thread may call.
class Timeline {
 public:
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  bool reached(uint64_t point) const { return value() >= point; }
  /// Going back is an InternalError; staying is allowed.
  void signal(uint64_t point);

  /// Blocks until reached. False when the deadline (now_ns() time; 0 is none) passes or `cancel`
  /// becomes true first.
  bool wait(uint64_t point, uint64_t deadline_ns = 0, const std::atomic<bool>* cancel = nullptr);

 private:
  std::atomic<uint64_t> value_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

struct TimelinePoint {
  Timeline* timeline = nullptr;
  uint64_t value = 0;
};

}  // namespace weft
