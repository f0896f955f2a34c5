// Inequality: proofs that an index expression is never positive, from what is known of its parts.
#pragma once
#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft {

/// Facts are expressions that are at most 0: sizes of ranges, quotients and remainders, minima, and
/// the conjuncts of a mask. A proof subtracts multiples of facts from the expression, each fact at
/// most once, always the one that gives the least upper bound by intervals (the elimination step of
/// Fourier and Motzkin, without going back). Sound, not complete.
class Inequality {
 public:
  /// Facts hold where `valid` (bool) does.
  Inequality(Graph& g, NodeRef valid);

  /// True only if `expression` <= 0 wherever the mask holds.
  bool never_positive(NodeRef expression);
  /// True only if 0 <= `index` < `size` wherever the mask holds.
  bool inside(NodeRef index, NodeRef size);

 private:
  /// Less than the expression to prove, `scale` times as large.
  struct Rest {
    NodeRef node;
    double scale = 1;
    size_t fact = 0;  // the last one subtracted
    double bound() const { return static_cast<double>(node->vmax) / scale; }
  };
  void learn_mask(NodeRef valid);
  void learn_about(NodeRef term);
  void learn_about_size(NodeRef range);
  void learn(NodeRef never_positive);
  NodeRef without_divisions(NodeRef root);
  int64_t most_times(NodeRef x, NodeRef c);
  NodeRef stand_in(NodeRef division);
  Rest lowered(const Rest& from, const std::vector<bool>& used);

  Graph& g_;
  std::vector<NodeRef> facts_;
  NodeMap<NodeRef> divisions_;  // quotients and remainders to variables
  NodeMap<bool> terms_;         // that facts were derived from
};

}  // namespace weft
