// CapturedSteps: the steps of a captured function's computations, one after the other, over memory
// that is numbered once for all of them.
#pragma once

#include <span>
#include <vector>

#include "weft/run/call_sites.h"
#include "weft/run/compiled_schedule.h"

namespace weft {

struct ReplayPlan;

struct CapturedSteps {
  CompiledSchedule schedule;

  /// Behind what is there. `buffers` and `variables`: the numbers of its own here.
  void append(const CompiledSchedule& of, std::span<const int> buffers,
              std::span<const int> variables, const CallSites& lines);
  void add(CompiledStep step, const StepSites& sites);
  const StepSites& sites(size_t step) const;

 private:
  /// Of the steps from there on: rounds have the same.
  struct SitesFrom {
    size_t step;
    StepSites sites;
  };
  std::vector<SitesFrom> sites_;
};

/// A plan's computations as they ran. Buffers of the plan keep their numbers, and have those only
/// that outlive a computation.
CapturedSteps steps_as_they_ran(const ReplayPlan& plan);
/// A plan's computations, scheduled knowing which of the plan's buffers are constant: what is
/// computed from these alone costs a call nothing. Buffers of the plan keep their numbers.
CapturedSteps steps_for_constants(const ReplayPlan& plan, const std::vector<bool>& constant);

}  // namespace weft
