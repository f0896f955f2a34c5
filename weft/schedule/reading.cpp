#include "weft/schedule/reading.h"

#include "weft/schedule/plan.h"
#include "weft/target/target.h"

namespace weft {
namespace {

// Bytes of rows; shorter ones come soon enough.
constexpr int64_t kFarRows = 2048;

bool keeps_elements(Op op) {
  return op == Op::Reshape || op == Op::Permute || op == Op::Expand || op == Op::Shrink ||
         op == Op::Flip || op == Op::Pad;
}

}  // namespace

NodeRef moved(NodeRef n) {
  while (is_movement(n->op) && n->op != Op::Gather) n = n->src(0);
  return n;
}

NodeRef narrow_values(Graph& g, NodeRef full, double most) {
  NodeRef x = full->op == Op::Expand ? full->src(0) : full;
  std::vector<NodeRef> moves;
  for (; keeps_elements(x->op); x = x->src(0)) moves.push_back(x);
  if (x->op != Op::Cast || !is_static(x->src(0))) return nullptr;
  x = x->src(0);
  const double given = largest_numel(x->shape->span());
  for (size_t i = moves.size(); i-- > 0;) {
    std::vector<NodeRef> src(moves[i]->src().begin(), moves[i]->src().end());
    src[0] = x;
    x = g.make({moves[i]->op, x->dtype, src, moves[i]->ints()});
  }
  return largest_numel(x->shape->span()) <= most * given ? x : nullptr;
}

Reading::Reading(Graph& g, NodeRef x) : of(x) {
  for (size_t a = 0; a < x->rank(); ++a)
    along.push_back(g.range(x->dim(a), static_cast<int64_t>(a)));
  at = {along, g.boolean(true)};
  for (; (is_movement(of->op) && of->op != Op::Gather) || of->op == Op::Cast; of = of->src(0))
    if (of->op != Op::Cast) at = map_access(g, of, at);
}

bool Reading::lies_along(Graph& g, size_t axis) const {
  return axis < along.size() && of->rank() > 0 &&
         moving_axis(g, at, along[axis]) == static_cast<int>(of->rank()) - 1;
}

double Reading::elements() const { return iterations(used_ranges(at.index, along)); }

bool walks_down_rows(Graph& g, const Reading& operand, size_t axis) {
  if (axis >= operand.along.size()) return false;  // one number
  const NodeRef of = operand.of;
  const int inner = static_cast<int>(of->rank()) - 1,
            down = moving_axis(g, operand.at, operand.along[axis]);
  if (down < 0 || down == inner || of->dim(of->rank() - 1)->vmin * bits(of->dtype) / 8 < kFarRows)
    return false;
  for (size_t a = 0; a < operand.along.size(); ++a)
    if (a != axis && operand.lies_along(g, a)) return true;
  return false;
}

bool makes_large_tiles(const Target& target) {
  constexpr int kManyRegisters = 32;
  return target.vector_registers >= kManyRegisters || target.canonical;
}

}  // namespace weft
