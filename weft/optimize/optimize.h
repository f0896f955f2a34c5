// Optimising: one kernel as a graph of loops becomes a faster one with the same values: ranges are
// split, ordered and bound to cores, vector lanes and unrolled.
#pragma once
#include <string>
#include <vector>

#include "weft/graph/program.h"
#include "weft/optimize/loop_plan.h"

namespace weft {

struct Target;

/// What optimize_kernel did.
struct OptimizeReport {
  std::vector<std::string> applied;  ///< one line per transformation, in order
  bool foreign = false;              ///< the plan given is not one of this kernel: it was ignored
};

struct OptimizeOptions {
  bool enabled = true;               ///< false: the kernel comes back as it is
  OptimizeReport* report = nullptr;  ///< filled in when given (WEFT_DEBUG=3, explain)
  const LoopPlan* plan = nullptr;    ///< what a search has found; null: the cost model chooses
};

/// A kernel that computes the same as `kernel`, in a graph of its own, with ranges bound for
/// `target` as docs/design/ir.md section 2 allows. The result depends on the kernel and the
/// target's code-relevant fields (and the plan) alone, never on the number of threads. Float sums
/// may be reassociated, by a tree that the result fixes.
Kernel optimize_kernel(const Kernel& kernel, const Target& target, const OptimizeOptions& options);

}  // namespace weft
