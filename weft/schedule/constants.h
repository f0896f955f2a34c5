// ConstantValues: what is computed from inputs alone that no run changes, so that it is computed
// once for all runs.
#pragma once
#include <vector>

#include "weft/graph/node_map.h"

namespace weft {

class ConstantValues {
 public:
  /// `inputs`: by slot, whether its contents stay as they are; those beyond its end change.
  explicit ConstantValues(std::vector<bool> inputs) : inputs_(std::move(inputs)) {}

  /// Of a tensor graph's node; that of numbers alone is constant, too.
  bool contain(NodeRef n) const;

 private:
  bool is_constant_leaf(NodeRef n) const;

  std::vector<bool> inputs_;
  mutable NodeMap<bool> known_;
};

}  // namespace weft
