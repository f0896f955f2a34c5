// QueuedDevice: a device whose driver has queues, each of which takes commands in order and says
// later when it has come to their end.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/device/device.h"
#include "weft/device/queue_thread.h"

namespace weft {

class QueuedDevice : public Device {
 public:
  bool completes_at_once() const override { return false; }

 protected:
  QueuedDevice(Context& context, std::string name, DeviceId id, Target target,
               std::shared_ptr<Memory> memory, int queues = 1)
      : Device(context, std::move(name), id, std::move(target), queues, std::move(memory)),
        ends_(static_cast<size_t>(queues)) {}

  /// What the driver has been given.
  struct Handed {
    /// Blocks until it is done; when its commands ran, where it was traced. Throws the DeviceError
    /// of what went wrong. Called on a thread, maybe when the derived device is gone: it keeps what
    /// it needs.
    std::function<std::vector<CommandTime>()> await;
    std::optional<Failure> failure = {};  ///< in handing it over
  };
  /// Has the queue run the commands when the queues of `after` have run what they were given so
  /// far.
  virtual Handed hand_over(int queue, std::span<const Command> commands,
                           std::span<const int> after) = 0;

 private:
  void enqueue(const Submission& submission) final;
  int queue_of(const Timeline* timeline);
  SmallVector<int, 4> queues_before(const Submission& submission);

  // All that was handed over is done before Device's own parts go.
  std::deque<QueueThread> ends_;
};

}  // namespace weft
