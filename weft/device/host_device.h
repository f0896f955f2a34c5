// HostDevice: what devices share that compute on the host: launches split over the thread pool.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/device/device.h"
#include "weft/device/kernel_abi.h"

namespace weft {

class HostExecutable : public Executable {
 public:
  /// Runs items [begin, end). Called from several threads at once on disjoint items.
  virtual void run(const KernelArgs& args, uint32_t begin, uint32_t end) const = 0;

  size_t params() const { return params_; }
  size_t variables() const { return variables_; }
  /// Estimated time of one item of the core range on one thread; 0 where it is not known.
  double item_nanoseconds() const { return item_nanoseconds_; }

 protected:
  /// `slowness`: of this device, against compiled code.
  HostExecutable(std::string name, const ProgramSource& source, double slowness);

 private:
  size_t params_ = 0, variables_ = 0;
  bool counted_ = false;  // params and variables are known
  double item_nanoseconds_ = 0;
  friend class HostDevice;
};

class HostDevice : public Device {
 protected:
  using Device::Device;
  void execute(int queue, std::span<const Command> commands, std::span<const TimelinePoint> waits,
               uint64_t point) override;

 private:
  void launch(const Command& command);
};

/// The devices of the table.
std::unique_ptr<Device> make_c_device(Context& context, std::string name, DeviceId id);
std::unique_ptr<Device> make_x86_device(Context& context, std::string name, DeviceId id);
std::unique_ptr<Device> make_interp_device(Context& context, std::string name, DeviceId id);
std::unique_ptr<Device> make_null_device(Context& context, std::string name, DeviceId id,
                                         std::string_view target);

}  // namespace weft
