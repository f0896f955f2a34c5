// A program on no machine: its kernels' instructions one by one, with every access looked at.
#pragma once
#include <string>

#include "weft/eval/evaluate.h"
#include "weft/trust/random_graph.h"

namespace weft {

class Context;
struct Target;

namespace trust {

struct CheckedValues {
  std::vector<eval::Array> values;
  /// A kernel holds instructions that are a machine's own, or takes too many of them: nothing is
  /// known.
  bool unknown = false;
};

/// What the kernels for `target` compute. An Error (trust.access) names the kernel that reads or
/// writes outside of a buffer, reads local memory that nobody wrote, or where work items of a group
/// touch the same memory without a barrier in between.
CheckedValues checked_run(Context& context, const Target& target, const RandomGraph& program,
                          const eval::Inputs& binding);

}  // namespace trust
}  // namespace weft
