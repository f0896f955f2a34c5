// The devices that must agree: each compiler, machine code at each level of instruction sets.
#pragma once
#include <string>
#include <vector>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"

namespace weft::testing {

struct Setup {
  std::string device, cc, isa_level;
};

inline std::vector<Setup> setups() {
  std::vector<Setup> all = {
      {"CPU:INTERP", "", ""}, {"CPU:C", "clang-19", ""}, {"CPU:C", "gcc", ""}};
  for (const std::string& level : isa_levels()) all.push_back({"CPU:X86", "", level});
  return all;
}

inline Options options_for(const Setup& setup) {
  Options options = quiet_options();
  options.cc = setup.cc;
  options.isa = setup.isa_level;
  return options;
}

}  // namespace weft::testing
