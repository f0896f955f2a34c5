#include "weft/run/compiled_schedule.h"

#include <algorithm>

#include "weft/base/checked.h"

namespace weft {

std::shared_ptr<const CompiledKernel> compiled_kernel(std::string name,
                                                      const LinearProgram& program,
                                                      std::unique_ptr<Executable> executable,
                                                      RecordedAs recorded) {
  auto k = std::make_shared<CompiledKernel>();
  k->executable = std::move(executable);
  k->name = std::move(name);
  for (NodeRef v : program.variables) k->variables.emplace_back(v->text());
  const auto size_of = [&](NodeRef size) {
    return size ? IndexProgram(size, program.variables) : IndexProgram(1);
  };
  k->items = size_of(program.core_size);
  if (program.launch.grouped)
    for (NodeRef size : program.launch.grid) k->grid.push_back(size_of(size));
  k->params = program.params;
  k->flops = program.flops;
  k->bytes = program.bytes;
  k->recorded = recorded;
  return k;
}

int64_t CompiledSchedule::bytes_of(int buffer, std::span<const int64_t> values) const {
  const CompiledBuffer& b = buffers[static_cast<size_t>(buffer)];
  if (!b.lengths.contain(values)) return 0;
  const int64_t count = b.numel(values);
  return add_or_fail("memory", mul_or_fail("memory", count, bits(b.dtype)), 7) / 8;
}

size_t CompiledSchedule::bytes_held() const {
  std::vector<const CompiledKernel*> kernels;
  for (const CompiledStep& step : steps)
    if (step.kernel) kernels.push_back(step.kernel.get());
  std::sort(kernels.begin(), kernels.end());
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  // A step, what it points to, and the command that waits for the next run.
  size_t bytes = steps.size() * 3 * sizeof(CompiledStep) + buffers.size() * sizeof(CompiledBuffer);
  for (const CompiledKernel* k : kernels) bytes += k->bytes_held();
  return bytes;
}

CompiledSchedule outline(const Schedule& schedule, DeviceTable& devices) {
  CompiledSchedule out;
  for (NodeRef v : schedule.variables) out.variables.emplace_back(v->text());
  for (const BufferSpec& b : schedule.buffers) {
    Device& device = b.device ? devices.open(b.device) : devices.default_device();
    out.buffers.push_back({b.dtype, &device, IndexProgram(b.numel, schedule.variables), b.input,
                           b.output, b.of_round ? std::max(1, device.target().threads) : 1});
  }
  for (const ScheduleStep& s : schedule.steps)
    out.steps.push_back(
        {s.kind, nullptr, s.buffers, {}, nullptr, s.origins, s.round, s.loop, s.asks});
  out.outputs = schedule.outputs;
  out.loops = schedule.loops;
  return out;
}

}  // namespace weft
