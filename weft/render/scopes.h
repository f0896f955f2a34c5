// Which values of a linear program have to be declared outside of the block that computes them.
#pragma once

#include "weft/graph/node_map.h"
#include "weft/graph/program.h"

namespace weft {

/// Constants, params, variables and local memory: named where they are used.
bool is_program_leaf(NodeRef n);

/// Values that something outside their block uses (it then sees those of the last iteration), or
/// that are computed in several places. An InternalError where a block is closed that is not open.
NodeMap<bool> escaping_values(const LinearProgram& program);

}  // namespace weft
