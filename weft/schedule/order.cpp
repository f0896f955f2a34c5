// What waits for what besides readers for producers: whoever overwrites an old value for its
// readers. Where that cannot be, the new value goes to a buffer of its own and is copied over
// at the end.
#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/schedule/build.h"
#include "weft/schedule/emit.h"
#include "weft/schedule/in_place.h"
#include "weft/schedule/run_order.h"

namespace weft {
namespace {

class Orderer {
 public:
  Orderer(Planner& plan, std::span<const NodeRef> sinks) : plan_(plan), sinks_(sinks) {
    for (size_t k = 0; k < plan.kernels.size(); ++k)
      for (NodeRef n : plan.kernels[k].reads) readers_[n].push_back(static_cast<int>(k));
    for (const BufferPlan& b : plan.buffers)
      if (b.input >= 0) inputs_[b.input] = b.node;
  }

  /// Physical buffer of each planned buffer, and copies that remain to be made at the end.
  std::vector<int> physical;
  struct FinalCopy {
    int from, to;
    uint64_t origin;
  };
  std::vector<FinalCopy> copies;
  std::map<std::pair<int, int>, int>
      copied;  ///< the buffer a value goes to, by its own and by slot

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
      for (int r : readers_[input]) order_before_updates(r, o.value);
      return;
    }
    const int writer = plan_.producer_of.at(o.value);
    const std::vector<int>& readers = readers_[input];
    bool safe = o.value->op != Op::Assign && o.value->op != Op::Scatter &&
                !is_step(plan_.kernels[static_cast<size_t>(writer)].root);
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
      const int from = physical[static_cast<size_t>(value_buffer)];
      copies.push_back({from, target, plan_.origin(o.value)});
      copied[{from, o.into}] = target;
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
    const auto found = inputs_.find(slot);
    if (found != inputs_.end()) return found->second;
    internal_error("schedule", "output goes into input {}, which the graph does not have", slot);
  }
  void after(int kernel, int before) {
    plan_.kernels[static_cast<size_t>(kernel)].after.push_back(before);
  }

  Planner& plan_;
  std::span<const NodeRef> sinks_;
  NodeMap<std::vector<int>> readers_;  // kernels that load a node
  std::map<int, NodeRef> inputs_;      // by slot
};

std::string layout_name(const BufferPlan& b) {
  std::string name = b.order.empty() ? "row-major" : "axes ";
  for (size_t i = 0; i < b.order.size(); ++i) name += (i ? "," : "") + std::to_string(b.order[i]);
  if (b.block > 0) name += ", panels of " + std::to_string(b.block);
  return b.gap > 0 ? name + ", rows apart" : name;
}

BufferSpec spec_of(Planner& plan, const BufferPlan& b) {
  return {b.node->dtype, plan.size_of(b.node), b.node->device, b.input, -1, layout_name(b)};
}

/// Those of the graph, besides what steps of loops have brought.
void collect_variables(Schedule& s, const Planner& plan) {
  for (NodeRef n : plan.order)
    if (n->op == Op::Variable) s.variables.push_back(n);
  const auto by_name = [](NodeRef a, NodeRef b) { return a->text() < b->text(); };
  std::sort(s.variables.begin(), s.variables.end(), by_name);
  s.variables.erase(std::unique(s.variables.begin(), s.variables.end()), s.variables.end());
}

}  // namespace

Schedule build_schedule(Planner& plan, std::shared_ptr<Graph> graph) {
  Schedule out;
  out.graph = std::move(graph);
  const std::vector<NodeRef> sinks = build_sinks(plan);
  plan.uses = {};  // most of a plan's memory, which kernels in their last form need
  Orderer order(plan, sinks);
  order.run();
  for (const BufferPlan& b : plan.buffers) out.buffers.push_back(spec_of(plan, b));
  const std::vector<int> kernels = run_order(plan, order.physical);
  write_in_place(plan, sinks, kernels, order.physical);
  Emitter emitter(plan, order.physical, out);
  for (int k : kernels)
    emitter.emit(plan.kernels[static_cast<size_t>(k)], sinks[static_cast<size_t>(k)]);
  for (const auto& copy : order.copies)
    out.steps.push_back({ScheduleStep::Kind::Copy, -1, {copy.from, copy.to}, {copy.origin}});
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const ScheduleOutput& o = plan.outputs[i];
    const int computed = order.physical[static_cast<size_t>(plan.buffer_index(o.value))];
    const auto copied = o.into >= 0 ? order.copied.find({computed, o.into}) : order.copied.end();
    const int b = copied == order.copied.end() ? computed : copied->second;
    out.outputs.push_back(b);
    int& owner = out.buffers[static_cast<size_t>(b)].output;
    WEFT_CHECK(owner < 0, "outputs {} and {} are one buffer", owner, i);
    owner = static_cast<int>(i);
  }
  share_kernels(plan.g, out);
  collect_variables(out, plan);
  out.decisions = std::move(plan.decisions);
  return out;
}

}  // namespace weft
