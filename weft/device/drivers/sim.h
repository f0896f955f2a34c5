// SIM: a device that is not the host, in the tree: what is wrong with waits, memory or errors shows
// on it, whatever hardware there is.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/device/device.h"
#include "weft/device/queue_thread.h"
#include "weft/device/wait_check.h"

namespace weft {

/// Memory of a simulated device: a Buffer's block() is one of these, which the host cannot read.
struct SimBlock {
  std::unique_ptr<std::byte[]> memory;
  std::byte* bytes = nullptr;  // its first aligned byte
  size_t size = 0;
  std::atomic<int> users{0};  // submissions that have it and are not done
};

/// Runs the kernels of a host device on threads of its own, one for each queue; every command takes
/// a random time longer than it needs, so that queues get out of step. Fresh memory is poisoned. A
/// DeviceError reports memory that is used without waiting for another queue, or given away while
/// commands still use it.
class SimDevice final : public Device {
 public:
  static constexpr int kQueues = 2;
  static constexpr int64_t kCapacity = int64_t{1} << 30;  ///< bytes, of all blocks together
  /// Unlike the host's.
  static constexpr int64_t kAlignment = 256;
  /// What an unwritten byte reads: NaN for floats, -1 for integers.
  static constexpr std::byte kPoison{0xFF};

  class Memory;
  SimDevice(Context& context, std::string name, DeviceId id, std::unique_ptr<Device> host,
            std::shared_ptr<Memory> memory);
  ~SimDevice() override;

  bool completes_at_once() const override { return false; }
  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override;

  /// From here on a command is up to `longest_ns` late, as the seed has it.
  void set_delays(uint64_t seed, uint64_t longest_ns);

 protected:
  void write_memory(BufferSlice to, std::span<const std::byte> from) override;
  void read_memory(std::span<std::byte> to, BufferSlice from) override;
  void enqueue(const Submission& submission) override;
  void host_waited(TimelinePoint point) override { waits_.host_waited(point); }

 private:
  struct Task;

  void check_working(std::string_view call) const;
  void be_late(const Task& task);
  std::optional<Failure> wait_for(const Task& task) const;
  std::optional<Failure> run(const Task& task);
  std::optional<DeviceError> run_step(const Task& task, size_t step);

  std::unique_ptr<Device> host_;
  std::shared_ptr<Memory> memory_;
  WaitCheck waits_;
  std::atomic<uint64_t> random_, longest_delay_ns_{100'000};
  std::atomic<bool> gone_{false}, ends_{false};
  std::atomic<uint64_t> delays_[kQueues] = {};
  QueueThread threads_[kQueues];
};

}  // namespace weft
