#include "weft/trust/checked_run.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/verify.h"
#include "weft/lower/lower.h"
#include "weft/optimize/optimize.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"
#include "weft/trust/kernel_eval.h"

namespace weft::trust {
namespace {

// Of instructions of all kernels, where sizes are static: more take too long.
constexpr double kMostWork = 2e6;

/// What run_program() executes; tiles and products of words are a machine's own.
bool is_known(const LinearProgram& program) {
  for (NodeRef n : program.code) {
    const bool words = is_alu(n->op) && has_trait(n->op, kWords);
    if (words || n->op == Op::TileLoad || n->op == Op::If) return false;
  }
  return program.flops + program.bytes < kMostWork;
}

class CheckedRun {
 public:
  CheckedRun(const Target& target, const RandomGraph& program, const eval::Inputs& binding)
      : target_(target), program_(program), binding_(binding) {}

  CheckedValues run() {
    std::vector<ScheduleOutput> outputs;
    for (NodeRef n : program_.roots) outputs.push_back({n});
    const Schedule schedule = make_schedule(outputs, target_);
    allocate(schedule);
    for (const Kernel& k : schedule.kernels) {
      verify_kernel(k, "schedule");
      programs_.push_back(lower_kernel(optimize_kernel(k, target_, {}), target_));
      verify_program(programs_.back(), "lower");
      if (!is_known(programs_.back())) return {{}, true};
    }
    for (const ScheduleStep& step : schedule.steps) run(step);
    CheckedValues out;
    for (size_t i = 0; i < outputs.size(); ++i)
      out.values.push_back(value_of(schedule.outputs[i], program_.roots[i]));
    return out;
  }

 private:
  void allocate(const Schedule& schedule) {
    for (const BufferSpec& b : schedule.buffers) {
      const auto count = static_cast<size_t>(index_value(b.numel, binding_.variables));
      // No kernel may use what is in new memory.
      memory_.emplace_back(count, Value::of(b.dtype, 85));
      if (b.input < 0) continue;
      const eval::Array& input = binding_.params[static_cast<size_t>(b.input)];
      for (size_t i = 0; i < count; ++i) memory_.back()[i] = input.at(static_cast<int64_t>(i));
    }
  }

  void run(const ScheduleStep& step) {
    if (step.kind == ScheduleStep::Kind::Copy) {
      memory(step, 1) = memory(step, 0);
      return;
    }
    const LinearProgram& program = programs_[static_cast<size_t>(step.kernel)];
    Buffers buffers;
    for (size_t slot = 0; slot < step.buffers.size(); ++slot) buffers.push_back(memory(step, slot));
    Variables variables = binding_.variables;
    for (const ScheduleStep::Fixed& f : step.fixed) variables[f.variable] = f.value;
    try {
      const int64_t items = program.core_size ? index_value(program.core_size, variables) : 1;
      buffers = run_program(program, buffers, variables, 0, items);
    } catch (const InternalError& error) {
      fail("trust.access", "kernel {}: {}", program.name, error.message());
    }
    for (size_t slot = 0; slot < program.params.size(); ++slot)
      if (program.params[slot].written) memory(step, slot) = std::move(buffers[slot]);
  }
  std::vector<Value>& memory(const ScheduleStep& step, size_t slot) {
    return memory_[static_cast<size_t>(step.buffers[slot])];
  }

  eval::Array value_of(int buffer, NodeRef like) const {
    eval::Extents extents;
    for (NodeRef d : like->shape->span()) extents.push_back(index_value(d, binding_.variables));
    eval::Array out(like->dtype, extents);
    const std::vector<Value>& from = memory_[static_cast<size_t>(buffer)];
    for (int64_t i = 0; i < out.count(); ++i) out.set(i, from[static_cast<size_t>(i)]);
    return out;
  }

  const Target& target_;
  const RandomGraph& program_;
  const eval::Inputs& binding_;
  std::vector<LinearProgram> programs_;
  Buffers memory_;  // by buffer of the schedule
};

}  // namespace

CheckedValues checked_run(Context& context, const Target& target, const RandomGraph& program,
                          const eval::Inputs& binding) {
  const ContextScope scope(context);
  return CheckedRun(target, program, binding).run();
}

}  // namespace weft::trust
