// Which loops a place in memory depends on, and for how many steps of one it stays the same.
#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/graph/index_algebra.h"
#include "weft/schedule/plan.h"

namespace weft {

std::vector<NodeRef> used_ranges(std::span<const NodeRef> index, std::span<const NodeRef> scope) {
  std::vector<NodeRef> roots(index.begin(), index.end());
  std::vector<NodeRef> used;
  for (NodeRef n : roots)
    if (n->op == Op::Range && contains(scope, n) && !contains(used, n)) used.push_back(n);
  std::erase_if(roots, [](NodeRef n) { return n->op == Op::Range || n->op == Op::Const; });
  if (roots.empty()) return used;
  for (NodeRef n : Toposort(roots)) {
    if (n->op == Op::Range && contains(scope, n) && !contains(used, n)) used.push_back(n);
    if (is_lookup(n)) return {scope.begin(), scope.end()};
  }
  return used;
}

int64_t steady_steps(std::span<const NodeRef> index, NodeRef r) {
  struct Steps {
    int64_t count = 0;  // 0: r is not in it
    bool unit = false;  // grows by one with r, or with r / count
  };
  NodeMap<Steps> steps;
  const std::vector<NodeRef> roots(index.begin(), index.end());
  for (NodeRef n : Toposort(roots)) {
    Steps own{n == r ? 1 : 0, n == r};
    for (NodeRef s : n->src()) {
      const Steps* of = steps.find(s);
      if (of == nullptr || of->count == 0) continue;
      const bool unit = (own.count == 0 || own.unit) && of->unit && n->op != Op::Mul;
      own = {std::gcd(own.count, of->count), unit};
    }
    const bool divides = n->op == Op::IDiv && n->src(1)->op == Op::Const && own.unit;
    if (divides) own.count *= n->src(1)->vmin;
    steps[n] = own;
  }
  int64_t all = 0;
  for (NodeRef n : index) all = std::gcd(all, steps[n].count);
  return std::max<int64_t>(all, 1);
}

NodeRef end_of_index(Graph& g, NodeRef index) {
  NodeRef last = index;
  for (NodeRef n : Toposort(index)) {
    Stride by{};
    if (n->op != Op::Range) continue;
    if (!split_stride(g, last, n, by) || by.coefficient < 0) return nullptr;
    last = g.add(by.base, g.mul(g.sub(n->src(0), g.index(1)), g.index(by.coefficient)));
  }
  return g.add(last, g.index(1));
}

}  // namespace weft
