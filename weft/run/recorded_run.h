// RecordedRun: one realization as it ran, for a capture that listens.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/run/compiled_schedule.h"
#include "weft/run/storage.h"

namespace weft {

struct RecordedRun {
  std::shared_ptr<const CompiledSchedule> schedule;
  std::vector<std::shared_ptr<Buffer>> buffers;  ///< by index; null for intermediates
  std::vector<int64_t> input_ids;                ///< Buffer node id of each input slot
  std::vector<NodeRef> variables;                ///< of the tensor graph, in the schedule's order
  std::vector<bool> renamed;                     ///< the name stands for a second value
  std::vector<int64_t> values;
  /// Storages that took each output as their value.
  struct Result {
    std::weak_ptr<Storage> storage;
    int output;
    int64_t id;  ///< of its Buffer node
  };
  std::vector<Result> results;
};

}  // namespace weft
