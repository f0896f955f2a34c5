// The order of the steps.
#include "weft/lower/lower.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/isa/x86.h"
#include "weft/lower/allocate.h"
#include "weft/lower/dead_code.h"
#include "weft/lower/steps.h"
#include "weft/lower/x86/select.h"
#include "weft/target/target.h"

namespace weft {
namespace {

/// What launching needs to know: params, variables, the size of the core range.
void describe_interface(NodeRef sink, LinearProgram& program) {
  for (NodeRef n : Toposort(sink)) {
    if (n->op == Op::Param) {
      const auto slot = static_cast<size_t>(param_slot(n));
      if (slot >= program.params.size()) program.params.resize(slot + 1, {DType::Void});
      program.params[slot].dtype = is_float8(n->dtype) ? DType::U8 : n->dtype;
    } else if (n->op == Op::Variable) {
      program.variables.push_back(program.graph->import(n));
    } else if (n->op == Op::Range && range_binding(n) == Binding::Core) {
      program.core_size = program.graph->import(n->src(0));
    }
  }
  std::sort(program.variables.begin(), program.variables.end(),
            [](NodeRef a, NodeRef b) { return a->text() < b->text(); });
  for (NodeRef n : program.code) {
    if (n->op == Op::Load) program.params[static_cast<size_t>(param_slot(n->src(0)))].read = true;
    if (n->op == Op::Store)
      program.params[static_cast<size_t>(param_slot(n->src(0)))].written = true;
  }
}

}  // namespace

LinearProgram lower_kernel(const Kernel& kernel, const Target& target) {
  Graph g;
  NodeRef sink = g.import(kernel.sink);
  sink = lower::small_floats(g, sink, target);
  sink = lower::guard_accesses(g, sink);
  sink = lower::skip_masked(g, sink);
  sink = lower::unroll(g, sink, target);
  sink = lower::vectorise(g, sink);
  sink = lower::guard_core(g, sink);
  sink = lower::choose_widths(g, sink);
  sink = lower::decompose(g, sink, target);
  // After everything that simplifies: what a reduction depends on decides where it runs.
  sink = lower::separate_loops(g, sink);
  LinearProgram program = lower::linearise(sink, target);
  program.name = kernel.name;
  describe_interface(kernel.sink, program);
  lower::estimate_work(program, kernel.sink);
  return program;
}

MachineProgram lower_to_machine(const LinearProgram& program, const Target& target) {
  Tracer& tracer = Context::current().tracer();
  const InstructionSet& set = x86::instruction_set(target.vector_bits == 512);
  MachineProgram code;
  {
    Span span(tracer, "select", program.name);
    code = lower::select_x86(program, target);
    lower::remove_dead_code(code, set);
  }
  Span span(tracer, "allocate", program.name);
  lower::allocate(code, set);
  tracer.add(Counter::SpilledRegisters, code.in_memory);
  tracer.add(Counter::RepeatedValues, code.repeated);
  tracer.add(Counter::StackBytes, code.frame_bytes);
  return code;
}

}  // namespace weft
