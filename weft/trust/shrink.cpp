// The shrinker of random graphs: smaller roots, nodes cut to params, nodes bypassed.
#include <algorithm>

#include "weft/graph/node_map.h"
#include "weft/graph/verify.h"
#include "weft/trust/shrink.h"

namespace weft {
namespace {

bool is_plain_value(NodeRef n) {
  return n->dtype != DType::Void && n->dtype != DType::Index && n->op != Op::Const &&
         n->op != Op::Param;
}

size_t size_of(const RandomGraph& g) {
  const Toposort order(g.roots);
  return static_cast<size_t>(
      std::count_if(order.begin(), order.end(), [](NodeRef n) { return n->op != Op::Const; }));
}

std::vector<NodeRef> replaced(Graph& g, std::span<const NodeRef> roots, NodeRef from, NodeRef to) {
  NodeMap<NodeRef> images;
  images[from] = to;
  return *trust::replaced(g, roots, images);
}

class Shrinker {
 public:
  Shrinker(Graph& g, RandomGraph failing, const std::function<bool(const RandomGraph&)>& fails)
      : g_(g), best_(std::move(failing)), fails_(fails) {}

  RandomGraph run() {
    while (smaller_root() || cut() || bypass()) continue;
    return std::move(best_);
  }

 private:
  bool accept(RandomGraph candidate) {
    if (size_of(candidate) >= size_of(best_)) return false;
    if (find_tensor_problem(candidate.roots) || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }
  /// The nodes that have one value, unlike those inside loop bodies.
  std::vector<NodeRef> nodes() const {
    NodeMap<bool> open;
    std::vector<NodeRef> closed;
    for (NodeRef n : Toposort(best_.roots)) {
      bool is_open = n->op == Op::Carry || n->op == Op::Elem;
      for (NodeRef s : n->src()) is_open |= n->op != Op::Loop && open.contains(s);
      if (is_open)
        open[n] = true;
      else
        closed.push_back(n);
    }
    return closed;
  }

  bool smaller_root() {
    for (NodeRef n : nodes())
      if (is_plain_value(n) && accept({{n}, best_.bindings})) return true;
    return false;
  }
  /// A node becomes a param that holds its value.
  bool cut() {
    for (NodeRef n : nodes()) {
      if (!is_plain_value(n)) continue;
      RandomGraph candidate = best_;
      for (eval::Inputs& binding : candidate.bindings)
        binding.params.push_back(eval::evaluate(n, binding));
      const auto slot = static_cast<int64_t>(candidate.bindings[0].params.size()) - 1;
      NodeRef param = g_.param(slot, n->dtype, n->shape->span());
      candidate.roots = replaced(g_, best_.roots, n, param);
      if (accept(std::move(candidate))) return true;
    }
    return false;
  }
  bool bypass() {
    for (NodeRef n : nodes()) {
      if (n->dtype == DType::Index) continue;  // another size would not fit
      for (NodeRef s : n->src()) {
        if (s->dtype != n->dtype || s->shape != n->shape || s->op == Op::Const) continue;
        if (accept({replaced(g_, best_.roots, n, s), best_.bindings})) return true;
      }
    }
    return false;
  }

  Graph& g_;
  RandomGraph best_;
  const std::function<bool(const RandomGraph&)>& fails_;
};

}  // namespace

std::optional<std::vector<NodeRef>> trust::replaced(Graph& g, std::span<const NodeRef> roots,
                                                    const NodeMap<NodeRef>& images) {
  NodeMap<NodeRef> now;
  std::vector<NodeRef> src, out;
  for (NodeRef n : Toposort(roots)) {
    if (const NodeRef* image = images.find(n)) {
      now[n] = *image;
      continue;
    }
    src.clear();
    for (NodeRef s : n->src()) src.push_back(now.at(s));
    if (std::equal(src.begin(), src.end(), n->src().begin())) {
      now[n] = n;
      continue;
    }
    const NodeSpec spec{n->op, n->dtype, src, n->ints(), n->text(), n->lanes};
    if (node_problem(spec, static_cast<uint8_t>(Dialect::Tensor))) return std::nullopt;
    now[n] = g.intern(spec);
  }
  for (NodeRef n : roots) out.push_back(now.at(n));
  return out;
}

RandomGraph shrink(Graph& graph, RandomGraph failing,
                   const std::function<bool(const RandomGraph&)>& fails) {
  return Shrinker(graph, std::move(failing), fails).run();
}

}  // namespace weft
