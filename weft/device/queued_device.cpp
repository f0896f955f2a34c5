#include "weft/device/queued_device.h"

#include <utility>

#include "weft/base/error.h"

namespace weft {

/// -1: another device's.
int QueuedDevice::queue_of(const Timeline* timeline) {
  for (int q = 0; q < queues(); ++q)
    if (timeline == &this->timeline(q)) return q;
  return -1;
}

/// The queues that a submission has to come after. A queue goes on in order and the driver's queues
/// wait for each other, so only other devices' points are waited for.
SmallVector<int, 4> QueuedDevice::queues_before(const Submission& s) {
  SmallVector<int, 4> after;
  for (const TimelinePoint& w : s.waits) {
    const int queue = queue_of(w.timeline);
    if (queue < 0) w.timeline->wait(w.value);
    if (w.timeline->reached(w.value))
      raise_failure(w);
    else if (queue != s.queue)
      after.push_back(queue);
  }
  return after;
}

void QueuedDevice::enqueue(const Submission& s) {
  const SmallVector<int, 4> after = queues_before(s);
  struct Started {
    Handed handed;
    std::vector<TimelinePoint> waits, signals;
    int queue;
    uint64_t point;
  };
  auto started = std::make_shared<Started>(
      Started{hand_over(s.queue, s.commands, {after.begin(), after.end()}),
              {s.waits.begin(), s.waits.end()},
              {s.signals.begin(), s.signals.end()},
              s.queue,
              s.point});
  ends_[static_cast<size_t>(s.queue)].push([this, started] {
    std::optional<Failure> failure = std::move(started->handed.failure);
    try {
      for (const CommandTime& time : started->handed.await()) trace(started->queue, time);
    } catch (const DeviceError& error) {
      if (!failure) failure = Failure{error};
    }
    for (const TimelinePoint& w : started->waits) {  // it ran, on what had failed
      w.timeline->wait(w.value);
      if (const Failure* f = w.timeline->failure(w.value); f && !failure)
        failure = f->passed_on(true);
    }
    finish({started->queue, {}, {}, started->signals, started->point}, std::move(failure));
  });
}

}  // namespace weft
