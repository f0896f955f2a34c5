// Words that are put together from neighbours in memory.
#pragma once
#include "weft/graph/graph.h"

namespace weft::optimize {

/// The kernel with words read as they lie in memory where it makes them of two or four neighbours,
/// the first in the lowest bits, and reads nothing else of that buffer: for machines that read
/// words from anywhere, lowest byte first.
NodeRef read_words(Graph& g, NodeRef sink);

}  // namespace weft::optimize
