// The devices that must agree: each compiler, machine code at each level of instruction sets. On
// the simulated device those whose kernels it runs.
#pragma once
#include <string>
#include <vector>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"
#include "tests/support/device_here.h"

namespace weft::testing {

struct Setup {
  std::string device, cc, isa_level;
};

inline std::vector<Setup> setups() {
  std::vector<Setup> all = {{device_here("CPU:INTERP"), "", ""}};
  if (!simulated())
    for (const char* cc : {"clang-19", "gcc"}) all.push_back({"CPU:C", cc, ""});
  for (const std::string& level : isa_levels()) all.push_back({device_here("CPU:X86"), "", level});
  return all;
}

inline Options options_for(const Setup& setup) {
  Options options = quiet_options();
  options.cc = setup.cc;
  options.isa = setup.isa_level;
  return options;
}

}  // namespace weft::testing
