// Where the intermediates of a schedule lie: one arena per device, planned by when they live.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/rewrite/pass.h"
#include "weft/run/compiled_schedule.h"
#include "weft/run/memory_plan.h"

namespace weft {

/// An arena, the schedule's buffers in it, and where each of them lies.
struct ArenaPlan {
  Device* device;
  std::vector<int> buffers;
  std::vector<Lifetime> lifetimes;
  MemoryPlan memory;
};

/// A schedule for these values of its variables, and the arenas of its intermediates.
struct PlannedMemory {
  const CompiledSchedule& schedule;
  std::vector<int64_t> values;
  std::vector<ArenaPlan> arenas = {};

  std::string_view name() const { return "memory"; }
  PassView view() const;
  std::string text() const;  ///< for people: a line per arena and intermediate
  size_t bytes_held() const;
};

/// In order.
std::span<const Pass<PlannedMemory>> plan_passes();

/// The schedule must outlive what is planned.
PlannedMemory plan_arenas(const CompiledSchedule& schedule, std::vector<int64_t> values);

/// Bytes of a run's memory: what it is given, what it leaves, and the arenas between.
struct PlanTotals {
  int64_t inputs = 0, outputs = 0, intermediates = 0;
};
PlanTotals totals(const PlannedMemory& plan);

/// text(), and the totals.
std::string plan_text(const PlannedMemory& plan);

}  // namespace weft
