// Attention by blocks of rows.
#pragma once
#include "weft/schedule/row_cone.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

/// The same values with each attention whose scores fit no cache computed for one block of rows
/// after the other, as a Repeat: memory is as long as the sequence, not as its square. `origins`
/// gets, of every value that is another node now, the structural hash of the one it was.
std::vector<NodeRef> by_row_blocks(Graph& g, std::span<const NodeRef> roots, const Target& target,
                                   const ScheduleOptions& options, NodeMap<uint64_t>& origins);

}  // namespace weft
