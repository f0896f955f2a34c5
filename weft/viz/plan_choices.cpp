#include "weft/viz/plan_choices.h"

#include <algorithm>
#include <tuple>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/graph/verify.h"
#include "weft/optimize/plan_space.h"
#include "weft/target/core.h"
#include "weft/viz/state.h"

namespace weft::viz {
namespace {

constexpr size_t kMostNodes = 4096, kMostPlans = 24;

/// The kernel's graph as loops were chosen for it; null where that is not recorded.
const PassRow* choice_of(const Session::Data& data, const KernelRow& kernel) {
  for (const uint32_t p : kernel.passes)
    if (data.passes[p].name == "optimize.choose_tiling") return &data.passes[p];
  return nullptr;
}

std::vector<PlanChoice> choices_of(NodeRef sink, const Target& target) {
  const optimize::KernelInfo info(sink);
  const optimize::PlanSpace space(info, target);
  const LoopPlan taken = space.analytic();
  std::vector<PlanChoice> out;
  for (const LoopPlan& plan : space.neighbours(taken))
    out.push_back({text(plan), space.cycles(plan)});
  std::ranges::sort(out, {}, [](const PlanChoice& c) { return std::tie(c.cycles, c.plan); });
  out.resize(std::min(out.size(), kMostPlans));
  out.insert(out.begin(), {text(taken), space.cycles(taken), true});
  return out;
}

}  // namespace

std::vector<PlanChoice> plan_choices(const Session::Data& data, const KernelRow& kernel) {
  const PassRow* pass = choice_of(data, kernel);
  if (!pass || kernel.target != "x86") return {};
  try {
    const Target& target = Context::current().get<DeviceTable>().open("NULL").target();
    if (data.processes[kernel.process].machine != text_with_core(target.machine)) return {};
    NodeSource nodes(data, *pass);
    const StateView state = state_of(data, pass->before, nodes);
    if (state.kind != StateParts::Kind::Graph || state.nodes.size() != 1) return {};
    NodeRef sink = state.nodes[0];
    if (sink->op != Op::Sink || Toposort(sink).size() > kMostNodes) return {};
    check_kernel(sink, data.path);
    return choices_of(sink, target);
  } catch (const Error&) {
    return {};  // the rest of the kernel is shown all the same
  }
}

}  // namespace weft::viz
