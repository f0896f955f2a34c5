// Putting kernels in order: producers before readers, readers of an old value before whoever
// overwrites it. Where that cannot be, the new value goes to a buffer of its own and is copied over
// at the end.
#include <algorithm>
#include <queue>

#include "weft/base/error.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"

namespace weft {
namespace {

/// Whether the kernel reads an old value only in the iteration that overwrites it. An output that
/// has not all of the kernel's ranges (a number beside a matrix) is written in several.
bool reads_same_place_only(const KernelPlan& kernel, NodeRef sink, NodeRef old_param,
                           NodeRef new_param) {
  NodeRef stored = nullptr;
  for (NodeRef s : sink->src())
    if (s->src(0) == new_param) stored = s->src(1);
  const Toposort index(stored);
  for (NodeRef r : kernel.ranges)
    if (r->op == Op::Range && !contains(index.nodes(), r)) return false;
  for (NodeRef n : Toposort(sink))
    if (n->op == Op::Load && n->src(0) == old_param && n->src(1) != stored) return false;
  return true;
}

/// Kernels, other than `writer`, that load the node.
std::vector<int> readers_of(const Planner& plan, NodeRef n) {
  std::vector<int> readers;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const auto& reads = plan.kernels[k].reads;
    if (contains(reads, n)) readers.push_back(static_cast<int>(k));
  }
  return readers;
}

class Orderer {
 public:
  Orderer(Planner& plan, std::span<const NodeRef> sinks) : plan_(plan), sinks_(sinks) {}

  /// Physical buffer of each planned buffer, and copies that remain to be made at the end.
  std::vector<int> physical;
  struct FinalCopy {
    int from, to;
    uint64_t origin;
  };
  std::vector<FinalCopy> copies;

  void run() {
    for (size_t b = 0; b < plan_.buffers.size(); ++b) physical.push_back(static_cast<int>(b));
    alias_updates();
    for (const ScheduleOutput& o : plan_.outputs)
      if (o.into >= 0) put_into(o);
  }

 private:
  /// An assign or scatter works in the buffer of what it updates.
  void alias_updates() {
    for (NodeRef n : plan_.order) {
      if ((n->op != Op::Assign && n->op != Op::Scatter) || !plan_.buffer_of.contains(n)) continue;
      NodeRef base = n->src(0);
      physical[static_cast<size_t>(plan_.buffer_index(n))] =
          physical[static_cast<size_t>(plan_.buffer_index(base))];
      if (const int* before = plan_.producer_of.find(base)) after(plan_.producer_of.at(n), *before);
    }
  }

  void put_into(const ScheduleOutput& o) {
    NodeRef input = input_param(o.into);
    const int value_buffer = plan_.buffer_index(o.value), target = plan_.buffer_index(input);
    if (physical[static_cast<size_t>(value_buffer)] == target) {
      // An in-place update of the input itself: its other readers come first.
      for (int r : readers_of(plan_, input)) order_before_updates(r, o.value);
      return;
    }
    const int writer = plan_.producer_of.at(o.value);
    const std::vector<int> readers = readers_of(plan_, input);
    bool safe = o.value->op != Op::Assign && o.value->op != Op::Scatter;
    for (int r : readers) {
      if (r == writer)
        safe = safe && reads_same_place_only(plan_.kernels[static_cast<size_t>(r)],
                                             sinks_[static_cast<size_t>(r)], plan_.param_of(input),
                                             plan_.param_of(o.value));
      else
        safe = safe && !plan_.depends(r, writer);
    }
    // Everyone who reads the new value does so from the input's buffer, which only this writer may
    // touch.
    if (!safe) {
      copies.push_back(
          {physical[static_cast<size_t>(value_buffer)], target, plan_.origin(o.value)});
      return;
    }
    physical[static_cast<size_t>(value_buffer)] = target;
    for (int r : readers)
      if (r != writer) after(writer, r);
  }

  void order_before_updates(int reader, NodeRef value) {
    for (NodeRef n = value; n->op == Op::Assign || n->op == Op::Scatter; n = n->src(0)) {
      const int writer = plan_.producer_of.at(n);
      if (writer != reader) after(writer, reader);
    }
  }

  NodeRef input_param(int slot) {
    for (const BufferPlan& b : plan_.buffers)
      if (b.input == slot) return b.node;
    internal_error("schedule", "output goes into input {}, which the graph does not have", slot);
  }
  void after(int kernel, int before) {
    plan_.kernels[static_cast<size_t>(kernel)].after.push_back(before);
  }

  Planner& plan_;
  std::span<const NodeRef> sinks_;
};

/// Kernels in dependency order; among those that are ready, the one whose root comes first in the
/// graph.
std::vector<int> topological(const Planner& plan) {
  const size_t count = plan.kernels.size();
  NodeMap<int> position;
  for (size_t i = 0; i < plan.order.size(); ++i) position[plan.order[i]] = static_cast<int>(i);
  std::vector<int> waiting(count);
  std::vector<std::vector<int>> next(count);
  for (size_t k = 0; k < count; ++k) {
    std::vector<int> before = plan.kernels[k].after;
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    std::erase(before, static_cast<int>(k));
    waiting[k] = static_cast<int>(before.size());
    for (int b : before) next[static_cast<size_t>(b)].push_back(static_cast<int>(k));
  }
  using Ready = std::pair<int, int>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  auto push = [&](int k) {
    ready.push({position.at(plan.kernels[static_cast<size_t>(k)].root), k});
  };
  for (size_t k = 0; k < count; ++k)
    if (waiting[k] == 0) push(static_cast<int>(k));
  std::vector<int> order;
  while (!ready.empty()) {
    const int k = ready.top().second;
    ready.pop();
    order.push_back(k);
    for (int n : next[static_cast<size_t>(k)])
      if (--waiting[static_cast<size_t>(n)] == 0) push(n);
  }
  if (order.size() != count) internal_error("schedule", "kernels wait for each other in a circle");
  return order;
}

std::string layout_name(const BufferPlan& b) {
  if (b.order.empty()) return "row-major";
  std::string name;
  for (size_t a : b.order) name += (name.empty() ? "axes " : ",") + std::to_string(a);
  return name;
}

BufferSpec spec_of(Planner& plan, const BufferPlan& b) {
  return {b.node->dtype, plan.size_of(b.node), b.node->device, b.input, -1, layout_name(b)};
}

void collect_variables(Schedule& s, const Planner& plan) {
  for (NodeRef n : plan.order)
    if (n->op == Op::Variable) s.variables.push_back(n);
  std::sort(s.variables.begin(), s.variables.end(),
            [](NodeRef a, NodeRef b) { return a->text() < b->text(); });
}

bool is_empty(const KernelPlan& k) {
  return std::any_of(k.ranges.begin(), k.ranges.end(),
                     [](NodeRef r) { return r->op == Op::Range && is_int_const(r->src(0), 0); });
}

class Emitter {
 public:
  Emitter(Planner& plan, const Orderer& order, Schedule& out)
      : plan_(plan), order_(order), out_(out) {}

  void emit(const KernelPlan& k, NodeRef sink) {
    if (is_empty(k)) return;
    if (crosses_devices(k.root)) {
      out_.steps.push_back(
          {ScheduleStep::Kind::Copy, -1, {physical(k.root->src(0)), physical(k.root)}, k.origins});
      return;
    }
    std::vector<int> slots;
    const Known& known = simplified(number_kernel(plan_, k, use_physical(sink), slots));
    ScheduleStep step;
    step.kernel = known.kernel;
    step.origins = k.origins;
    for (int slot : known.slots) step.buffers.push_back(slots[static_cast<size_t>(slot)]);
    out_.steps.push_back(std::move(step));
  }

 private:
  int physical(NodeRef n) const {
    return order_.physical[static_cast<size_t>(plan_.buffer_index(n))];
  }

  struct Known {
    int kernel;
    std::vector<int> slots;  // of the numbered form, by slot of the simplified one
  };

  /// Params named after the buffers they really are, so that a buffer read and written is one slot.
  NodeRef use_physical(NodeRef sink) {
    return rebuild(sink, [&](NodeRef n, std::span<const NodeRef> src) {
      if (n->op != Op::Param) return plan_.g.with_sources(n, src);
      return plan_.g.param(order_.physical[static_cast<size_t>(param_slot(n))], n->dtype, src);
    });
  }

  /// Equal kernels are simplified once.
  const Known& simplified(NodeRef numbered) {
    if (const Known* known = seen_.find(numbered)) return *known;
    Known made{-1, {}};
    made.kernel = index_of(simplify_kernel(plan_.g, numbered, made.slots));
    return seen_.set(numbered, std::move(made));
  }

  int index_of(NodeRef sink) {
    if (const int* known = kernels_.find(sink)) return *known;
    Kernel k{std::make_shared<Graph>(), nullptr, kernel_name(sink)};
    k.sink = k.graph->import(sink);
    out_.kernels.push_back(std::move(k));
    return kernels_.set(sink, static_cast<int>(out_.kernels.size()) - 1);
  }

  Planner& plan_;
  const Orderer& order_;
  Schedule& out_;
  NodeMap<Known> seen_;   // by numbered form
  NodeMap<int> kernels_;  // by simplified form
};

}  // namespace

Schedule build_schedule(Planner& plan, std::shared_ptr<Graph> graph) {
  Schedule out;
  out.graph = std::move(graph);
  const std::vector<NodeRef> sinks = build_sinks(plan);
  Orderer order(plan, sinks);
  order.run();
  for (const BufferPlan& b : plan.buffers) out.buffers.push_back(spec_of(plan, b));
  Emitter emitter(plan, order, out);
  for (int k : topological(plan))
    emitter.emit(plan.kernels[static_cast<size_t>(k)], sinks[static_cast<size_t>(k)]);
  for (const auto& copy : order.copies)
    out.steps.push_back({ScheduleStep::Kind::Copy, -1, {copy.from, copy.to}, {copy.origin}});
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const ScheduleOutput& o = plan.outputs[i];
    int b = order.physical[static_cast<size_t>(plan.buffer_index(o.value))];
    for (const auto& copy : order.copies)
      if (o.into >= 0 && copy.from == b &&
          out.buffers[static_cast<size_t>(copy.to)].input == o.into)
        b = copy.to;
    out.outputs.push_back(b);
    int& owner = out.buffers[static_cast<size_t>(b)].output;
    WEFT_CHECK(owner < 0, "outputs {} and {} are one buffer", owner, i);
    owner = static_cast<int>(i);
  }
  collect_variables(out, plan);
  out.decisions = std::move(plan.decisions);
  return out;
}

}  // namespace weft
