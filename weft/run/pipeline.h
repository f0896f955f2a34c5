// The pipeline: from values to a schedule that is ready to run, step by step. The only place that
// knows the order.
#pragma once

#include <memory>
#include <span>

#include "weft/run/arenas.h"
#include "weft/run/command_list.h"
#include "weft/run/compiled_schedule.h"
#include "weft/run/normalise.h"

namespace weft {

class Context;

/// Commands that ran before, for whoever runs the same schedule next.
struct SpareCommands {
  std::unique_ptr<CommandList> list;
};

struct Prepared {
  std::shared_ptr<const CompiledSchedule> schedule;
  /// For these values of its variables. In the cache only where it has none.
  std::shared_ptr<const PlannedMemory> memory;
  std::shared_ptr<SpareCommands> spare;
};

/// Steps 2 to 7 of pipeline.cpp for values in normal form; from the cache where the same was asked
/// for before. `into`: per value the input slot it goes to in place, or -1. `constants`: by input
/// slot, whether what is computed from it alone will be computed once (ScheduleOptions). The caller
/// holds RunState::mutex; what its trace_passes() has recorded is reported with what is compiled.
std::shared_ptr<const Prepared> prepare(Context& context, const NormalForm& form,
                                        std::span<const int> into,
                                        const std::vector<bool>& constants = {});

}  // namespace weft
