#include "weft/trust/program.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/version.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/target/cpu_features.h"
#include "weft/trust/random.h"
#include "weft/trust/shrink.h"

namespace weft::trust {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;  // of all params

std::vector<NodeRef> params_of(std::span<const NodeRef> roots) {
  std::vector<NodeRef> params;
  for (NodeRef n : Toposort::evaluated(roots))
    if (n->op == Op::Param && !is_inner_param(n)) params.push_back(n);
  return params;
}

eval::Extents extents_of(NodeRef param, const eval::Inputs& binding) {
  eval::Extents extents;
  for (NodeRef d : param->shape->span())
    extents.push_back(eval::evaluate(d, {{}, {}, binding.variables}).at(0).as_int());
  return extents;
}

eval::Array given(NodeRef param, const ReproData& data, const eval::Extents& extents) {
  if (data.dtype != param->dtype || data.shape != extents)
    fail("repro.data", "data of param {} are {}; the graph has {}", param_slot(param),
         eval::Array(data.dtype, data.shape).type_text(),
         eval::Array(param->dtype, extents).type_text());
  return eval::Array::copy_of(data.dtype, extents, data.bytes.data());
}

/// Sums and products of them are exact.
eval::Array made_up(DType dtype, const eval::Extents& extents, Random& random) {
  eval::Array values(dtype, extents);
  for (int64_t i = 0; i < values.count(); ++i)
    values.set(
        i, Value::of(dtype, random.between(is_signed_int(dtype) || is_float(dtype) ? -4 : 0, 4)));
  return values;
}

/// A file of a few lines may ask for any size.
void check_sizes(std::span<const NodeRef> params, const eval::Inputs& binding) {
  int64_t bytes = 0;
  for (NodeRef p : params) {
    bytes += bytes_for(p->dtype, eval::count_of(extents_of(p, binding)));
    if (bytes > kMostBytes)
      fail("repro.data", "its params take {} bytes and more; at most {} are made", bytes,
           kMostBytes);
  }
}

}  // namespace

RandomGraph program_of(Graph& graph, const Repro& repro) {
  RandomGraph out{graph.import_all(repro.roots), std::vector<eval::Inputs>(1)};
  eval::Inputs& binding = out.bindings[0];
  binding.variables = repro.variables;
  const std::vector<NodeRef> params = params_of(out.roots);
  check_sizes(params, binding);
  for (NodeRef p : params) {
    const auto slot = static_cast<size_t>(param_slot(p));
    if (binding.params.size() <= slot) binding.params.resize(slot + 1);
    const eval::Extents extents = extents_of(p, binding);
    const auto data = repro.data.find(param_slot(p));
    Random random(repro.seed + slot);
    binding.params[slot] = data == repro.data.end() ? made_up(p->dtype, extents, random)
                                                    : given(p, data->second, extents);
  }
  return out;
}

Repro repro_of(const RandomGraph& program, const Options& options, const Outcome& outcome) {
  Repro repro;
  repro.roots = repro.graph->import_all(program.roots);
  repro.failed = outcome.text();
  repro.build = strformat("{:016x}", build_id());
  repro.isa = CpuFeatures::detect().up_to(options.isa).newest_level();
  repro.options = repro_options(options);
  const eval::Inputs& binding = program.bindings[0];
  for (NodeRef n : Toposort(program.roots))
    if (n->op == Op::Variable)
      repro.variables[std::string(n->text())] = binding.variables.at(std::string(n->text()));
  for (NodeRef p : params_of(program.roots)) {
    const eval::Array& values = binding.params[static_cast<size_t>(param_slot(p))];
    repro.data[param_slot(p)] = {
        values.dtype(), values.extents(), {values.bytes().begin(), values.bytes().end()}};
  }
  return repro;
}

RandomGraph compacted(Graph& graph, const RandomGraph& program) {
  RandomGraph out{program.roots, program.bindings};
  for (eval::Inputs& binding : out.bindings) binding.params.clear();
  NodeMap<NodeRef> numbered;
  int64_t next = 0;
  for (NodeRef p : params_of(program.roots)) {
    const auto old = static_cast<size_t>(param_slot(p));
    numbered[p] = graph.param(next++, p->dtype, p->shape->span());
    for (size_t b = 0; b < out.bindings.size(); ++b)
      out.bindings[b].params.push_back(program.bindings[b].params[old]);
  }
  out.roots = *replaced(graph, program.roots, numbered);
  return out;
}

size_t lines_of(const RandomGraph& program) {
  const std::string text = print_graph(program.roots);
  return static_cast<size_t>(std::ranges::count(text, '\n'));
}

}  // namespace weft::trust
