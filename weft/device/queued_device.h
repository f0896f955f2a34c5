// QueuedDevice: a device whose driver has one queue, which takes commands in order and says later
// when it has come to their end.
#pragma once

#include <functional>
#include <optional>

#include "weft/device/device.h"
#include "weft/device/queue_thread.h"

namespace weft {

class QueuedDevice : public Device {
 public:
  bool completes_at_once() const override { return false; }

 protected:
  QueuedDevice(Context& context, std::string name, DeviceId id, Target target,
               std::shared_ptr<Memory> memory)
      : Device(context, std::move(name), id, std::move(target), 1, std::move(memory)) {}

  /// What the driver has been given.
  struct Handed {
    /// Blocks until it is done; throws the DeviceError of what went wrong. Called on a thread,
    /// maybe when the derived device is gone: it keeps what it needs.
    std::function<void()> await;
    std::optional<Failure> failure = {};  ///< in handing it over
  };
  virtual Handed hand_over(std::span<const Command> commands) = 0;

 private:
  void enqueue(const Submission& submission) final;

  QueueThread ends_;  // all that was handed over is done before Device's own parts go
};

}  // namespace weft
