// What else a kernel's loops might have become, and what the cost model thinks of it.
#pragma once

#include <string>
#include <vector>

#include "weft/viz/session_data.h"

namespace weft::viz {

struct PlanChoice {
  std::string plan;  ///< a line as WEFT_BEAM_CACHE has it
  double cycles;     ///< of one core, predicted
  bool chosen = false;
};

/// The plan that the model takes and those next to it, the best first; at most some dozens.
/// Computed by this program from the recorded kernel: none where it is not for this machine, or
/// cannot be read.
std::vector<PlanChoice> plan_choices(const Session::Data& data, const KernelRow& kernel);

}  // namespace weft::viz
