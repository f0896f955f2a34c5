// Walks that steps take over nodes; Toposort and NumberedOrder are in graph.h.
#pragma once
#include <span>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/base/small_vector.h"
#include "weft/graph/graph.h"

namespace weft {

/// Makes what `root` needs and is not known yet, each node after its sources. Iterative. What
/// make(n) made is known(n).
template <class Known, class Make>
void make_needed(NodeRef root, Known&& known, Make&& make) {
  SmallVector<NodeRef, 32> stack{root};
  while (!stack.empty()) {
    NodeRef n = stack.back();
    if (known(n)) {
      stack.pop_back();
      continue;
    }
    const size_t before = stack.size();
    for (NodeRef s : n->src())
      if (!known(s)) stack.push_back(s);
    if (stack.size() == before) make(n);
  }
}

/// Graphs made anew, sources first: `fn(node, new sources)` gives each node's image. What the roots
/// became; what they share is made once.
std::vector<NodeRef> rebuild_all(std::span<const NodeRef> roots,
                                 FunctionRef<NodeRef(NodeRef, std::span<const NodeRef>)> fn);

/// The operands of a tree of one op, from left to right: a, b and c of a + (b + c).
SmallVector<NodeRef, 16> operands_of(NodeRef n, Op op);

}  // namespace weft
