#include "weft/rewrite/calls.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/tuple.h"
#include "weft/graph/walks.h"

namespace weft {

namespace {

// A file's functions that call each other twice would be any number of operations.
constexpr size_t kMostMade = size_t{1} << 22;

std::vector<NodeRef> bodies_on(Graph& g, std::span<const NodeRef> bodies, int64_t slot,
                               std::span<const NodeRef> inputs) {
  const std::vector<NodeRef> holes = placeholders_in(bodies, slot, inputs.size());
  NodeMap<NodeRef> replacement;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (holes[i]) replacement.set(holes[i], inputs[i]);
  return rebuild_all(bodies, [&](NodeRef n, std::span<const NodeRef> src) {
    const NodeRef* other = replacement.find(n);
    return other ? *other : g.with_sources(n, src);
  });
}

}  // namespace

std::vector<NodeRef> results_on(Graph& g, NodeRef call, std::span<const NodeRef> inputs) {
  const CallParts parts(call);
  return bodies_on(g, parts.bodies, parts.slot, inputs);
}

InlinedCalls::InlinedCalls(Graph& g, std::span<const NodeRef> roots) {
  const Toposort order(roots);
  std::vector<NodeRef> src;
  for (NodeRef n : order) {
    if (n->op == Op::Call) continue;
    if (n->op == Op::Get && n->src(0)->op == Op::Call) {
      images_[n] = result(g, n);
      continue;
    }
    src.clear();
    for (NodeRef s : n->src()) src.push_back(images_.at(s));
    images_[n] = g.with_sources(n, src);
  }
}

NodeRef InlinedCalls::result(Graph& g, NodeRef get) {
  NodeRef call = get->src(0);
  std::vector<NodeRef>& results = results_[call];
  if (results.empty()) {
    const CallParts parts(call);
    std::vector<NodeRef> bodies, inputs;
    for (NodeRef n : parts.bodies) bodies.push_back(images_.at(n));
    for (NodeRef n : parts.inputs) inputs.push_back(images_.at(n));
    results = bodies_on(g, bodies, parts.slot, inputs);
    for (NodeRef result : results)
      make_needed(
          result, [this](NodeRef n) { return known_.contains(n); },
          [&](NodeRef n) {
            known_.set(n, true);
            made_.emplace_back(n, call);
          });
    if (made_.size() > kMostMade)
      fail("calls.size", "what functions call is more than {} operations: realize parts of it",
           kMostMade);
  }
  return results[static_cast<size_t>(get->int_arg(0))];
}

}  // namespace weft
