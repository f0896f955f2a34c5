#include "weft/tensor/tracing.h"

#include <atomic>

#include "weft/base/context.h"
#include "weft/rewrite/driver.h"

namespace weft {

namespace {

/// Slots of placeholders, from the top; below Tensor's own. A trace takes new ones, so that traces
/// may nest.
struct PlaceholderSlots {
  std::atomic<int64_t> next{INT32_MAX - 1};
};

}  // namespace

Tensor placeholder(const Tensor& x, const Dims& dims) {
  Context& context = x.context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  const int64_t slot = context.get<PlaceholderSlots>().next.fetch_sub(1);
  return TensorAccess::make(context, g.param(slot, x.dtype(), nodes_of(dims), x.node()->device));
}

Tensors placeholders(const Tensors& like) {
  Tensors out;
  for (const Tensor& x : like) out.push_back(placeholder(x, x.dims()));
  return out;
}

Tensors bound(const Tensors& results, const Tensors& holes, const Tensors& values) {
  if (results.empty()) return {};
  Context& context = results[0].context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  NodeMap<NodeRef> replacement;
  for (size_t i = 0; i < holes.size(); ++i) replacement.set(holes[i].node(), values[i].node());
  Tensors out;
  for (const Tensor& r : results)
    out.push_back(TensorAccess::make(context, substitute(g, r.node(), replacement)));
  return out;
}

}  // namespace weft
