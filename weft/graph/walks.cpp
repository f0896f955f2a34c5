// Walks over a graph, and copies into another.
#include "weft/graph/walks.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/base/thread_cache.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/graph/tuple.h"

namespace weft {

namespace {
struct Frame {
  NodeRef node;
  uint32_t next;
};
}  // namespace

struct Toposort::State {
  std::vector<NodeRef> order;
  SmallVector<Frame, 64> stack;
  NodeSet seen;
};

/// Compiling one kernel walks its graph a hundred times: a thread keeps the tables of small walks.
struct Toposort::Spare {
  static constexpr size_t kMostNodes = 2048;
  static void drop(State* s) { delete s; }
  using Cache = ThreadCache<Spare, State, 4, drop>;
};

template <class SourceCount>
Toposort::Toposort(std::span<const NodeRef> roots, SourceCount count)
    : state_(Spare::Cache::take()) {
  if (!state_) state_ = std::make_unique<State>();
  auto& [order, stack, seen] = *state_;
  for (NodeRef root : roots) {
    if (!seen.insert(root)) continue;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next == count(f.node)) {
        order.push_back(f.node);
        stack.pop_back();
        continue;
      }
      NodeRef child = f.node->src(f.next++);
      if (seen.insert(child)) stack.push_back({child, 0});
    }
  }
}
Toposort::Toposort(std::span<const NodeRef> roots)
    : Toposort(roots, [](NodeRef n) { return n->nsrc; }) {}
Toposort Toposort::evaluated(std::span<const NodeRef> roots) {
  return Toposort(roots, [](NodeRef n) { return evaluated_sources(n); });
}
Toposort::Toposort(Toposort&&) noexcept = default;
Toposort::~Toposort() {
  if (!state_) return;  // moved from
  if (state_->order.size() > Spare::kMostNodes) return;
  state_->order.clear();
  state_->seen.clear();
  Spare::Cache::give(state_.release());
}
const NodeRef* Toposort::begin() const { return state_->order.data(); }
const NodeRef* Toposort::end() const { return state_->order.data() + state_->order.size(); }
size_t Toposort::size() const { return state_->order.size(); }

NumberedOrder::NumberedOrder(NodeRef root) {
  SmallVector<Frame, 64> stack{{root, 0}};
  order_.reserve(128);
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.next < f.node->nsrc) {
      NodeRef child = f.node->src(f.next++);
      if (!contains(child)) stack.push_back({child, 0});
      continue;
    }
    f.node->mark = static_cast<uint32_t>(order_.size());
    order_.push_back(f.node);
    stack.pop_back();
  }
}

void NumberedOrder::not_numbered(NodeRef n) {
  internal_error("graph", "{} has no number in this order, or another order took it",
                 info(n->op).mnemonic);
}

std::vector<NodeRef> rebuild_all(std::span<const NodeRef> roots,
                                 FunctionRef<NodeRef(NodeRef, std::span<const NodeRef>)> fn) {
  const Toposort order(roots);
  NodeMap<NodeRef> images(order.size());
  std::vector<NodeRef> src, out;
  for (NodeRef n : order) {
    src.clear();
    for (NodeRef s : n->src()) src.push_back(images.at(s));
    images[n] = fn(n, src);
  }
  for (NodeRef root : roots) out.push_back(images.at(root));
  return out;
}

SmallVector<NodeRef, 16> operands_of(NodeRef root, Op op) {
  SmallVector<NodeRef, 16> operands, stack{root};
  while (!stack.empty()) {
    NodeRef n = stack.back();
    stack.pop_back();
    if (n->op == op)
      for (size_t i = n->nsrc; i-- > 0;) stack.push_back(n->src(i));
    else
      operands.push_back(n);
  }
  return operands;
}

std::vector<NodeRef> Graph::import_all(std::span<const NodeRef> roots) {
  return rebuild_all(roots, [this](NodeRef n, std::span<const NodeRef> src) {
    return intern({n->op, n->dtype, src, n->ints(), n->text(), n->lanes});
  });
}

Kernel copy_of(const Kernel& kernel) {
  Kernel copy{std::make_shared<Graph>(), nullptr, kernel.name};
  copy.sink = copy.graph->import(kernel.sink);
  return copy;
}

}  // namespace weft
