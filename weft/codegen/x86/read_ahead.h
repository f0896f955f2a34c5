// What comes next in memory is on its way while this is computed.
#pragma once
#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/target/target.h"

namespace weft::codegen {

/// How many bytes further on will be read later, and whether that is so far off that L2 is near
/// enough.
struct Ahead {
  int64_t bytes = 0;
  bool later = false;
  // Where an item's loop walks many rows at once, of memory that lies in one piece: so many lines
  // of it in each iteration, from one end to the other, which the machine's prefetchers follow.
  NodeRef loop = nullptr;
  int64_t lines = 0, apart = 0;  ///< `apart`: bytes that the next iteration's begin further on
};

/// For loads that are worth a prefetch. The machine's own prefetchers do not follow
/// - what is read in small pieces between much else (packed weights; rows side by side whose
///   numbers are multiplied one by one): in programs that read far more than a core's L2, a little
///   for each operation, with loops inside of work items, what the next item reads, in the order of
///   memory where that is one piece;
/// - what a sum takes from many pages, one by one (the window in each channel of an image) or, of
///   matrices far beyond L2, in vectors: what the next tile reads. Within a page they follow.
NodeMap<Ahead> reads_ahead(const LinearProgram& program, const Target& target);

}  // namespace weft::codegen
