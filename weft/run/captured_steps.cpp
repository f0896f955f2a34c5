#include "weft/run/captured_steps.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/graph/binary.h"
#include "weft/run/pipeline.h"
#include "weft/run/replay_plan.h"
#include "weft/run/run_state.h"

namespace weft {

void CapturedSteps::append(const CompiledSchedule& of, std::span<const int> buffers,
                           std::span<const int> variables, const CallSites& lines) {
  if (schedule.steps.empty()) schedule.steps.reserve(of.steps.size());  // most have one computation
  for (const CompiledStep& from : of.steps) {
    CompiledStep step{
        from.kind, from.kernel, from.buffers, from.variables, from.device,
        {},        from.round,  from.loop,    from.asks,      from.lengths.renumbered(variables)};
    if (step.loop >= 0) step.loop += schedule.loops;
    for (int& b : step.buffers) b = buffers[static_cast<size_t>(b)];
    for (CompiledStep::Variable& v : step.variables)
      if (v.position >= 0) v.position = variables[static_cast<size_t>(v.position)];
    add(std::move(step), lines.of(from.origins));
  }
  schedule.loops += of.loops;
}

void CapturedSteps::add(CompiledStep step, const StepSites& sites) {
  if (sites_.empty() || sites_.back().sites != sites)
    sites_.push_back({schedule.steps.size(), sites});
  schedule.steps.push_back(std::move(step));
}

const StepSites& CapturedSteps::sites(size_t step) const {
  return (std::ranges::upper_bound(sites_, step, {}, &SitesFrom::step) - 1)->sites;
}

namespace {

/// By input slot; none where no input is constant.
std::vector<bool> constant_inputs(const Computation& c, const std::vector<bool>& constant) {
  std::vector<bool> out;
  for (size_t slot = 0; slot < c.inputs.size(); ++slot) {
    if (c.inputs[slot] < 0 || !constant[static_cast<size_t>(c.inputs[slot])]) continue;
    out.resize(c.inputs.size());
    out[slot] = true;
  }
  return out;
}

/// Whether it was scheduled for these constants when it ran, as far as it reads its inputs.
bool ran_for(const Computation& c, const std::vector<bool>& constants) {
  const auto at = [](const std::vector<bool>& of, size_t slot) { return !of.empty() && of[slot]; };
  for (size_t slot = 0; slot < c.inputs.size(); ++slot)
    if (c.inputs[slot] >= 0 && at(constants, slot) != at(c.constants, slot)) return false;
  return true;
}

std::shared_ptr<const CompiledSchedule> schedule_of(Context& context, const Computation& c,
                                                    const std::vector<bool>& constants) {
  if (ran_for(c, constants)) return c.schedule;
  Graph& graph = context.get<RunState>().graph;
  NormalForm form;
  form.values.assign(read_graph(graph, c.graph, "a captured computation"));
  form.root = graph.intern({Op::Sink, DType::Void, form.values});
  form.variables = c.variables;
  const Toposort nodes(form.values);  // of a Repeat's bodies, too
  form.calls = std::ranges::any_of(nodes, [](NodeRef n) { return n->op == Op::Call; });
  return prepare(context, form, c.into, constants)->schedule;
}

std::vector<int> positions(const ReplayPlan& plan, const Computation& c,
                           const CompiledSchedule& schedule) {
  std::vector<int> out;
  for (const std::string& name : schedule.variables) {
    const auto bound = std::ranges::find(c.variables, name, &BoundVariable::name);
    const auto at =
        std::ranges::find(plan.variables, ReplayVariable{bound->variable, bound->value});
    out.push_back(static_cast<int>(at - plan.variables.begin()));
  }
  return out;
}

/// What goes in and out has numbers; what lies between gets new ones.
std::vector<int> number_buffers(CapturedSteps& steps, const Computation& c,
                                const CompiledSchedule& schedule, std::span<const int> variables) {
  std::vector<int> out;
  for (const CompiledBuffer& b : schedule.buffers) {
    if (!b.intermediate()) {
      out.push_back(b.input >= 0 ? c.inputs[static_cast<size_t>(b.input)]
                                 : c.results[static_cast<size_t>(b.output)]);
      WEFT_CHECK(out.back() >= 0, "a schedule for constants reads what none read before");
      continue;
    }
    out.push_back(static_cast<int>(steps.schedule.buffers.size()));
    steps.schedule.buffers.push_back(b);
    steps.schedule.buffers.back().numel = b.numel.renumbered(variables);
    steps.schedule.buffers.back().lengths = b.lengths.renumbered(variables);
  }
  return out;
}

}  // namespace

namespace {

CapturedSteps steps_of(const ReplayPlan& plan,
                       FunctionRef<std::vector<bool>(const Computation&)> constants) {
  const std::lock_guard lock(plan.context.get<RunState>().mutex);
  CapturedSteps out;
  out.schedule.variables = plan.captured.variables;
  out.schedule.buffers = plan.captured.buffers;
  for (const Computation& c : plan.computations) {
    WEFT_CHECK(c.schedule && c.sites, "a plan is divided that has let go of its schedules");
    const auto schedule = schedule_of(plan.context, c, constants(c));
    const std::vector<int> variables = positions(plan, c, *schedule);
    const std::vector<int> buffers = number_buffers(out, c, *schedule, variables);
    out.append(*schedule, buffers, variables, *c.sites);
  }
  return out;
}

}  // namespace

CapturedSteps steps_as_they_ran(const ReplayPlan& plan) {
  return steps_of(plan, [](const Computation& c) { return c.constants; });
}

CapturedSteps steps_for_constants(const ReplayPlan& plan, const std::vector<bool>& constant) {
  return steps_of(plan, [&](const Computation& c) { return constant_inputs(c, constant); });
}

}  // namespace weft
