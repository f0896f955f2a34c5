// Movement ops as index maps: where in the source an element of the result comes from, and when it
// comes from there at all.
#pragma once
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// Where a tensor is read or written: one index expression per axis, meaningful where `valid`
/// holds.
struct Access {
  std::vector<NodeRef> index;
  NodeRef valid;  ///< bool expression; the constant true where always valid
};

/// The access to `op`'s first source that `at`, one of its result, becomes. Gather is not a pure
/// index map and is handled by the caller.
Access map_access(Graph& g, NodeRef op, const Access& at);

/// The access to the array that `assign` updates by which `at`, one of its value, is written.
Access written_access(Graph& g, NodeRef assign, Access at);

/// Row-major position of `index` in a tensor with extents `dims`.
NodeRef flatten_index(Graph& g, std::span<const NodeRef> index, std::span<const NodeRef> dims);

}  // namespace weft
