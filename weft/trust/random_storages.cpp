#include "weft/trust/random_storages.h"

#include "weft/base/context.h"
#include "weft/graph/index_value.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"

namespace weft {
namespace {

std::vector<NodeRef> bound(Graph& g, const RandomGraph& r, const eval::Inputs& binding) {
  std::vector<NodeRef> roots = g.import_all(r.roots);
  NodeMap<NodeRef> values;
  for (NodeRef n : Toposort(roots))
    if (n->op == Op::Variable)
      values[n] = g.make(Op::Bind, DType::Index,
                         {n, g.index(binding.variables.at(std::string(n->text())))});
  for (NodeRef& n : roots) n = substitute(g, n, values);
  return roots;
}

}  // namespace

Storages params_of(Context& context, const RandomGraph& r, const eval::Inputs& binding) {
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  const std::vector<NodeRef> roots = bound(g, r, binding);
  Storages params(binding.params.size());
  for (NodeRef n : Toposort(roots)) {
    if (n->op != Op::Param || is_inner_param(n)) continue;
    const auto slot = static_cast<size_t>(param_slot(n));
    params[slot] =
        storage_from_bytes(context, binding.params[slot].bytes(), n->dtype, n->shape->span());
  }
  return params;
}

Storages storages_of(Context& context, const RandomGraph& r, const eval::Inputs& binding,
                     const Storages& params) {
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  const std::vector<NodeRef> roots = bound(g, r, binding);
  NodeMap<NodeRef> in_memory;
  for (NodeRef n : Toposort(roots))
    if (n->op == Op::Param && !is_inner_param(n))
      in_memory[n] = params[static_cast<size_t>(param_slot(n))]->value();
  Storages out;
  for (NodeRef n : roots)
    out.push_back(std::make_shared<Storage>(context, substitute(g, n, in_memory)));
  return out;
}

Storages storages_of(Context& context, const RandomGraph& r, const eval::Inputs& binding) {
  return storages_of(context, r, binding, params_of(context, r, binding));
}

eval::Array array_of(const Storage& s) {
  eval::Extents extents;
  for (NodeRef d : s.value()->shape->span()) extents.push_back(bound_value(d));
  return eval::Array::copy_of(s.value()->dtype, extents, storage_to_bytes(s).data());
}

}  // namespace weft
