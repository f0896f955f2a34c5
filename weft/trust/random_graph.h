// Random valid tensor graphs with inputs for them, and the smallest graph that still fails a test.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/eval/evaluate.h"
#include "weft/graph/graph.h"

namespace weft {

struct RandomGraphOptions {
  int steps = 10;         ///< ops put on top of each other; each may need a few more nodes
  int64_t largest = 200;  ///< elements of any array
  int64_t longest = 5;    ///< axis of a param, and how far a variable's values reach
  int variables = 0;      ///< in sizes, offsets and numbers
  bool exact = false;     ///< only ops and values whose float results do not depend on the order
                          ///< of sums: small integers, no division, roots or transcendentals
  bool transcendental = true;  ///< exp2, log2 and sin, which kernels may give 1 ulp differently
  bool float_sums = true;      ///< sums and products of floats, whose order is the compiler's
  bool folds = false;          ///< mostly reductions and running folds, along different axes
  bool specials = true;        ///< NaN, infinities, -0 and limits among the inputs (never if exact)
  bool elementwise = false;    ///< chains: elementwise and movement ops alone
  bool simplify = true;        ///< build with Graph::make; otherwise with Graph::intern, as written
  std::vector<DType> dtypes;   ///< empty: all data types
};

struct RandomGraph {
  std::vector<NodeRef> roots;
  /// What the leaves stand for: once, or for each of a few values of the variables.
  std::vector<eval::Inputs> bindings;

  /// The oracle's values of `nodes`, for one binding after the other.
  std::vector<eval::Array> evaluate(std::span<const NodeRef> nodes) const;
  std::vector<eval::Array> evaluate() const { return evaluate(roots); }
};

/// The same graph for the same seed and options, whatever else was built in `graph`.
RandomGraph random_graph(Graph& graph, uint64_t seed, const RandomGraphOptions& options = {});

/// Each root becomes its sum over some of its axes, as Tensor::sum writes it: a root that is no
/// float is made f32, and halves are carried in f32.
void end_in_sums(Graph& graph, RandomGraph& g, uint64_t seed);

/// Cuts and bypasses nodes as long as `fails` stays true, and returns what is left.
RandomGraph shrink(Graph& graph, RandomGraph failing,
                   const std::function<bool(const RandomGraph&)>& fails);

/// The text form, with the inputs as comments; paste it into a .wt case.
std::string describe(const RandomGraph& g);

}  // namespace weft
