// KeptSchedule: the schedule of a large program, left on disk for the next process that runs it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/device/object_cache.h"
#include "weft/run/normalise.h"
#include "weft/schedule/schedule_file.h"

namespace weft {

class Context;

class KeptSchedule {
 public:
  /// Of what prepare() (pipeline.h) is given; `target`: of the machine that the schedule is for.
  KeptSchedule(Context& context, const NormalForm& form, std::span<const int> into,
               const std::vector<bool>& constants, const Target& target);

  /// Nothing where there is none, or where the program is so small that scheduling it takes less
  /// time than reading.
  std::optional<Schedule> find() const;
  /// Where all of it is on the default device.
  void store(const Schedule& schedule) const;

 private:
  Context& context_;
  ScheduleFor program_;
  std::optional<ObjectKey> key_;
};

}  // namespace weft
