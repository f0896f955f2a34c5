#include "weft/graph/tuple.h"

namespace weft {

namespace {

/// Consecutive parts of a node's sources.
class Cut {
 public:
  explicit Cut(NodeRef n) : left_(n->src()) {}
  std::span<const NodeRef> take(int64_t count) {
    const auto part = left_.first(static_cast<size_t>(count));
    left_ = left_.subspan(part.size());
    return part;
  }
  std::span<const NodeRef> rest() const { return left_; }

 private:
  std::span<const NodeRef> left_;
};

}  // namespace

int64_t inner_slots_above(std::span<const NodeRef> bodies) {
  int64_t slot = kInnerSlots;
  for (NodeRef n : Toposort(bodies)) {
    if (n->op == Op::Repeat) slot = std::max(slot, RepeatParts(n).slot + kSlotsPerLevel);
    if (n->op == Op::Custom) slot = std::max(slot, kInnerSlots + kSlotsPerLevel);
    if (n->op == Op::Function) slot = std::max(slot, FunctionParts(n).slot + kSlotsPerLevel);
  }
  return slot;
}

FunctionParts::FunctionParts(NodeRef n) : slot(n->int_arg(2)) {
  Cut cut(n);
  results = cut.take(n->int_arg(0));
  inputs = cut.take(n->int_arg(1));
  gradients = cut.rest();
}

RepeatParts::RepeatParts(NodeRef n)
    : count(n->int_arg(0)), reversed(n->int_arg(1) != 0), slot(n->int_arg(5)) {
  Cut cut(n);
  stacked = cut.take(n->int_arg(2));
  whole = cut.take(n->int_arg(3));
  inits = cut.take(n->int_arg(4));
  nexts = cut.take(n->int_arg(4));
  outs = cut.rest();
}

CustomParts::CustomParts(NodeRef n) : sink(n->src(n->nsrc - 1)) {
  Cut cut(n);
  inputs = cut.take(n->int_arg(0));
  outputs = cut.rest().first(cut.rest().size() - 1);
}

std::vector<NodeRef> placeholders_in(std::span<const NodeRef> closed, int64_t slot, size_t count) {
  std::vector<NodeRef> found(count);
  for (NodeRef n : Toposort(closed)) {
    if (n->op != Op::Param) continue;
    const int64_t k = param_slot(n) - slot;
    if (k >= 0 && k < static_cast<int64_t>(count)) found[static_cast<size_t>(k)] = n;
  }
  return found;
}

size_t evaluated_sources(NodeRef n) {
  switch (n->op) {
    case Op::Function:
    case Op::Custom: return static_cast<size_t>(n->int_arg(0));
    case Op::Repeat: return static_cast<size_t>(n->int_arg(2) + n->int_arg(3) + n->int_arg(4));
    default: return n->nsrc;
  }
}

size_t result_count(NodeRef n) {
  switch (n->op) {
    case Op::Loop: return static_cast<size_t>(n->int_arg(2));
    case Op::Function: return static_cast<size_t>(n->int_arg(0));
    case Op::Repeat: {
      const RepeatParts parts(n);
      return parts.nexts.size() + parts.outs.size();
    }
    case Op::Custom: return CustomParts(n).outputs.size();
    default: return 0;
  }
}

NodeRef result_like(NodeRef n, size_t k) {
  switch (n->op) {
    case Op::Loop: return n->src(static_cast<size_t>(n->int_arg(1)) + k);
    case Op::Custom: return CustomParts(n).outputs[k];
    case Op::Repeat: return n->src(evaluated_sources(n) + k);
    default: return n->src(k);
  }
}

const Shape* result_shape(Graph& g, NodeRef n, size_t k) {
  if (n->op == Op::Loop) return n->shape;
  NodeRef like = result_like(n, k);
  if (n->op != Op::Repeat || k < RepeatParts(n).nexts.size()) return like->shape;
  std::vector<NodeRef> dims{g.index(n->int_arg(0))};
  for (NodeRef d : like->shape->span()) dims.push_back(d);
  return g.shape(dims);
}

}  // namespace weft
