// Random programs compared with the oracle, on every device and with other options.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/base/options.h"
#include "weft/trust/outcome.h"

namespace weft::trust {

struct FuzzPlan {
  uint64_t seed = 0;   ///< of the first program; the n-th has seed + n
  int64_t count = -1;  ///< programs; -1: as many as there is time for
  double seconds = 10;
  int64_t failures = 10;             ///< after so many it stops
  std::vector<std::string> devices;  ///< empty: those of this machine's CPU
  Options options;                   ///< of which each program changes some
};

struct FuzzFailure {
  uint64_t seed;
  Options options;
  Outcome outcome;
};

struct FuzzReport {
  int64_t programs = 0, failures = 0;
  double seconds = 0;
};

/// The program of a seed and the options it runs with: device, level of instructions, threads,
/// optional passes.
RandomGraph fuzz_program(Graph& graph, uint64_t seed);
Options fuzz_options(const FuzzPlan& plan, uint64_t seed);

/// Tells each failure as it is found.
FuzzReport fuzz(const FuzzPlan& plan, FunctionRef<void(const FuzzFailure&)> failed);

}  // namespace weft::trust
