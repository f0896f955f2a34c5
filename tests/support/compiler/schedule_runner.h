// Runs a tensor graph through schedule, optimize, lower and a device, without the run room: the
// compiler's half of every comparison with the oracle.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/base/context.h"
#include "weft/eval/array.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft::testing {

struct RunOptions {
  std::string device = "INTERP";
  bool optimize = true;
  ScheduleOptions schedule;
  const Target* target = nullptr;  ///< what the schedule is made for; null: the device's
};

/// Values of `outputs` (by position). Outputs with `into` also replace that input in `params`, as
/// in-place realizes do.
std::vector<eval::Array> run_graph(Context& context, std::span<const ScheduleOutput> outputs,
                                   std::vector<eval::Array>& params,
                                   const std::map<std::string, int64_t>& variables = {},
                                   const RunOptions& options = {});

}  // namespace weft::testing
