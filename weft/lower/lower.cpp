// The order of the steps, as a table.
#include "weft/lower/lower.h"

#include <algorithm>

#include "weft/base/hash.h"
#include "weft/graph/print.h"
#include "weft/lower/steps.h"
#include "weft/target/target.h"

namespace weft {
namespace {

void describe_launch(NodeRef range, LinearProgram& program) {
  const size_t axis = range_axis(range);
  Launch& launch = program.launch;
  if (range_binding(range) == Binding::Grid)
    launch.grid[axis] = program.graph->import(range->src(0));
  if (range_binding(range) == Binding::Group) launch.group[axis] = range->src(0)->vmin;
  launch.grouped |= range_binding(range) == Binding::Grid || range_binding(range) == Binding::Group;
}

/// What launching needs to know: params, variables, the size of the core range.
void describe_interface(std::span<const NodeRef> kernel, bool grouped, LinearProgram& program) {
  for (NodeRef n : kernel) {
    if (n->op == Op::Param) {
      const auto slot = static_cast<size_t>(param_slot(n));
      if (slot >= program.params.size()) program.params.resize(slot + 1, {DType::Void});
      program.params[slot].dtype = is_float8(n->dtype) ? DType::U8 : n->dtype;
    } else if (n->op == Op::Variable) {
      program.variables.push_back(program.graph->import(n));
    } else if (n->op == Op::Range && range_binding(n) == Binding::Core) {
      program.core_size = program.graph->import(n->src(0));
    } else if (n->op == Op::Range && grouped) {
      describe_launch(n, program);
    }
  }
  std::sort(program.variables.begin(), program.variables.end(),
            [](NodeRef a, NodeRef b) { return a->text() < b->text(); });
  for (NodeRef n : program.code) {
    const bool loads = n->op == Op::Load || n->op == Op::TileLoad;
    if ((!loads && n->op != Op::Store) || n->src(0)->op != Op::Param) continue;
    ProgramParam& param = program.params[static_cast<size_t>(param_slot(n->src(0)))];
    (loads ? param.read : param.written) = true;
  }
}

/// Whether some node of the kernel, in any order, is like this.
template <class F>
bool any_node(const lower::State& s, F&& like) {
  const Toposort nodes(s.sink);
  return std::any_of(nodes.begin(), nodes.end(), like);
}

bool computes_float8(NodeRef n) { return is_float8(n->dtype) && is_alu(n->op); }

const char* float8_left(const lower::State& s) {
  return any_node(s, computes_float8) ? "arithmetic on 8-bit floats" : nullptr;
}

template <Binding binding>
bool binds(NodeRef n) {
  return n->op == Op::Range && range_binding(n) == binding;
}
const char* unroll_left(const lower::State& s) {
  return any_node(s, binds<Binding::Unroll>) ? "a range to unroll" : nullptr;
}
const char* vector_left(const lower::State& s) {
  return any_node(s, binds<Binding::Vector>) ? "a range to vectorise" : nullptr;
}

const char* tile_left(const lower::State& s) {
  return any_node(s, binds<Binding::Tile>) ? "a range of tiles" : nullptr;
}

const char* unnative_left(const lower::State& s) {
  return any_node(s,
                  [&](NodeRef n) {
                    if (!is_alu(n->op) || is_index(n->dtype)) return false;
                    const bool of_operand = has_trait(n->op, kBoolResult) || n->op == Op::Cast;
                    return !s.target.native(n->op, of_operand ? n->src(0)->dtype : n->dtype);
                  })
             ? "an operation that the target lacks"
             : nullptr;
}

const char* stage_left(const lower::State& s) {
  return any_node(s, [](NodeRef n) { return n->op == Op::Stage; }) ? "a stage" : nullptr;
}

using lower::State;

/// A step that only needs the graph, or the target, too.
template <NodeRef (*step)(Graph&, lower::Analysis&)>
void rewrite(State& s) {
  s.sink = step(s.graph, s.analysis());
}
template <NodeRef (*step)(Graph&, lower::Analysis&, const Target&)>
void rewrite(State& s) {
  s.sink = step(s.graph, s.analysis(), s.target);
}

constexpr Pass<State> kPasses[] = {
    // First: how large what an item computes is follows from what its group shares.
    {"lower.stage_local", "what the items of a group share goes through local memory",
     rewrite<lower::stage_local>, stage_left},
    {"lower.small_floats", "8-bit floats are bytes in memory and f32 in between",
     rewrite<lower::small_floats>, float8_left},
    {"lower.guard_accesses", "every access is proved to be in range, or masked",
     [](State& s) { s.sink = lower::guard_accesses(s.graph, s.analysis(), s.bounds); }},
    Pass<State>{"lower.skip_masked", "loops that only fold a mask's zeros run no iterations",
                rewrite<lower::skip_masked>}
        .as_optional(),
    {"lower.unroll", "unroll ranges are gone: there are copies", rewrite<lower::unroll>,
     unroll_left},
    {"lower.vectorise", "vector ranges are gone: there are lanes", rewrite<lower::vectorise>,
     vector_left},
    Pass<State>{"lower.join_loads", "short vectors side by side that are spread are loaded as one",
                rewrite<lower::join_loads>}
        .as_optional(),
    {"lower.tile_products", "sums over tile ranges are products of tiles, or loops",
     rewrite<lower::tile_products>, tile_left},
    Pass<State>{"lower.continue_folds",
                "remainders of reductions go on with the main loop's accumulators",
                rewrite<lower::continue_folds>}
        .as_optional(),
    {"lower.guard_core", "no store is repeated by every worker", rewrite<lower::guard_core>},
    {"lower.choose_widths", "indices are i32 where that is proved, else i64",
     rewrite<lower::choose_widths>},
    {"lower.decompose", "only ops and dtypes that the target has are left",
     rewrite<lower::decompose>, unnative_left},
    // After everything that simplifies: what a reduction depends on decides where it runs.
    {"lower.separate_loops", "every range runs in one place", rewrite<lower::separate_loops>},
    {"lower.linearise", "a list of instructions in order; reductions are accumulators",
     [](State& s) {
       s.program = lower::linearise(s.analysis(), s.target);
       s.program.name = s.kernel.name;
       s.program.bounds = s.bounds;
     }},
    {"lower.describe", "parameters, variables, items and work are known",
     [](State& s) {
       const Toposort kernel(s.kernel.sink);
       describe_interface(kernel.nodes(), s.target.groups.exist(), s.program);
       lower::estimate_work(s.program, kernel.nodes());
     }},
};

}  // namespace

namespace lower {

Analysis& State::analysis() {
  if (!found || found->sink() != sink) found.emplace(sink);
  return *found;
}

PassView State::view() const {
  if (program.code.empty()) return {static_cast<int64_t>(Toposort(sink).size()), sink->hash};
  return {static_cast<int64_t>(program.code.size()), hash_text(print_program(program))};
}

std::string State::text() const {
  return program.code.empty() ? print_graph(sink) : print_program(program);
}

StateParts State::parts() const {
  return program.code.empty() ? StateParts::graph({sink}) : StateParts::of(program);
}

}  // namespace lower

std::span<const Pass<lower::State>> lower_passes() { return kPasses; }

LinearProgram lower_in_place(const Kernel& kernel, const Target& target) {
  lower::State state{kernel, target};
  run_passes(lower_passes(), state);
  return std::move(state.program);
}

LinearProgram lower_kernel(const Kernel& kernel, const Target& target) {
  const Kernel copy = copy_of(kernel);
  return lower_in_place(copy, target);
}

}  // namespace weft
