// HostDevice: what devices share that compute on the host: launches split over the thread pool.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/device/device.h"
#include "weft/device/item_cost.h"
#include "weft/target/kernel_abi.h"

namespace weft {

class HostExecutable : public Executable {
 public:
  /// Runs items [begin, end). Called from several threads at once on disjoint items.
  virtual void run(const KernelArgs& args, uint32_t begin, uint32_t end) const = 0;

  size_t variables() const { return variables_; }
  /// An InternalError where the launch passes something else than the kernel takes.
  void check_launch(const Command& command) const;
  /// Estimated time of one item of the core range on one thread, for these values of its
  /// variables; 0 where it is not known.
  double item_nanoseconds(std::span<const int64_t> variables) const {
    return item_cost_(variables);
  }
  /// Of a program that was loaded without its instructions.
  void set_cost(ItemCost cost) { item_cost_ = std::move(cost); }

 protected:
  /// `slowness`: of this device, against compiled code.
  HostExecutable(std::string name, const ProgramSource& source, double slowness);

 private:
  size_t variables_ = 0;
  bool counted_ = false;  // params and variables are known
  ItemCost item_cost_;
};

class HostDevice : public Device {
 protected:
  using Device::Device;
  void execute(int queue, std::span<const Command> commands, std::span<const TimelinePoint> waits,
               uint64_t point) override;

 private:
  void run(const Command& command, int64_t number, int64_t copy = 0);
  static bool is_left_out(const Command& command);
  void run_rounds(std::span<const Command> commands, std::span<const size_t> begins);
  /// `copy`: of the buffers that workers have for themselves. Gives the status word it left.
  uint32_t launch(const Command& command, int64_t copy, bool backwards);
};

/// What `weft devices` says of the threads and the processor that run a target's kernels.
std::string describe_host(Context& context, std::string_view target);

/// Devices that SIM runs its kernels on.
std::unique_ptr<Device> make_interp_device(Context& context, std::string name, DeviceId id);
std::unique_ptr<Device> make_x86_device(Context& context, std::string name, DeviceId id);

}  // namespace weft
