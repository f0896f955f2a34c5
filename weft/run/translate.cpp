#include "weft/run/translate.h"

#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/base/log.h"
#include "weft/codegen/codegen.h"
#include "weft/graph/verify.h"
#include "weft/lower/lower.h"
#include "weft/render/render.h"
#include "weft/target/core.h"

namespace weft {
namespace {

void count_nodes(Context& context, const Graph& made) {
  context.tracer().add(Counter::Nodes, static_cast<int64_t>(made.live_nodes()));
}

std::string bounds_text(const AccessBounds& bounds) {
  const std::string proved = strformat("{} accesses proved to be in range", bounds.proved);
  return bounds.tested == 0 ? proved : strformat("{}, {} tested", proved, bounds.tested);
}

void write_code(const Context& context, const Target& target, std::string_view entry, bool distinct,
                Translation& out) {
  if (target.machine_code) {
    MachineCode made = generate_code(out.program, target);
    if (log_enabled(context, 4)) out.listing = back_end_of(target).list(made.program, this_core());
    out.code = std::move(made.bytes);
    out.spilled = made.program.in_memory;
  } else if (!target.renderer.empty()) {
    RenderOptions options;
    options.distinct_params = distinct;
    out.code = render(out.program, target, entry, options);
  }
}

}  // namespace

Translation translate_kernel(const Kernel& kernel, const Target& target, std::string_view entry,
                             bool distinct, const LoopPlan* plan) {
  Context& context = Context::current();
  Span whole(context.tracer(), "translate", kernel.name);
  Translation out;
  {
    Span span(context.tracer(), "optimize", kernel.name);
    OptimizeOptions options;
    options.report = &out.report;
    options.plan = plan;
    out.optimized = optimize_kernel(kernel, target, options);
    verify_kernel(out.optimized, "optimize");
    count_nodes(context, *out.optimized.graph);
  }
  {
    Span span(context.tracer(), "lower", kernel.name);
    out.program = lower_in_place(out.optimized, target);
    verify_program(out.program, "lower");
    count_nodes(context, *out.program.graph);
    out.report.applied.push_back(bounds_text(out.program.bounds));
    if (!log_enabled(context, 5)) out.optimized = {};
  }
  write_code(context, target, entry, distinct, out);
  return out;
}

}  // namespace weft
