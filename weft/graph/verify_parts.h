// What the verifiers of tensor graphs and of kernels share.
#pragma once
#include <optional>

#include "weft/graph/verify.h"

namespace weft {

using Found = std::optional<Problem>;

inline NodeSpec spec_of(NodeRef n) {
  return {n->op, n->dtype, n->src(), n->ints(), n->text(), n->lanes};
}

/// Carries and elems in the bodies of `loop` name what it has; with `scalars_only`, bodies hold
/// nothing but scalar expressions.
Found find_body_problem(NodeRef loop, bool scalars_only);

/// Items of a group that touch what another one writes without a barrier between them, or touch
/// what is no local memory. Past some work it looks no further.
Found find_local_race(const LinearProgram& program);

/// For node_problem(): null, or that a source has no value of its own where one is needed.
const char* source_without_value(const NodeSpec& s);

}  // namespace weft
