// The instruction sets that machine code is tested with: those of WEFT_ISA that this CPU has.
#pragma once
#include <string>
#include <vector>

#include "weft/target/cpu_features.h"

namespace weft::testing {

/// Newest first. Kernels of older levels are what smaller machines run.
inline std::vector<std::string> isa_levels() {
  std::vector<std::string> levels;
  const CpuFeatures cpu = CpuFeatures::detect();
  if (cpu.has(CpuFeature::Avx512vl)) levels.push_back("avx512");
  if (cpu.has(CpuFeature::Avx2)) levels.push_back("avx2");
  return levels;
}
/// "", for all that it has, before them.
inline std::vector<std::string> isa_levels_and_all() {
  std::vector<std::string> levels = isa_levels();
  levels.insert(levels.begin(), "");
  return levels;
}
inline std::string name_of_isa_level(const std::string& level) {
  return level.empty() ? "All" : level;
}

}  // namespace weft::testing
