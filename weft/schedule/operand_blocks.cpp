#include "weft/schedule/operand_blocks.h"

#include "weft/graph/index_algebra.h"
#include "weft/schedule/axes.h"

namespace weft {
namespace {

constexpr double kPartOfL3 = 1.0 / 2;  // more than a block may have, to be there when it is read

}  // namespace

bool is_beyond_l3(const Target& target, double bytes) {
  return target.vector_bits > 0 && bytes > static_cast<double>(target.machine.l3().bytes);
}

NodeRef block_read(Planner& plan, const ProductOperand& o, Access& at) {
  const double bytes = largest_numel(o.node->shape->span()) * bits(o.node->dtype) / 8;
  if (!is_beyond_l3(plan.target, bytes) || !is_static(o.node) || plan.constants.contain(o.node))
    return o.node;
  for (size_t a = 0; a < o.node->rank(); ++a) {
    NodeRef i = at.index[a];
    const int64_t size = i->vmax - i->vmin + 1;
    NodeRef within = split_offset(plan.g, i).rest;
    const double part_read = static_cast<double>(size) / static_cast<double>(o.node->dim(a)->vmin);
    if (part_read >= 1 || within->op != Op::Range) continue;
    if (bytes * part_read >= kPartOfL3 * static_cast<double>(plan.target.machine.l3().bytes)) break;
    at.index[a] = within;
    return part(plan.g, o.node, a, i->vmin, size);
  }
  return o.node;
}

void read_block(Planner& plan, const ProductOperand& o, NodeRef copy, Access at) {
  Use block = plan.uses.at(o.node)[o.use];
  block.access = std::move(at);
  std::vector<Use>& wanted = plan.uses[copy];
  plan.uses[o.node][o.use].packed_use = static_cast<int>(wanted.size());
  wanted.push_back(std::move(block));
}

}  // namespace weft
