// Timelines: monotonic counters that say how far a queue has come; what host waits and queues wait
// on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

#include "weft/base/exceptions.h"

namespace weft {

/// Why the work of a point did not come to its end.
struct Failure {
  DeviceError error;
  bool begun = true;  ///< false: what it waited for had failed, and it changed nothing
};

/// A 64-bit counter that only grows. Points on it are values; a point is reached when the counter
/// is at least that value, whether or not its work came to its end. Any thread may call.
class Timeline {
 public:
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  bool reached(uint64_t point) const { return value() >= point; }
  /// Going back is an InternalError; staying is allowed.
  void signal(uint64_t point);

  /// Blocks until reached. False when the deadline (now_ns() time; 0 is none) passes or `cancel`
  /// becomes true first.
  bool wait(uint64_t point, uint64_t deadline_ns = 0, const std::atomic<bool>* cancel = nullptr);

  /// The work of `point` failed; to be said before the point is signalled.
  void fail(uint64_t point, Failure failure);
  /// Why a reached point's work failed; null where it did not.
  const Failure* failure(uint64_t point) const;
  /// The same for somebody who will not let it pass in silence.
  const Failure* tell_failure(uint64_t point);
  /// The oldest failure that nobody was told of, or null; told now.
  const Failure* tell_untold();

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<bool> any_failed_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  struct Told {
    Failure failure;
    bool told;
  };
  std::map<uint64_t, Told> failures_;  // by point; entries stay where they are
};

struct TimelinePoint {
  Timeline* timeline = nullptr;
  uint64_t value = 0;
};

/// Throws where the work of a reached point failed.
void raise_failure(TimelinePoint point);

}  // namespace weft
