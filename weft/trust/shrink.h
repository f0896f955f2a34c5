// What makes programs smaller: nodes replaced by others, as they are.
#pragma once
#include <optional>

#include "weft/graph/node_map.h"
#include "weft/trust/random_graph.h"

namespace weft::trust {

/// `roots` with every key of `images` replaced, none of which is looked into. Nothing is
/// simplified, so that what fails goes on failing. Nothing where the new nodes do not fit each
/// other.
std::optional<std::vector<NodeRef>> replaced(Graph& g, std::span<const NodeRef> roots,
                                             const NodeMap<NodeRef>& images);

}  // namespace weft::trust
