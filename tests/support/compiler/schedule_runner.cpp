#include "tests/support/compiler/schedule_runner.h"

#include "tests/support/compiler/kernel_code.h"
#include "tests/support/compiler/ptx_machine.h"
#include "tests/support/device_here.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/eval/evaluate.h"
#include "weft/graph/verify.h"
#include "weft/optimize/optimize.h"

namespace weft::testing {
namespace {

using Variables = std::map<std::string, int64_t>;

int64_t number(NodeRef expression, const Variables& variables) {
  eval::Inputs inputs;
  inputs.variables = variables;
  const NodeRef roots[] = {expression};
  return eval::evaluate(roots, inputs)[0].at(0).as_int();
}

class Runner {
 public:
  Runner(Device& device, const Schedule& schedule, const Variables& variables)
      : device_(device), schedule_(schedule), variables_(variables) {}

  void allocate(std::span<const eval::Array> params) {
    for (const BufferSpec& b : schedule_.buffers) {
      const int64_t bytes = bytes_for(b.dtype, number(b.numel, variables_));
      buffers_.push_back(device_.allocate(std::max<int64_t>(bytes, 1)));
      if (b.input >= 0)
        device_.copy_in({buffers_.back().get(), 0}, params[static_cast<size_t>(b.input)].bytes());
    }
  }

  void compile(bool optimize) {
    OptimizeOptions options;
    options.enabled = optimize;
    std::vector<std::string> texts;
    for (const Kernel& k : schedule_.kernels) {
      verify_kernel(k, "schedule");
      const Kernel better = optimize_kernel(k, device_.target(), options);
      verify_kernel(better, "optimize");
      programs_.push_back(lower_kernel(better, device_.target()));
      verify_program(programs_.back(), "lower");
    }
    std::vector<ProgramSource> sources;
    for (size_t i = 0; i < programs_.size(); ++i) {
      const std::string entry = entry_name(i, programs_[i].name);
      texts.push_back(kernel_code(programs_[i], device_.target(), entry));
      sources.push_back({&programs_[i], {}, entry});
    }
    for (size_t i = 0; i < texts.size(); ++i) sources[i].text = texts[i];
    executables_ = device_.load(sources);
  }

  void run() {
    for (const ScheduleStep& step : schedule_.steps) {
      if (step.kind == ScheduleStep::Kind::Copy) {
        Buffer *from = buffers_[static_cast<size_t>(step.buffers[0])].get(),
               *to = buffers_[static_cast<size_t>(step.buffers[1])].get();
        submit(Command::copy({from, 0}, {to, 0}, from->bytes()));
      } else {
        launch(step);
      }
    }
  }

  eval::Array read(int buffer, NodeRef like) {
    eval::Extents extents;
    for (NodeRef d : like->shape->span()) extents.push_back(number(d, variables_));
    eval::Array out(like->dtype, extents);
    device_.copy_out(out.bytes(), {buffers_[static_cast<size_t>(buffer)].get(), 0});
    return out;
  }

 private:
  void launch(const ScheduleStep& step) {
    const LinearProgram& program = programs_[static_cast<size_t>(step.kernel)];
    std::vector<BufferSlice> slices;
    for (int b : step.buffers) slices.push_back({buffers_[static_cast<size_t>(b)].get(), 0});
    Variables variables = variables_;
    for (const ScheduleStep::Fixed& f : step.fixed) variables[f.variable] = f.value;
    std::vector<int64_t> values;
    for (NodeRef v : program.variables) values.push_back(variables.at(std::string(v->text())));
    const int64_t items = program.core_size ? number(program.core_size, variables) : 1;
    Command command =
        Command::launch(*executables_[static_cast<size_t>(step.kernel)], slices, values, items);
    for (size_t axis = 0; axis < 3; ++axis)
      if (NodeRef size = program.launch.grid[axis]) command.grid[axis] = number(size, variables);
    submit(command);
  }
  void submit(const Command& command) { device_.wait(device_.submit(0, {&command, 1})); }

  Device& device_;
  const Schedule& schedule_;
  const Variables& variables_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<LinearProgram> programs_;
  std::vector<std::unique_ptr<Executable>> executables_;
};

}  // namespace

std::vector<eval::Array> run_graph(Context& context, std::span<const ScheduleOutput> outputs,
                                   std::vector<eval::Array>& params,
                                   const std::map<std::string, int64_t>& variables,
                                   const RunOptions& options) {
  const OpenedDevice opened(context, device_here(options.device));
  Device& device = opened;
  const Target& target = options.target ? *options.target : device.target();
  const Schedule schedule = make_schedule(outputs, target, options.schedule);
  Runner runner(device, schedule, variables);
  runner.allocate(params);
  runner.compile(options.optimize);
  runner.run();
  std::vector<eval::Array> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(runner.read(schedule.outputs[i], outputs[i].value));
    if (outputs[i].into >= 0) params[static_cast<size_t>(outputs[i].into)] = results.back();
  }
  return results;
}

}  // namespace weft::testing
