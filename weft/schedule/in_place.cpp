#include "weft/schedule/in_place.h"

#include <algorithm>

#include "weft/rewrite/driver.h"

namespace weft {
namespace {

NodeRef store_to(NodeRef sink, NodeRef param) {
  for (NodeRef s : sink->src())
    if (s->src(0) == param) return s;
  return nullptr;
}

/// A mask may make the place that is read another one where nobody wants it, and then nothing would
/// be known of what the kernel overwrites.
bool reads_under_mask(NodeRef sink, NodeRef param) {
  return std::ranges::any_of(Toposort(sink), [param](NodeRef n) {
    return n->op == Op::Load && n->src(0) == param && n->nsrc > 2;
  });
}

class InPlaceWriter {
 public:
  InPlaceWriter(Planner& plan, std::span<const int> order, std::vector<int>& physical)
      : plan_(plan), physical_(physical), last_(plan.buffers.size(), kOutside) {
    for (size_t i = 0; i < order.size(); ++i) {
      const KernelPlan& k = plan.kernels[static_cast<size_t>(order[i])];
      for (NodeRef n : k.reads) last_use(n) = static_cast<int>(i);
      for (const KernelOutput& o : k.outputs) last_use(o.node) = static_cast<int>(i);
    }
    for (const BufferPlan& b : plan.buffers)
      if (b.input >= 0) last_use(b.node) = kOutside;
    for (const ScheduleOutput& o : plan.outputs) last_use(o.value) = kOutside;
  }

  /// The kernel is the `position`th to run.
  void look_at(const KernelPlan& kernel, NodeRef sink, int position) {
    if (is_step(kernel.root) || crosses_devices(kernel.root)) return;
    for (const KernelOutput& o : kernel.outputs) {
      if (!may_move(o.node, sink)) continue;
      for (NodeRef n : kernel.reads)
        if (last_use(n) == position && fits(o.node, n) && is_free(kernel, sink, n, o.node)) {
          move(o.node, n);
          break;
        }
    }
  }

 private:
  static constexpr int kOutside = -1;  // of no kernel: others see it as well

  int place(NodeRef n) const { return physical_[static_cast<size_t>(plan_.buffer_index(n))]; }
  int& last_use(NodeRef n) { return last_[static_cast<size_t>(place(n))]; }

  /// Caches hold what is smaller, and kernels that differ in nothing but that are two.
  bool is_large(NodeRef n) const {
    return largest_numel(n->shape->span()) * bits(n->dtype) / 8 >
           static_cast<double>(plan_.target.machine.l3().bytes);
  }

  /// Whether it is a large intermediate that its kernel writes from end to end.
  bool may_move(NodeRef n, NodeRef sink) {
    if (last_use(n) == kOutside || place(n) != plan_.buffer_index(n) || !is_large(n)) return false;
    NodeRef store = store_to(sink, plan_.param_of(n));
    return n->op != Op::Assign && n->op != Op::Scatter && store && store->nsrc == 3;
  }

  bool fits(NodeRef made, NodeRef old) {
    return made->dtype == old->dtype && made->device == old->device &&
           plan_.size_of(made) == plan_.size_of(old) && !plan_.constants.contain(old);
  }

  /// Whether nothing but the iteration that writes `made` at a place reads what lies there in
  /// `old`, by any of its names.
  bool is_free(const KernelPlan& kernel, NodeRef sink, NodeRef old, NodeRef made) {
    const auto shares = [&](NodeRef n) { return place(n) == place(old); };
    if (std::ranges::any_of(kernel.outputs, [&](const auto& o) { return shares(o.node); }))
      return false;
    return std::ranges::all_of(kernel.reads, [&](NodeRef n) {
      NodeRef param = plan_.param_of(n);
      return !shares(n) || (!reads_under_mask(sink, param) &&
                            reads_same_place_only(kernel, sink, param, plan_.param_of(made)));
    });
  }

  void move(NodeRef made, NodeRef old) {
    const int from = place(made), to = place(old);
    last_[static_cast<size_t>(to)] = last_[static_cast<size_t>(from)];
    std::ranges::replace(physical_, from, to);
  }

  Planner& plan_;
  std::vector<int>& physical_;
  std::vector<int> last_;  // by buffer, the position of the last kernel that uses it
};

}  // namespace

bool reads_same_place_only(const KernelPlan& kernel, NodeRef sink, NodeRef old_param,
                           NodeRef new_param) {
  NodeRef stored = store_to(sink, new_param)->src(1);
  const Toposort index(stored);
  for (NodeRef r : kernel.ranges)
    if (r->op == Op::Range && !contains(index.nodes(), r)) return false;
  for (NodeRef n : Toposort(sink))
    if (n->op == Op::Load && n->src(0) == old_param && n->src(1) != stored) return false;
  return true;
}

void write_in_place(Planner& plan, std::span<const NodeRef> sinks, std::span<const int> order,
                    std::vector<int>& physical) {
  InPlaceWriter writer(plan, order, physical);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto k = static_cast<size_t>(order[i]);
    writer.look_at(plan.kernels[k], sinks[k], static_cast<int>(i));
  }
}

}  // namespace weft
