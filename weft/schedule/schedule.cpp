#include "weft/schedule/schedule.h"

#include <algorithm>

#include "weft/schedule/plan.h"

namespace weft {
namespace {

bool is_update(NodeRef n) { return n->op == Op::Assign || n->op == Op::Scatter; }

/// Whether a node can own a kernel and a buffer. Views, leaves and constants are copied into one
/// when they are outputs.
bool computes(NodeRef n) {
  switch (n->op) {
    case Op::Reduce:
    case Op::Scan:
    case Op::Get:
    case Op::Contiguous:
    case Op::Copy:
    case Op::Assign:
    case Op::Scatter: return true;
    default: return is_alu(n->op);
  }
}

/// Brings a tensor graph into the form the planner expects: outputs that own buffers, and updates
/// whose base is theirs alone.
class Preparer {
 public:
  Preparer(Graph& g, std::span<const ScheduleOutput> outputs) : g_(g) {
    std::vector<NodeRef> roots;
    for (const ScheduleOutput& o : outputs) roots.push_back(o.value);
    count_uses(roots);
    for (const ScheduleOutput& o : outputs) note_in_place(o);
    for (NodeRef n : Toposort(roots)) copies_[n] = rebuild(n);
  }

  std::vector<ScheduleOutput> outputs(std::span<const ScheduleOutput> wanted) {
    std::vector<ScheduleOutput> out;
    NodeMap<bool> taken;
    for (const ScheduleOutput& o : wanted) {
      NodeRef value = unshaped(copies_.at(o.value));
      // One memory for two tensors would let a later update of one in place show in the other.
      if (!computes(value) || taken.contains(value)) value = owned(value);
      taken[value] = true;
      out.push_back({value, o.into});
    }
    return out;
  }

 private:
  /// The same bytes in the shape they are computed in: a product of matrices that is written to a
  /// flat buffer keeps its two axes.
  static NodeRef unshaped(NodeRef n) {
    NodeRef inner = n;
    while (inner->op == Op::Reshape) inner = inner->src(0);
    return computes(inner) ? inner : n;
  }

  /// A copy with a buffer of its own, distinct from every other copy.
  NodeRef owned(NodeRef n) {
    const NodeRef src[] = {n};
    const int64_t which[] = {next_copy_++};
    return g_.intern({Op::Contiguous, n->dtype, src, which});
  }

  /// How often each value is read. An assign's view names places of its base; it does not read it.
  void count_uses(std::span<const NodeRef> roots) {
    std::vector<NodeRef> stack;
    auto use = [&](NodeRef n) {
      if (uses_[n]++ == 0) stack.push_back(n);
    };
    for (NodeRef n : roots) use(n);
    while (!stack.empty()) {
      NodeRef n = stack.back();
      stack.pop_back();
      for (size_t i = 0; i < n->nsrc; ++i)
        if (n->op != Op::Assign || i != 1) use(n->src(i));
    }
  }

  /// The input at the end of a chain of updates may be updated where it is when the result goes
  /// there anyway.
  void note_in_place(const ScheduleOutput& o) {
    NodeRef n = o.value;
    if (o.into < 0 || !is_update(n)) return;
    while (is_update(n)) n = n->src(0);
    if (n->op == Op::Param && param_slot(n) == o.into && sole_use(n)) in_place_[n] = true;
  }

  bool sole_use(NodeRef n) const {
    const int* uses = uses_.find(n);
    return uses && *uses == 1;
  }

  /// A view chain that ended in `from`, on another base.
  NodeRef rebase(NodeRef view, NodeRef from, NodeRef to) {
    std::vector<NodeRef> chain;
    for (; view != from; view = view->src(0)) chain.push_back(view);
    for (size_t i = chain.size(); i-- > 0;) {
      std::vector<NodeRef> src(chain[i]->src().begin(), chain[i]->src().end());
      src[0] = to;
      to = g_.with_sources(chain[i], src);
    }
    return to;
  }

  NodeRef rebuild(NodeRef n) {
    std::vector<NodeRef> src;
    for (NodeRef s : n->src()) src.push_back(copies_.at(s));
    if (is_update(n)) {
      NodeRef base = n->src(0);
      const bool mine = (is_update(base) && sole_use(base)) || in_place_.contains(base);
      if (!mine) {
        NodeRef copy = owned(src[0]);
        if (n->op == Op::Assign) src[1] = rebase(src[1], src[0], copy);
        src[0] = copy;
      }
    }
    if (n->op == Op::Bind) return src[0];
    NodeRef copy = g_.with_sources(n, src);
    return copy->op == Op::Reduce ? split_large_reduction(g_, copy) : copy;
  }

  Graph& g_;
  NodeMap<NodeRef> copies_;
  NodeMap<int> uses_;
  NodeMap<bool> in_place_;
  int64_t next_copy_ = 1;
};

}  // namespace

Schedule make_schedule(std::span<const ScheduleOutput> outputs, const ScheduleOptions& options) {
  auto graph = std::make_shared<Graph>();
  std::vector<ScheduleOutput> imported;
  std::vector<NodeRef> roots;
  for (const ScheduleOutput& o : outputs) roots.push_back(o.value);
  const std::vector<NodeRef> copies = graph->import_all(roots);
  for (size_t i = 0; i < outputs.size(); ++i) imported.push_back({copies[i], outputs[i].into});
  Preparer prepared(*graph, imported);
  Planner plan(*graph, prepared.outputs(imported), options);
  plan.run();
  choose_layouts(plan);
  return build_schedule(plan, graph);
}

}  // namespace weft
