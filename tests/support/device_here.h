// Which devices a suite runs on: those it names, or, with WEFT_DEV=SIM, the simulated ones that run
// the same kernels.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/options.h"

namespace weft::testing {

inline bool simulated() { return Options::from_environment().dev.starts_with("SIM"); }

/// "CPU:INTERP:1" is "SIM:INTERP:1" there. C text is compiled for the host alone.
inline std::string device_here(std::string_view name) {
  if (!simulated() || !name.starts_with("CPU:") || name.starts_with("CPU:C"))
    return std::string(name);
  return "SIM" + std::string(name.substr(3));
}

}  // namespace weft::testing
