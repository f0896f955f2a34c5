#include "weft/schedule/rounds.h"

#include "weft/graph/tuple.h"

namespace weft {

std::vector<NodeRef> repeat(Graph& g, int64_t count, int64_t slot, std::span<const NodeRef> whole,
                            std::span<const NodeRef> carried, std::span<const NodeRef> nexts,
                            std::span<const NodeRef> outs) {
  std::vector<NodeRef> src(whole.begin(), whole.end()), results;
  for (const auto part : {carried, nexts, outs}) src.insert(src.end(), part.begin(), part.end());
  const int64_t ints[] = {count, 0, 0, std::ssize(whole), std::ssize(carried), slot};
  NodeRef n = g.make({Op::Repeat, src.back()->dtype, src, ints});
  for (size_t k = 0; k < nexts.size() + outs.size(); ++k) results.push_back(get_result(g, n, k));
  return results;
}

NodeRef repeat(Graph& g, int64_t count, int64_t slot, std::span<const NodeRef> whole,
               std::span<const NodeRef> carried, NodeRef value) {
  return repeat(g, count, slot, whole, carried, {&value, 1}, {})[0];
}

NodeRef placeholder(Graph& g, NodeRef n, int64_t slot) {
  return g.param(slot, n->dtype, n->shape->span(), n->device);
}

NodeRef zeros_like(Graph& g, NodeRef x) {
  std::vector<NodeRef> src{g.constant(Value::of(x->dtype, 0))};
  src.insert(src.end(), x->shape->span().begin(), x->shape->span().end());
  return g.make({Op::Expand, x->dtype, src});
}

}  // namespace weft
