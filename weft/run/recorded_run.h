// RecordedRun: one realization as it ran, for a capture that listens.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/run/call_sites.h"
#include "weft/run/compiled_schedule.h"
#include "weft/run/normalise.h"
#include "weft/run/storage.h"

namespace weft {

struct RecordedRun {
  std::shared_ptr<const CompiledSchedule> schedule;
  std::vector<std::byte> graph;            ///< a graph file of what it computed, over Params
  std::vector<NodeRef> inputs;             ///< the Buffer node of each input slot, while it runs
  std::vector<int64_t> input_ids;          ///< their ids
  std::vector<bool> constants;             ///< by input slot: taken to be the same in every call
  std::vector<BoundVariable> variables;    ///< of the graph; the schedule names those it needs
  std::vector<NodeRef> seen;               ///< watched values it computed from
  std::shared_ptr<const CallSites> sites;  ///< of what the graph computes
  struct Result {
    int output;
    int into;    ///< input slot whose memory it went to, or -1
    int64_t id;  ///< of the Buffer node it became
  };
  std::vector<Result> results;
};

}  // namespace weft
