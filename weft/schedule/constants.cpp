#include "weft/schedule/constants.h"

#include "weft/base/small_vector.h"
#include "weft/graph/tuple.h"

namespace weft {

bool ConstantValues::is_constant_leaf(NodeRef n) const {
  if (n->op == Op::Variable) return false;
  if (n->op != Op::Param || is_inner_param(n)) return true;
  const auto slot = static_cast<size_t>(param_slot(n));
  return slot < inputs_.size() && inputs_[slot];
}

bool ConstantValues::contain(NodeRef root) const {
  if (inputs_.empty()) return false;
  SmallVector<NodeRef, 32> stack{root};
  while (!stack.empty()) {
    NodeRef n = stack.back();
    bool constant = is_constant_leaf(n), ready = true;
    for (size_t i = 0; i < evaluated_sources(n) && !known_.contains(n); ++i) {
      const bool* source = known_.find(n->src(i));
      if (!source) stack.push_back(n->src(i));
      ready &= source != nullptr;
      constant &= source && *source;
    }
    if (!ready) continue;
    if (!known_.contains(n)) known_[n] = constant;
    stack.pop_back();
  }
  return known_.at(root);
}

}  // namespace weft
