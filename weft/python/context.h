// Devices as Python names them.
#pragma once

#include <string>

#include "weft/tensor/tensor.h"

namespace weft::python {

/// "CPU" for the device that "CPU" opens, "CPU:1" for its second; other names in full.
std::string device_name(const Tensor& x);

}  // namespace weft::python
