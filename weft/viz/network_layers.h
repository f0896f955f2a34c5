// The layers of a network that a graph's nodes belong to, as far as names of parameters tell.
#pragma once

#include <string_view>

#include "weft/base/function_ref.h"
#include "weft/viz/graph_data.h"

namespace weft::viz {

/// Fills in `graph.layers`. A parameter's layer is its name without the last word: "block.0.conv"
/// of "block.0.conv.weight". What reads parameters is of the first one's layer; the rest is of the
/// layer among those of its sources that was begun last. So gradients are of the layer whose
/// weights they were made with. `name`: of a node that is a parameter, else empty.
void find_layers(GraphData& graph, FunctionRef<std::string_view(size_t)> name);

}  // namespace weft::viz
