// The last step of compiling: what was translated for a device is loaded there, all at once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/device/device.h"
#include "weft/rewrite/pass.h"

namespace weft {

/// Programs on their way into a device's memory.
struct LoadState {
  Device& device;
  std::span<const ProgramSource> sources;
  std::vector<std::unique_ptr<Executable>> loaded = {};

  std::string_view name() const { return device.name(); }
  PassView view() const;
  std::string text() const;  ///< each program's entry, and the bytes of its code
};

/// In order.
std::span<const Pass<LoadState>> load_passes();

std::vector<std::unique_ptr<Executable>> load_programs(Device& device,
                                                       std::span<const ProgramSource> sources);

}  // namespace weft
