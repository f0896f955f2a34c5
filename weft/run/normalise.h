// Normal form of what is to be realized: buffers become Params by first visit and Binds become
// Variables, so that the same step of a program is the same node every time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft {

struct BoundVariable {
  NodeRef variable;  ///< Op::Variable of the tensor graph
  std::string name;  ///< in the normal form; other than the variable's own when one name stands for
                     ///< two values
  int64_t value;
};

struct NormalForm {
  std::vector<NodeRef> asked;   ///< the values as given
  NodeMap<NodeRef> copies;      ///< of every node under them, in the graph normalised into
  std::vector<NodeRef> values;  ///< in the graph normalised into
  std::vector<NodeRef> inputs;  ///< Buffer node of each slot
  std::vector<BoundVariable> variables;
  std::vector<NodeRef> seen;  ///< of `watched`, those that were met
};

/// Normalises `values` into `graph`. `home` is the device that is written as 0. An Error where a
/// variable has no value.
NormalForm normalise(Graph& graph, std::span<const NodeRef> values, DeviceId home,
                     std::span<const NodeRef> watched = {});

}  // namespace weft
