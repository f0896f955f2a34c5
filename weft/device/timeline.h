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

class Timeline;

struct TimelinePoint {
  Timeline* timeline = nullptr;
  uint64_t value = 0;
  bool operator==(const TimelinePoint&) const = default;
};

/// Why the work of a point did not come to its end.
struct Failure {
  DeviceError error;
  bool begun = true;      ///< false: what it waited for had failed, and it changed nothing
  TimelinePoint at = {};  ///< whose work failed first; the error's command is one of its commands

  /// Of a point that waited for the one that failed.
  Failure passed_on(bool also_begun) const { return {error, also_begun, at}; }
  [[noreturn]] void raise() const;
};

/// Somebody learns now of work that failed before: at a wait, or at the next submission.
class PointError : public DeviceError {
 public:
  explicit PointError(const Failure& failure) : DeviceError(failure.error), at_(failure.at) {}
  TimelinePoint at() const { return at_; }

 private:
  TimelinePoint at_;
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

  /// The work of `point` failed, by itself unless `failure` says at which other point; to be said
  /// before the point is signalled.
  void fail(uint64_t point, Failure failure);
  /// Why a reached point's work failed; null where it did not.
  const Failure* failure(uint64_t point) const;
  /// The same for somebody who will not let it pass in silence.
  const Failure* tell_failure(uint64_t point);
  /// The oldest failure that nobody was told of, or null; told now.
  const Failure* tell_untold();

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<uint32_t> waiting_{0};
  std::atomic<bool> any_failed_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  struct Told {
    Failure failure;
    bool told;
  };
  std::map<uint64_t, Told> failures_;  // by point; entries stay where they are
};

/// Throws a PointError where the work of a reached point failed.
void raise_failure(TimelinePoint point);

}  // namespace weft
