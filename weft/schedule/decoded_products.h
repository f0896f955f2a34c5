// Products with a matrix that is decoded: computed, element by element, from less memory than it
// takes itself. A block of its columns at a time is in the cache, and all of it never in memory.
#pragma once
#include <vector>

#include "weft/graph/graph.h"
#include "weft/target/target.h"

namespace weft {

/// So many rows share what is decoded in the registers of a tile (six of Q4_0 by 4096 x 4096: 1.03
/// ms; 0.75 for three, 2.1 for eight by blocks).
constexpr double kRowsInRegisters = 6;

/// `n` and the values as large that it is made of, where it is computed element by element from much
/// less memory than it takes; nothing where it is not large, or cheap to compute.
std::vector<NodeRef> decoded_cone(NodeRef n, const Target& target);

/// For more rows: the same sum as a Repeat whose rounds, blocks of columns, run side by side; null
/// where it is no such product.
NodeRef decoded_by_blocks(Graph& g, NodeRef reduce, const Target& target);

}  // namespace weft
