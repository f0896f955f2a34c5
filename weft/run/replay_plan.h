// ReplayPlan: recorded realizations merged into one schedule, and what each of its buffers is to a
// caller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/run/captured_steps.h"
#include "weft/run/recorded_run.h"
#include "weft/run/replay.h"

namespace weft {

/// What a tensor must look like. Its dims are kept alive.
struct TensorForm {
  DType dtype = DType::Void;
  DeviceId device = 0;
  std::vector<NodeRef> dims;  // of the tensor graph; may hold Binds
  bool symbolic = false;
};

/// The Buffer node a storage ends up with: what place `place` ends up holding untouched, or a fresh
/// result.
struct Ending {
  int place = -1;
  int fresh = -1;
  bool none() const { return place < 0 && fresh < 0; }
};

/// Memory that exists before the call: an argument or a storage the function knows (state).
struct HeldPlace {
  std::string name;
  TensorForm form;
  std::shared_ptr<Storage> storage;             // state only
  std::vector<std::weak_ptr<Storage>> aliases;  // equal to it when captured
  int64_t id = -1;                              // Buffer node when captured
  int buffer = -1;                              // in the merged schedule; -1: not touched
  bool written = false;                         // in place
  Ending ending;                                // its value after the call, when it changes
};

/// One recorded realization: a graph file of its values, in which Param k is the merged buffer
/// inputs[k] (-1: not read), and the buffers they went to.
struct Computation {
  std::vector<std::byte> graph;
  std::vector<int> inputs, results;
  std::vector<BoundVariable> variables;  ///< that the graph's stand for
  std::vector<int> into;                 ///< of each result: RecordedRun::Result::into
  std::vector<bool> constants;           ///< inputs that `schedule` takes to be constant
  // Null where the plan is not divided any more.
  std::shared_ptr<const CompiledSchedule> schedule;  ///< as it ran
  std::shared_ptr<const CallSites> sites;
};

/// Memory that a call makes and that outlives it.
struct Fresh {
  int buffer;
  TensorForm form;
  std::string label;
};

struct ReplayPlan {
  explicit ReplayPlan(Context& c) : context(c) {}
  ~ReplayPlan();
  ReplayPlan(const ReplayPlan&) = delete;
  ReplayPlan& operator=(const ReplayPlan&) = delete;

  TensorForm form_of(NodeRef buffer);  ///< keeps the dims
  NodeRef keep(NodeRef n);
  /// Of plans that are not divided any more.
  void let_go_of_schedules() {
    for (Computation& c : computations) c.schedule.reset(), c.sites.reset();
  }

  Context& context;
  CompiledSchedule captured;  ///< variables and buffers of the computations, without steps
  std::vector<Computation> computations;  ///< what they compute
  std::vector<HeldPlace> places;          ///< arguments first
  size_t arguments = 0;
  std::vector<Fresh> fresh;
  struct Result {
    Ending ending;
    int itself = -1;  ///< the place whose very storage is returned
  };
  std::vector<Result> results;
  struct Leftover {
    std::weak_ptr<Storage> storage;
    Ending ending;    ///< none: its value is not computed by the replay
    uint64_t writes;  ///< by others since: then it is theirs
    std::string name;
  };
  std::vector<Leftover> leftovers;  ///< made while capturing, still alive, not returned
  struct Frozen {
    std::weak_ptr<Storage> storage;
    uint64_t writes;
    std::string name;
  };
  std::vector<Frozen> frozen;             ///< constants that were compiled in
  std::vector<ReplayVariable> variables;  ///< as captured, in the merged schedule's order

 private:
  std::vector<NodeRef> kept_;
};

inline bool contains(std::span<const ReplayVariable> list, const ReplayVariable& v) {
  return std::ranges::find(list, v) != list.end();
}

/// `n` with other values: a Bind that is from[i] becomes one to values[i], others stay.
NodeRef rebound(Graph& g, NodeRef n, std::span<const ReplayVariable> from,
                std::span<const int64_t> values);

/// What a capture has seen.
struct Recording {
  std::vector<ReplayArgument> arguments;
  std::vector<ReplayVariable> variables;  ///< given to the capture
  std::vector<ReplayVariable> own;        ///< bound by the function itself
  std::unordered_map<int64_t, std::vector<std::weak_ptr<Storage>>> holders;  ///< at its start
  std::unordered_map<int64_t, std::string> host_data;  ///< nodes filled by the host since
  std::vector<int64_t> argument_ids;
  /// Params like the Buffer nodes of the arguments and of what was read: a storage that is given
  /// another value lets go of its node.
  std::unordered_map<int64_t, NodeRef> forms;
  std::vector<RecordedRun> runs;
  std::vector<std::shared_ptr<Storage>> results;
  std::vector<std::shared_ptr<Storage>> written;    ///< older than the capture, alive
  std::vector<std::shared_ptr<Storage>> leftovers;  ///< made since, alive, not results
  std::vector<ReplayPlan::Frozen> frozen;
};

/// Throws an Error naming the buffer or variable when the recording cannot be replayed correctly.
std::unique_ptr<ReplayPlan> plan_replay(Context& context, const Recording& recording);

}  // namespace weft
