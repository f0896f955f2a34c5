// RandomLeaves: sizes, shapes, params and constants of random tensor graphs.
#pragma once
#include "weft/trust/random.h"
#include "weft/trust/random_graph.h"

namespace weft {

/// An axis' size each; with variables among them, expressions.
using RandomDims = std::vector<NodeRef>;

class RandomLeaves {
 public:
  RandomLeaves(Graph& graph, Random& random, const RandomGraphOptions& options);

  /// A size between `least` and `most`; where there are variables, sometimes one of those instead.
  NodeRef size(int64_t least, int64_t most);
  RandomDims shape();
  /// Integers lie in [least, most], except that some may be the limits of their dtype.
  Value value(DType d, int64_t least, int64_t most);
  NodeRef param(DType dtype, const RandomDims& dims, int64_t least = -4, int64_t most = 4);
  /// A constant or, sometimes, the size of an axis.
  NodeRef number(DType dtype);

  /// The graph's inputs, one set for each binding of the variables.
  void give_inputs(RandomGraph& to) { to.bindings = std::move(bindings_); }

 private:
  Value special(DType d);
  void add_variables();
  int64_t extent(NodeRef dim, const eval::Inputs& binding) const;

  Graph& g_;
  Random& random_;
  const RandomGraphOptions& options_;
  std::vector<NodeRef> variables_;
  std::vector<eval::Inputs> bindings_;
};

}  // namespace weft
