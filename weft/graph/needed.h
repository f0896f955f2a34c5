// make_needed: what steps make of nodes when somebody asks for it.
#pragma once
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

}  // namespace weft
