// Rounds of a Repeat, as what goes block by block is written.
#pragma once
#include <span>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// A Repeat of `count` rounds, whose body has params from `slot` on: first its inputs, read whole,
/// then what it carries. What was carried last, then what each round made.
std::vector<NodeRef> repeat(Graph& g, int64_t count, int64_t slot, std::span<const NodeRef> whole,
                            std::span<const NodeRef> carried, std::span<const NodeRef> nexts,
                            std::span<const NodeRef> outs);
/// That gives one value: what it carries, or what each round makes.
NodeRef repeat(Graph& g, int64_t count, int64_t slot, std::span<const NodeRef> whole,
               std::span<const NodeRef> carried, NodeRef value);

/// A body's param in the place of `n`.
NodeRef placeholder(Graph& g, NodeRef n, int64_t slot);
/// What is added to begins as this.
NodeRef zeros_like(Graph& g, NodeRef x);

}  // namespace weft
