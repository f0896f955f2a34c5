// Calls in the place of which stands what they compute.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft {

/// The results of `call` on `inputs`: its bodies with them in the place of their params.
std::vector<NodeRef> results_on(Graph& g, NodeRef call, std::span<const NodeRef> inputs);

/// A graph without calls.
class InlinedCalls {
 public:
  InlinedCalls(Graph& g, std::span<const NodeRef> roots);
  /// What became of a node under the roots; a call is no node any more.
  NodeRef image(NodeRef n) const { return images_.at(n); }
  /// What results are made of, each with the first call that it is a part of.
  const std::vector<std::pair<NodeRef, NodeRef>>& made() const { return made_; }

 private:
  NodeRef result(Graph& g, NodeRef get);

  NodeMap<NodeRef> images_;
  NodeMap<std::vector<NodeRef>> results_;  // of calls
  NodeMap<bool> known_;                    // of made_
  std::vector<std::pair<NodeRef, NodeRef>> made_;
};

}  // namespace weft
