// ItemCost: about how long one item of a program takes on one thread of the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/graph/index_value.h"
#include "weft/graph/program.h"

namespace weft {

/// Of instructions in a loop, but in no such loop inside of it.
struct LoopCost {
  int around = -1;         ///< the loop around it: earlier in the list; -1: none
  double ns = 0;           ///< of one iteration, of compiled code
  NodeRef size = nullptr;  ///< over variables; null: of what is in no such loop, first in the list
};
std::vector<LoopCost> loop_costs(const LinearProgram& program);

/// Each instruction as often as the loops around it run. Loops whose sizes depend on variables run
/// as often as a launch's values say: what takes a moment for one length is worth threads for
/// another.
class ItemCost {
 public:
  ItemCost() = default;  ///< not known: 0
  /// `slowness`: of the device, against compiled code.
  ItemCost(const LinearProgram& program, double slowness)
      : ItemCost(loop_costs(program), program.variables, slowness) {}
  ItemCost(std::span<const LoopCost> loops, std::span<const NodeRef> variables, double slowness);

  /// Nanoseconds; `variables` in the order of LinearProgram::variables.
  double operator()(std::span<const int64_t> variables) const {
    return loops_.empty() ? always_ : evaluate(variables);
  }

 private:
  struct Loop {
    int around;  // earlier in the list; -1: none
    double ns;
    IndexProgram size;
  };

  double evaluate(std::span<const int64_t> variables) const;

  double always_ = 0;  // of what runs equally often for all values
  std::vector<Loop> loops_;
};

}  // namespace weft
