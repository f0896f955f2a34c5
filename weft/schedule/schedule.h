// The scheduler: a tensor graph becomes kernels over buffers, in an order that is safe.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/program.h"

namespace weft {

struct Target;

/// One tensor to compute. `into` names the input slot whose buffer receives it in place (an
/// assigned parameter); the caller has made sure that nobody outside this schedule still wants that
/// buffer's old contents. -1 = a fresh buffer.
struct ScheduleOutput {
  NodeRef value;
  int into = -1;
};

struct BufferSpec {
  DType dtype;
  NodeRef numel;  ///< index expression over the schedule's variables
  DeviceId device;
  int input = -1;   ///< slot of the input it is, or -1
  int output = -1;  ///< index of the output it is, or -1
  std::string
      layout;  ///< how the axes lie in memory, for people: "row-major" or an order like "c,h,w,n"
  bool of_round = false;  ///< rounds that run side by side have one each
};

struct ScheduleStep {
  enum class Kind : uint8_t { Run, Copy };
  Kind kind = Kind::Run;
  int kernel = -1;           ///< index into kernels (Run)
  std::vector<int> buffers;  ///< Run: buffer of each kernel slot. Copy: {from, to}
  /// Structural hashes of the nodes it computes, as they were given to make_schedule(): from its
  /// first reduction on, sources first. No part of the kernel, so that two lines can share one.
  std::vector<uint64_t> origins;
  /// The values that variables of the schedule's own have in this step: which time around a Repeat
  /// it is.
  struct Fixed {
    std::string variable;
    int64_t value;
  };
  std::vector<Fixed> fixed = {};
  /// Steps in a row with rounds that never fall are of rounds that do not depend on each other; -1:
  /// of none.
  int64_t round = -1;
  /// Of a Repeat that may end early: which of the schedule's. -1: of none.
  int loop = -1;
  /// Position among `buffers` (or behind those of the kernel) of one in i32: where none of its
  /// elements is 0, this step and what follows of its loop may be left out. -1: it does not ask.
  int asks = -1;
};

/// Why a value was fused into its consumer or materialised.
struct Decision {
  NodeRef node;  ///< in the schedule's graph
  bool staged;
  std::string reason;
  uint64_t origin;  ///< structural hash of the node it was; 0 for nodes of the schedule's own
};

struct Schedule {
  std::shared_ptr<Graph> graph;  ///< owns sizes, variables and decisions' nodes
  std::vector<Kernel> kernels;   ///< distinct ones; steps refer to them by index
  std::vector<BufferSpec> buffers;
  std::vector<ScheduleStep> steps;
  std::vector<int> outputs;  ///< buffer of each requested output: its own
  int loops = 0;             ///< that may end early
  std::vector<NodeRef> variables;
  std::vector<Decision> decisions;
};

struct ScheduleOptions {
  bool fuse = true;  ///< false: materialise every elementwise value too (for bisection and tests)
  bool layouts = true;   ///< false: every intermediate is row-major
  bool explain = false;  ///< record decisions
  /// By input slot: whether what is computed from it alone is computed once for many runs, so that
  /// it costs nothing. None: nothing is.
  std::vector<bool> constants = {};
  bool in_rounds = false;  ///< it is of a Repeat that no user has written
};

/// Schedules `outputs` for a machine: its caches and vectors decide how reductions are cut up and
/// how values lie in memory. Inputs are Param(slot) nodes with dims; Binds have become Variables.
/// Throws InternalError for graphs that are not valid tensor graphs; the order and all names depend
/// on the structure alone.
Schedule make_schedule(std::span<const ScheduleOutput> outputs, const Target& target,
                       const ScheduleOptions& options = {});

}  // namespace weft
