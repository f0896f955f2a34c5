// What a driver, a file of device/drivers/, says of the devices that it makes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/device/device.h"

namespace weft {

/// A device that can be asked for by name.
struct DeviceKind {
  int number;  ///< in every id of the kind: unlike all others', and for good
  std::string_view name;
  std::unique_ptr<Device> (*make)(Context&, std::string name, DeviceId);
  std::string (*describe)(Context&);  ///< for `weft devices`, of one that can be made
};

/// drivers/<name>.cpp defines `Driver <name>_driver()`.
using Driver = std::span<const DeviceKind>;
using DriverFunction = Driver (*)();

/// Of all drivers, by number. An InternalError where a number or a name is there twice.
std::vector<DeviceKind> kinds_of(std::span<const DriverFunction> drivers);

}  // namespace weft
