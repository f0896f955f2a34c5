// Which values of a linear program have to be declared outside of the block that computes them.
#pragma once

#include <vector>

#include "weft/graph/node_map.h"
#include "weft/graph/program.h"

namespace weft {

/// Constants, params, variables and local memory: named where they are used.
bool is_program_leaf(NodeRef n);

/// The arrays that items of a group share: one Local of each, in the order of first use.
std::vector<NodeRef> local_arrays(const LinearProgram& program);

/// Values that something outside their block uses (it then sees those of the last iteration), or
/// that are computed in several places. An InternalError where a block is closed that is not open.
NodeMap<bool> escaping_values(const LinearProgram& program);

}  // namespace weft
