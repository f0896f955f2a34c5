// Products with a matrix that is decoded: computed, element by element, from less memory than it
// takes itself. A block of its columns at a time is in the cache, and all of it never in memory.
#pragma once
#include "weft/graph/graph.h"
#include "weft/schedule/constants.h"
#include "weft/target/target.h"

namespace weft {

/// Whether `n` is large, and computed from much less memory.
bool is_decoded(NodeRef n, const Machine& machine);

/// Whether `reduce` adds up sums of bytes (Dot4) that are scaled: products of packed weights with
/// rows that are rounded. Its order does not depend on how many rows there are.
bool sums_scaled_bytes(NodeRef reduce);

/// The same sum as a Repeat whose rounds, blocks of columns, run side by side; null
/// where it is no such product, or of so few rows that the kernel decodes (plan.h).
NodeRef decoded_by_blocks(Graph& g, NodeRef reduce, const Target& target,
                          const ConstantValues& constants);

}  // namespace weft
