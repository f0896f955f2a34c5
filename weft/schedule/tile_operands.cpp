#include "weft/schedule/tile_operands.h"

#include <algorithm>

namespace weft {
namespace {

const Use& use(const Planner& plan, const ProductOperand& o) { return plan.uses.at(o.node)[o.use]; }

bool lie_for_tiles(const Planner& plan, std::span<const ProductOperand> operands) {
  if (operands.size() != 2) return false;
  const auto step = [&](size_t which, NodeRef r) {
    const ProductOperand& o = operands[which];
    return step_along(plan, o.node, use(plan, o).access, r);
  };
  for (const ProductOperand& o : operands) {
    const BufferPlan& b = plan.buffers[static_cast<size_t>(plan.buffer_index(o.node))];
    if (!b.row_major) return false;
  }
  const Use& d = use(plan, operands[0]);
  const auto& outputs = plan.kernels[static_cast<size_t>(d.kernel)].ranges;
  for (const size_t rows : {0, 1}) {
    const size_t columns = 1 - rows;
    const bool along = std::ranges::any_of(d.scope, [&](NodeRef r) {
      return !contains(outputs, r) && step(rows, r) == Step::Unit && step(columns, r) == Step::Far;
    });
    const bool beside = std::ranges::any_of(outputs, [&](NodeRef r) {
      return step(columns, r) == Step::Unit && step(rows, r) == Step::None;
    });
    if (along && beside) return true;
  }
  return false;
}

}  // namespace

std::vector<size_t> kernels_by_tiles(const Planner& plan) {
  std::vector<size_t> kernels;
  for (NodeRef n : plan.order) {
    if (!has_trait(n->op, kWords) || !plan.target.tile_unit(n->op)) continue;
    for (const Use& d : plan.uses.at(n))
      if (!d.load) kernels.push_back(static_cast<size_t>(d.kernel));
  }
  return kernels;
}

std::vector<std::vector<ProductOperand>> operands_to_order(const Planner& plan) {
  auto operands = reduced_operands(plan);
  for (const size_t k : kernels_by_tiles(plan))
    if (lie_for_tiles(plan, operands[k])) operands[k].clear();
  return operands;
}

NodeRef summed_range(const Planner& plan, const ProductOperand& o) {
  const Use& d = use(plan, o);
  const KernelPlan& kernel = plan.kernels[static_cast<size_t>(d.kernel)];
  const auto found =
      std::ranges::find_if(d.scope, [&](NodeRef r) { return !contains(kernel.ranges, r); });
  return found == d.scope.end() ? nullptr : *found;
}

bool is_read_down(const Planner& plan, const ProductOperand& o) {
  NodeRef r = summed_range(plan, o);
  const Use& d = use(plan, o);
  return r && !d.packed && is_static(o.node) &&
         step_along(plan, o.node, d.access, r) == Step::Far &&
         moving_axis(plan.g, d.access, r) >= 0;
}

int comes_along(const Planner& plan, NodeRef made, size_t axes) {
  const int maker = plan.producer_of.at(made);
  const KernelPlan& kernel = plan.kernels[static_cast<size_t>(maker)];
  if (kernel.root != made) return -1;
  for (size_t a = 0; a < axes; ++a) {
    if (kernel.ranges[a]->op != Op::Range) continue;
    bool along = false, far = false;
    for (NodeRef n : kernel.reads)
      for (const Use& d : plan.uses.at(n)) {
        if (d.kernel != maker || !d.load) continue;
        const Step step = step_along(plan, n, d.access, kernel.ranges[a]);
        along = along || step == Step::Unit, far = far || step == Step::Far;
      }
    if (along && !far) return static_cast<int>(a);
  }
  return -1;
}

std::vector<size_t> with_innermost(NodeRef n, int axis) {
  std::vector<size_t> order;
  for (size_t a = 0; a < n->rank(); ++a)
    if (static_cast<int>(a) != axis) order.push_back(a);
  order.push_back(static_cast<size_t>(axis));
  return order;
}

std::vector<size_t> sums_innermost(const Planner& plan, const ProductOperand& o) {
  const Use& d = use(plan, o);
  const KernelPlan& kernel = plan.kernels[static_cast<size_t>(d.kernel)];
  const auto is_of_outputs = [&](size_t axis) {
    return std::ranges::any_of(kernel.ranges,
                               [&](NodeRef r) { return depends_on(d.access.index[axis], r); });
  };
  std::vector<size_t> order;
  for (const bool of_outputs : {true, false})
    for (size_t a = 0; a < o.node->rank(); ++a)
      if (is_of_outputs(a) == of_outputs) order.push_back(a);
  return order;
}

void store_as_read(Planner& plan, const ProductOperand& o) {
  BufferPlan& b = plan.buffers[static_cast<size_t>(plan.buffer_index(o.node))];
  NodeRef r = summed_range(plan, o);
  const Use& d = use(plan, o);
  if (b.row_major || d.packed || !is_static(o.node) || plan.constants.contain(o.node) || !r ||
      step_along(plan, o.node, d.access, r) != Step::Unit)
    return;
  const int axis = comes_along(plan, o.node, o.node->rank());
  if (axis >= 0) b.order = with_innermost(o.node, axis);
}

}  // namespace weft
