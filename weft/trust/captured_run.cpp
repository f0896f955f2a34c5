#include "weft/trust/captured_run.h"

#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/run/replay.h"
#include "weft/trust/random_storages.h"

namespace weft::trust {
namespace {

/// Memory for the arguments of one call.
struct Call {
  Storages params;
  std::vector<ReplayArgument> arguments;
  std::vector<ReplayVariable> variables;
};

Call call_of(Context& context, const RandomGraph& program, const eval::Inputs& binding) {
  Call call{params_of(context, program, binding), {}, {}};
  for (size_t slot = 0; slot < call.params.size(); ++slot)
    if (call.params[slot]) call.arguments.push_back({strformat("p{}", slot), call.params[slot]});
  Graph& g = tensor_graph(context);
  for (NodeRef n : Toposort(program.roots))
    if (n->op == Op::Variable)
      call.variables.push_back({g.import(n), binding.variables.at(std::string(n->text()))});
  return call;
}

std::vector<eval::Array> arrays_of(const Storages& storages) {
  std::vector<eval::Array> out;
  for (const auto& s : storages) out.push_back(array_of(*s));
  return out;
}

}  // namespace

CapturedValues captured_run(Context& context, const RandomGraph& program) {
  CapturedValues out;
  const auto add = [&out](size_t binding, std::vector<eval::Array> values) {
    out.bindings.push_back(binding);
    out.calls.push_back(std::move(values));
  };
  const Call first = call_of(context, program, program.bindings[0]);
  CaptureScope capture(context, first.arguments, first.variables);
  const Storages roots = storages_of(context, program, program.bindings[0], first.params);
  const std::unique_ptr<Replay> replay = capture.finish(roots);
  add(0, arrays_of(roots));
  for (size_t i = 1; i <= program.bindings.size(); ++i) {
    const size_t binding = i % program.bindings.size();
    const Call call = call_of(context, program, program.bindings[binding]);
    add(binding, arrays_of(replay->run(call.arguments, call.variables)));
  }
  return out;
}

}  // namespace weft::trust
