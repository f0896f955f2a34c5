// Drivers: how a rule set is carried over a graph. All iterative: depth is limited by memory only.
#pragma once
#include "weft/base/function_ref.h"
#include "weft/graph/node_map.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

/// Budgets of rewrite_fixpoint. Past them it throws an InternalError that names the rules going
/// round.
struct RewriteLimits {
  uint32_t per_node = 256;  ///< firings at one place
  uint32_t per_graph = 64;  ///< firings per node of the graph, plus 1024
};

namespace detail {
NodeRef fixpoint(NodeRef root, const RuleMatcher&, RuleMatcher::Call, const RewriteLimits&);
NodeRef walk(NodeRef root, const RuleMatcher&, RuleMatcher::Call);
}  // namespace detail

/// Rewrites sources before users until no rule fires anywhere.
template <class Ctx>
NodeRef rewrite_fixpoint(Graph& g, NodeRef root, const RuleSet<Ctx>& set, Ctx& ctx,
                         const RewriteLimits& limits = {}) {
  return detail::fixpoint(root, set.matcher(), {g, &ctx, RuleSet<Ctx>::calls_of(ctx)}, limits);
}
inline NodeRef rewrite_fixpoint(Graph& g, NodeRef root, const RuleSet<>& set,
                                const RewriteLimits& limits = {}) {
  return detail::fixpoint(root, set.matcher(), {g}, limits);
}

/// Offers every node to the rules once, sources first; what a rule makes is not looked at again.
template <class Ctx>
NodeRef walk(Graph& g, NodeRef root, const RuleSet<Ctx>& set, Ctx& ctx) {
  return detail::walk(root, set.matcher(), {g, &ctx, RuleSet<Ctx>::calls_of(ctx)});
}
inline NodeRef walk(Graph& g, NodeRef root, const RuleSet<>& set) {
  return detail::walk(root, set.matcher(), {g});
}

/// Rebuilds a graph sources first: `fn(node, new sources)` gives each node's image.
NodeRef rebuild(NodeRef root, FunctionRef<NodeRef(NodeRef, std::span<const NodeRef>)> fn);
/// `root` with every key of `replacement` replaced (keys are not looked into), through Graph::make.
NodeRef substitute(Graph& g, NodeRef root, const NodeMap<NodeRef>& replacement);

}  // namespace weft
