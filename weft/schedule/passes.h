// The steps of scheduling as passes, and what they hand each other.
#pragma once
#include <optional>

#include "weft/rewrite/pass.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace schedule {

/// Values on their way to kernels.
struct State {
  std::span<const ScheduleOutput> given;
  const Target& target;
  const ScheduleOptions& options;
  std::shared_ptr<Graph> graph;
  std::vector<ScheduleOutput> outputs = {};  ///< in `graph`
  NodeMap<uint64_t> origins = {};            ///< see Planner::origins
  std::vector<NodeRef> steps = {};           ///< the Repeats and Customs, as given
  std::optional<Planner> plan = {};
  Schedule made = {};

  std::string_view name() const { return "schedule"; }
  PassView view() const;
  std::string text() const;
  StateParts parts() const;
};

}  // namespace schedule

/// In order.
std::span<const Pass<schedule::State>> schedule_passes();

}  // namespace weft
