// A program as a captured function: recorded once, then replayed.
#pragma once
#include <vector>

#include "weft/eval/array.h"
#include "weft/trust/random_graph.h"

namespace weft {

class Context;

namespace trust {

/// Captures the program at the values of the first binding, its params being arguments, and replays
/// it at those of each binding in turn, the first one's again at the end: its roots each time, as
/// the capture, then each replay left them.
struct CapturedValues {
  std::vector<std::vector<eval::Array>> calls;
  std::vector<size_t> bindings;  ///< of each call
};
CapturedValues captured_run(Context& context, const RandomGraph& program);

}  // namespace trust
}  // namespace weft
