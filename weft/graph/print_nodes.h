// The lines of a part of a graph, for those who show its beginning.
#pragma once
#include <span>
#include <string>

#include "weft/graph/node.h"

namespace weft {

/// As print_graph() has them, of nodes that come after their sources; nothing is returned.
std::string print_nodes(std::span<const NodeRef> nodes);

}  // namespace weft
