// Schedule files: a schedule as bytes, for the next process that asks for the same one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weft/schedule/schedule.h"

namespace weft {

/// What a schedule has of the program it is for.
struct ScheduleFor {
  size_t inputs, outputs;  ///< counts
};

/// Without its decisions.
std::string write_schedule(const Schedule& schedule);

/// Nothing where `data` is no schedule for such a program: its kernels are checked as graphs from
/// outside are, and all numbers that steps refer to.
std::optional<Schedule> read_schedule(std::string_view data, const ScheduleFor& program);

}  // namespace weft
