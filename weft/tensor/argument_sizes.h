// ArgumentSizes: which arguments of a call bind variables, and to what.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/run/replay.h"
#include "weft/tensor/dim.h"

namespace weft {

/// The sizes of a call, as expressions: of each argument one, over Binds.
class ArgumentSizes {
 public:
  using Variables = std::vector<ReplayVariable>;

  /// Of the next argument; null where it binds nothing.
  void add(NodeRef expression);
  void clear() { *this = {}; }

  const RootedNode& operator[](size_t i) const { return expressions_[i]; }
  /// The distinct ones, in the order in which they were met.
  const Variables& variables() const { return variables_; }
  /// What variables() are in another call of the same structure; nothing where it has two values
  /// for what is one size here. Arguments that differ in more than values count for nothing: that
  /// is an Error elsewhere. Within a Graph::Building scope.
  std::optional<Variables> in(Graph& g, const ArgumentSizes& call) const;

 private:
  std::vector<RootedNode> expressions_;
  std::vector<bool> has_sizes_;  // of each, whether it holds a Bind
  Variables variables_;
};

/// `n` with every Bind replaced by its Variable: what stays the same between calls.
NodeRef without_values(Graph& g, NodeRef n);

}  // namespace weft
