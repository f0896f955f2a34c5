// What steps ask about a kernel's graph: found when it is first asked for, and once for all steps
// between which the graph stays as it is.
#pragma once
#include <optional>

#include "weft/lower/loop_tree.h"
#include "weft/lower/range_deps.h"

namespace weft::lower {

class Analysis {
 public:
  /// Numbers the nodes: while steps ask it, no other NumberedOrder of the graph is made.
  explicit Analysis(NodeRef sink) : order_(sink) {}
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  NodeRef sink() const { return order_.nodes().back(); }
  const NumberedOrder& order() const { return order_; }
  const RangeDeps& deps() { return deps_ ? *deps_ : deps_.emplace(order_); }
  const LoopTree& loops() { return loops_ ? *loops_ : loops_.emplace(deps()); }

 private:
  NumberedOrder order_;
  std::optional<RangeDeps> deps_;
  std::optional<LoopTree> loops_;
};

}  // namespace weft::lower
