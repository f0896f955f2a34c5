// Derivatives as rules: one row per primitive op says what its sources get from its own gradient.
#pragma once

#include "weft/graph/node_map.h"
#include "weft/tensor/access.h"

namespace weft {

/// One node of the reverse walk. Rules read it and call give().
class Backward {
 public:
  Backward(Context& context, Graph& graph) : context_(context), g(graph) {}

  /// The sum over roots of upstream * d root / d node, for every node of `targets`; an undefined
  /// Tensor where there is no path.
  std::vector<Tensor> run(std::span<const NodeRef> roots, std::span<const Tensor> upstream,
                          std::span<const NodeRef> targets);
  std::vector<Tensor> run(NodeRef root, const Tensor& upstream, std::span<const NodeRef> targets) {
    return run({&root, 1}, {&upstream, 1}, targets);
  }

  // ---- for the rules
  NodeRef n = nullptr;  ///< the node whose gradient is known
  Tensor grad;
  Tensor x(size_t i) const { return TensorAccess::make(context_, n->src(i)); }
  Tensor y() const { return TensorAccess::make(context_, n); }
  Tensor tensor(NodeRef node) const { return TensorAccess::make(context_, node); }
  bool wants(size_t i) const { return wants_node(n->src(i)); }
  bool wants_node(NodeRef source) const { return needed_.contains(source); }
  Context& context() const { return context_; }
  /// Of a node of several results: the k-th one's gradient, or zeros.
  Tensor result_gradient(size_t k) const;
  bool has_result_gradient(size_t k) const;
  /// Adds to the gradient of source i. What a rank-0 source was repeated over is summed out.
  void give(size_t i, const Tensor& gradient) { give_to(n->src(i), gradient); }
  void give_to(NodeRef source, const Tensor& gradient);

 private:
  void mark_needed(const Toposort& order, std::span<const NodeRef> targets);
  bool reached(NodeRef node) const;

  Context& context_;
  NodeMap<bool> needed_;  // nodes a target is reached from
  NodeMap<Tensor> grads_;
  NodeMap<CallSite> users_;  // the line of one who uses the node

 public:
  Graph& g;
};

/// The row of `op`; null for ops through which no gradient flows.
using GradientRule = void (*)(Backward&);
GradientRule gradient_rule(Op op);

/// The rules of nodes with several results.
void loop_gradient(Backward& b);
void repeat_gradient(Backward& b);
void function_gradient(Backward& b);
void call_gradient(Backward& b);
void custom_gradient(Backward& b);

}  // namespace weft
