// RowCone: attention as the graph has it, softmax(scores) times values, seen from its rows.
#pragma once
#include <optional>
#include <vector>

#include "weft/graph/node_map.h"
#include "weft/schedule/index_map.h"

namespace weft {

/// Everything between a product's operands and its result that no other value is made of, where
/// the left operand is a softmax, along the sum, of another product. Each value is seen at one
/// access, over one range for every axis of the result, for the sum, and for each axis that a sum
/// inside closes.
struct RowCone {
  using Deps = uint64_t;  ///< a bit for each range

  /// A value that is not computed by rows: read at these indices.
  struct Leaf {
    NodeRef node;
    std::vector<NodeRef> index;
  };

  NodeRef product = nullptr;  ///< the Reduce
  NodeRef weights = nullptr;  ///< its left operand: the quotient
  NodeRef values = nullptr;   ///< its right operand
  size_t row = 0, key = 0;    ///< numbers of ranges: the result's are those of its axes
  std::vector<NodeRef> ranges;
  std::vector<NodeRef> computed;  ///< for a block of rows, sources first
  NodeMap<std::vector<NodeRef>> index;
  NodeMap<Deps> deps;               ///< of each value: the ranges it differs along
  NodeMap<Leaf> leaves;             ///< by the value they are
  std::vector<NodeRef> conditions;  ///< index expressions: keys where one is below 0 weigh nothing
};

/// Of a tensor graph: its nodes, sources first, and how often each is read.
struct GraphUses {
  std::span<const NodeRef> order;
  NodeMap<int> count;
};

/// Of the `position`-th node; none where it is not attention.
std::optional<RowCone> find_row_cone(Graph& g, const GraphUses& uses, size_t position);

}  // namespace weft
