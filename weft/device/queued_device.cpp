#include "weft/device/queued_device.h"

#include <utility>

#include "weft/base/error.h"

namespace weft {

/// What was submitted goes on in order, so only other devices' points have to be waited for.
void QueuedDevice::enqueue(const Submission& s) {
  for (const TimelinePoint& w : s.waits) {
    if (w.timeline != &timeline(0)) w.timeline->wait(w.value);
    if (w.timeline->reached(w.value)) raise_failure(w);
  }
  struct Started {
    Handed handed;
    std::vector<TimelinePoint> waits, signals;
    uint64_t point;
  };
  auto started = std::make_shared<Started>(Started{hand_over(s.commands),
                                                   {s.waits.begin(), s.waits.end()},
                                                   {s.signals.begin(), s.signals.end()},
                                                   s.point});
  ends_.push([this, started] {
    std::optional<Failure> failure = std::move(started->handed.failure);
    try {
      started->handed.await();
    } catch (const DeviceError& error) {
      if (!failure) failure = Failure{error};
    }
    for (const TimelinePoint& w : started->waits)  // it ran, on what had failed
      if (const Failure* f = w.timeline->failure(w.value); f && !failure)
        failure = Failure{f->error};
    finish({0, {}, {}, started->signals, started->point}, std::move(failure));
  });
}

}  // namespace weft
