// Movement ops as index maps: where in the source an element of the result comes from, and when it
// comes from there at all.
#pragma once
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// A place in a tensor: one index expression per axis, meaningful where `valid` holds.
struct Place {
  std::vector<NodeRef> index;
  NodeRef valid;  ///< bool expression; the constant true where always valid
};

/// The place in `op`'s first source that `at`, a place in its result, reads. Gather is not a pure
/// index map and is handled by the caller.
Place map_place(Graph& g, NodeRef op, const Place& at);

/// The place in the array that `assign` updates to which `at`, a place in its value, is written.
Place written_place(Graph& g, NodeRef assign, Place at);

/// Row-major position of `index` in a tensor with extents `dims`.
NodeRef flatten_index(Graph& g, std::span<const NodeRef> index, std::span<const NodeRef> dims);

}  // namespace weft
