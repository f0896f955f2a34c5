// Products of rows with a large matrix, which comes from memory once: for a block of its columns,
// whose sums so far stay in L2, chunks of its rows. Few rows read them as they lie, where
// prefetchers follow; more have them packed.
#pragma once
#include "weft/graph/graph.h"
#include "weft/schedule/constants.h"
#include "weft/target/target.h"

namespace weft {

/// The same sum as a Repeat whose rounds run side by side; null where it is no such product.
NodeRef rows_by_matrix(Graph& g, NodeRef reduce, const Target& target,
                       const ConstantValues& constants);

}  // namespace weft
