// A recorded kernel, compiled again by this program with rules switched off.
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/graph/verify.h"
#include "weft/render/render.h"
#include "weft/run/translate.h"
#include "weft/viz/diff.h"
#include "weft/viz/state.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

/// Kernels are compiled for it and none runs.
std::string device_of(const KernelRow& k) { return k.target == "c" ? "NULL:C" : "NULL"; }

const PassRow& first_pass(const Session::Data& data, const KernelRow& k) {
  if (k.passes.empty())
    fail("viz.parameter", "of kernel {} no graph is recorded; it was compiled elsewhere", k.name);
  return data.passes[k.passes[0]];
}

NodeRef sink_of(const Session::Data& data, const KernelRow& k, NodeSource& nodes) {
  const StateView state = state_of(data, first_pass(data, k).before, nodes);
  if (state.nodes.size() != 1 || state.nodes[0]->op != Op::Sink)
    fail("viz.damaged", "{}: kernel {} does not begin as a kernel does", data.path, k.name);
  check_kernel(state.nodes[0], data.path);
  return state.nodes[0];
}

/// Its code for people.
std::string compile(const KernelRow& k, NodeRef sink, std::string_view rules) {
  Options options;
  options.rules = rules;
  options.dev = device_of(k);
  options.debug = 4;  // with a listing; nobody reads the log
  options.cache = false;
  Context context(options);
  context.log_sink() = {[](void*, std::string_view) {}, nullptr};
  const ContextScope scope(context);
  const Kernel kernel{nullptr, sink, std::string(k.name)};
  const Target& target = context.get<DeviceTable>().default_device().target();
  const Translation made = translate_kernel(kernel, target, entry_name(0, kernel.name));
  return target.machine_code ? made.listing : made.code;
}

}  // namespace

std::string view_recompile(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const size_t i = parameters.position("kernel", data.kernels.size(), "kernels");
  const KernelRow& k = data.kernels[i];
  NodeSource nodes(data, first_pass(data, k));
  NodeRef sink = sink_of(data, k, nodes);
  const std::string_view rules = parameters.text("rules");
  const std::string with = compile(k, sink, ""), without = compile(k, sink, rules);
  JsonWriter json;
  json.begin_object().field("kernel", i).field("rules", rules).field("changed", with != without);
  json.field("with", with).field("without", without);
  write_diff(json, with, without, parameters);
  return json.end_object().take();
}

}  // namespace weft::viz
