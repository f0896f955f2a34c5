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

}  // namespace weft::testing
