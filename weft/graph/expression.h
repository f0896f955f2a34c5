// Expressions on one line: the parts print.h's functions share.
#pragma once
#include <string>

#include "weft/graph/node.h"

namespace weft {

/// `8` for an index, `0.5:f32` otherwise.
void append_constant(std::string& out, NodeRef constant);
/// expression() that gives up ("...") after `budget` operators.
std::string short_expression(NodeRef n, int budget);

}  // namespace weft
