// RowCone: attention as the graph has it, softmax(scores) times values, seen from its rows.
#pragma once
#include <optional>
#include <vector>

#include "weft/graph/node_map.h"
#include "weft/schedule/index_map.h"

namespace weft {

/// A product that a softmax takes part in: weights, made of the scores, times values.
struct ScoreProduct {
  NodeRef sum;                 ///< the Reduce
  NodeRef weights;             ///< the operand that differs along rows and keys
  NodeRef values;              ///< the other one
  std::vector<NodeRef> index;  ///< of the result
};

/// Everything between the operands of products and their results that no other value is made of,
/// where the products are of a softmax along the keys or, as in its gradient, of what is made of
/// one, and add up keys or rows. Each value is seen at one access, over one range for every axis of
/// the first product, for the keys, and for each axis that only another has or a sum inside closes.
struct RowCone {
  using Deps = uint64_t;  ///< a bit for each range

  /// A value that is not computed by rows: read at these indices.
  struct Leaf {
    NodeRef node;
    std::vector<NodeRef> index;
  };

  std::vector<ScoreProduct> products;  ///< the first adds up keys
  NodeRef exponential = nullptr;
  size_t row = 0, key = 0;  ///< numbers of ranges: what lies before the row are heads
  std::vector<NodeRef> ranges;
  std::vector<NodeRef> computed;  ///< for a block of rows, sources first
  NodeMap<std::vector<NodeRef>> index;
  NodeMap<Deps> deps;               ///< of each value: the ranges it differs along
  NodeMap<bool> scored;             ///< what is made of the scores
  NodeMap<Leaf> leaves;             ///< by the value they are
  std::vector<NodeRef> conditions;  ///< index expressions: keys where one is below 0 weigh nothing

  bool has_range(size_t r) const { return ranges[r]->op == Op::Range; }
  /// Of a range; the most where a variable decides.
  int64_t size_of(size_t r) const { return has_range(r) ? ranges[r]->src(0)->vmax : 1; }
  bool is_symbolic(size_t r) const { return has_range(r) && ranges[r]->src(0)->op != Op::Const; }
  int64_t heads() const;
  /// Whether it adds up rows, not keys.
  bool adds_rows(const ScoreProduct& p) const;
  /// The ranges within a head that a product's result has: rows or keys, then the others.
  std::vector<size_t> ranges_of(const ScoreProduct& p) const;
};

/// Of a tensor graph: its nodes, sources first, and how often each is read.
struct GraphUses {
  std::span<const NodeRef> order;
  NodeMap<int> count;
};

/// Every attention of more scores than these, forwards and backwards.
std::vector<RowCone> find_row_cones(Graph& g, const GraphUses& uses, double scores);

}  // namespace weft
