#include "weft/run/explain_passes.h"

#include <algorithm>
#include <mutex>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/graph/verify.h"
#include "weft/render/render.h"
#include "weft/run/arenas.h"
#include "weft/run/normalise.h"
#include "weft/run/run_state.h"
#include "weft/run/storage.h"
#include "weft/run/translate.h"
#include "weft/schedule/schedule.h"

namespace weft {
namespace {

const Target& target_of(Context& context, DeviceId device) {
  DeviceTable& devices = context.get<DeviceTable>();
  return (device ? devices.open(device) : devices.default_device()).target();
}

/// Where a kernel runs: with the memory of the first step that has it.
DeviceId device_of(const Schedule& schedule, size_t kernel) {
  for (const ScheduleStep& step : schedule.steps)
    if (step.kind == ScheduleStep::Kind::Run && step.kernel == static_cast<int>(kernel))
      return schedule.buffers[static_cast<size_t>(step.buffers[0])].device;
  return {};
}

void compile_values(Context& context, std::span<const NodeRef> values,
                    std::span<const BoundVariable> variables = {}) {
  std::vector<ScheduleOutput> outputs;
  for (NodeRef v : values) outputs.push_back({v});
  const Schedule schedule = make_schedule(outputs, target_of(context, values[0]->device));
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    const Kernel& kernel = schedule.kernels[i];
    verify_kernel(kernel, "schedule");
    translate_kernel(kernel, target_of(context, device_of(schedule, i)),
                     entry_name(i, kernel.name));
  }
  const CompiledSchedule planned = outline(schedule, context.get<DeviceTable>());
  const std::vector<int64_t> sizes = values_of(planned.variables, variables);
  if (sizes.size() == planned.variables.size()) plan_arenas(planned, sizes);
}

/// Values of tensors hold buffers and bound variables, or call functions; a graph in normal form
/// has params.
bool is_normal(std::span<const NodeRef> values) {
  const Toposort nodes = Toposort::evaluated(values);
  return std::none_of(nodes.begin(), nodes.end(), [](NodeRef n) {
    return n->op == Op::Buffer || n->op == Op::Bind || n->op == Op::Function || n->op == Op::Call;
  });
}

void compile_tensors(Context& context, std::span<const NodeRef> values) {
  if (is_normal(values)) return compile_values(context, values);
  Graph graph;
  const NormalForm form =
      normalise(graph, values, context.get<DeviceTable>().default_device().id());
  compile_values(context, without_calls(graph, form).values, form.variables);
}

}  // namespace

std::vector<PassRecord> explain_passes(Context& context, std::span<const NodeRef> roots,
                                       bool texts) {
  const ContextScope scope(context);
  PassTrace trace(texts);
  if (roots.size() == 1 && roots[0]->op == Op::Sink) {
    const Kernel kernel{nullptr, roots[0], "kernel"};
    translate_kernel(kernel, target_of(context, {}), entry_name(0, kernel.name));
  } else if (!roots.empty()) {
    compile_tensors(context, roots);
  }
  return trace.take();
}

std::vector<PassRecord> explain_passes(Context& context,
                                       std::span<const std::shared_ptr<Storage>> storages,
                                       bool texts) {
  std::lock_guard lock(context.get<RunState>().mutex);
  std::vector<NodeRef> values;
  for (const auto& s : storages) {
    NodeRef value = StorageAccess::peek(*s);
    const bool known = std::find(values.begin(), values.end(), value) != values.end();
    if (value->op != Op::Buffer && !known) values.push_back(value);
  }
  return explain_passes(context, values, texts);
}

}  // namespace weft
