// Reads the text form of graphs; every mistake is an Error with its line and column.
#pragma once
#include <string_view>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// The roots of the graph in `text` (see print.h): those of its `return` line, else the last node.
/// `what` names the text in errors. Each node is checked as far as building it needs (node_problem
/// in verify.h); whether the graph is a valid tensor graph or kernel is the caller's next question.
std::vector<NodeRef> parse_graph(Graph& graph, std::string_view text,
                                 std::string_view what = "graph text");

}  // namespace weft
