// Random index expressions, kept both as written and as the node the graph makes of them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/trust/random.h"

namespace weft {

/// An expression as written: nothing is simplified here.
struct WrittenExpression {
  Op op;
  int64_t constant = 0;      // Const
  NodeRef leaf = nullptr;    // Range or Variable
  std::vector<size_t> args;  // places of the operands in the list
};

/// The values of leaves at one point.
using LeafValues = std::map<NodeRef, int64_t>;

class RandomIndex {
 public:
  /// A few ranges (one may depend on another, one has a symbolic size) and a variable.
  RandomIndex(Graph& graph, uint64_t seed);
  /// Appends one more random operation over what is there, building it in the graph too.
  void grow();
  size_t size() const { return written_.size(); }
  NodeRef node(size_t i) const { return nodes_[i]; }
  /// The value of expression `i` as written.
  int64_t value(size_t i, const LeafValues& leaves) const;
  /// Every combination of leaf values.
  const std::vector<LeafValues>& points() const { return points_; }
  std::string text(size_t i) const;
  /// Places whose value is a bool.
  bool is_bool(size_t i) const { return nodes_[i]->dtype == DType::Bool; }

 private:
  void add_leaf(NodeRef n);
  void add(Op op, std::vector<size_t> args);
  size_t pick(bool boolean);
  void find_points();

  Graph& graph_;
  Random random_;
  std::vector<WrittenExpression> written_;
  std::vector<NodeRef> nodes_;
  std::vector<LeafValues> points_;
};

/// The value of an index or bool expression of the graph.
int64_t index_value(NodeRef n, const LeafValues& leaves);

}  // namespace weft
