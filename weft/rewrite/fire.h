// Firing a matched rule: does its condition hold, and what does its right side build.
#pragma once
#include "weft/rewrite/rule_set.h"

namespace weft {

/// True when the condition is known to be true (an empty one is).
bool condition_holds(const Pat& cond, const Match& m, const ContextCalls& calls);

/// The right side with the match's nodes in place of its variables; null where an index constant
/// would overflow or a constant function has no value.
NodeRef build_replacement(const Pat& rhs, const Match& m, const ContextCalls& calls);

/// `n` spread over the shape of `like`, when n has rank 0 and `like` has not.
NodeRef with_shape_of(Graph& g, NodeRef n, NodeRef like);

}  // namespace weft
