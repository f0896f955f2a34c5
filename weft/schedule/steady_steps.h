// For how many steps of a loop a value that is read there stays the same.
#pragma once

#include <cstdint>
#include <span>

#include "weft/graph/node.h"

namespace weft {

/// The largest c for which the positions depend on r only by r / c, where that is plain to see: a
/// value at them stays the same for c steps.
/// (of blocks with one scale: the elements of a block). 1 where it is not.
int64_t steady_steps(std::span<const NodeRef> index, NodeRef r);

}  // namespace weft
