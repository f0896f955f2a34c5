// What the next work item reads comes while this one computes.
#pragma once
#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/target/target.h"

namespace weft::codegen {

/// For loads that are worth a prefetch, how many bytes further on the next work item reads. In
/// programs that read far more than a core's L2, a little for each operation, with loops inside of
/// work items: the machine's own prefetchers do not follow what is read in small pieces between
/// much else (packed weights).
NodeMap<int64_t> reads_ahead(const LinearProgram& program, const Target& target);

}  // namespace weft::codegen
