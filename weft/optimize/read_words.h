// Words that are put together from neighbours in memory.
#pragma once
#include "weft/graph/graph.h"

namespace weft::optimize {

/// The kernel with words read as they lie in memory where it makes them of two or four neighbours,
/// the first in the lowest bits: out of a buffer of words where it reads nothing else of that
/// buffer, else by loads of several of its elements. For machines that read words from anywhere,
/// lowest byte first.
NodeRef read_words(Graph& g, NodeRef sink);

}  // namespace weft::optimize
