#include "weft/optimize/steady.h"

#include <algorithm>
#include <numeric>

namespace weft::optimize {
namespace {

struct Steps {
  int64_t count = 0;  // 0: does not depend on the range
  bool unit = false;  // grows by one with the range, or with range / count
};

Steps steps_of(NodeRef n, NodeRef range, const NodeMap<Steps>& known) {
  Steps own{n == range ? 1 : 0, n == range};
  for (NodeRef s : n->src()) {
    const Steps* of = known.find(s);
    if (of == nullptr || of->count == 0) continue;
    const bool unit = (own.count == 0 || own.unit) && of->unit && n->op != Op::Mul;
    own = {std::gcd(own.count, of->count), unit};
  }
  if (n->op == Op::IDiv && n->src(1)->op == Op::Const && own.unit) own.count *= n->src(1)->vmin;
  return own;
}

}  // namespace

RangeMask looked_up(const KernelInfo& info) {
  RangeMask mask = 0;
  for (NodeRef n : info.order)
    if (n->op == Op::ToIndex) mask |= info.deps(n);
  return mask;
}

bool looks_up(const Access& access) {
  if (access.opaque == 0) return false;
  const Toposort index(access.node->src(1));
  return std::ranges::any_of(index, [](NodeRef n) { return n->op == Op::ToIndex; });
}

int64_t buffer_size(const Access& access) { return access.node->src(0)->src(0)->vmax; }

std::vector<int64_t> steady_iterations(const KernelInfo& info, size_t range) {
  NodeMap<Steps> steps(info.order.size());
  for (NodeRef n : info.order)
    if ((info.deps(n) & bit(range)) != 0) steps[n] = steps_of(n, info.ranges[range].node, steps);
  std::vector<int64_t> found;
  for (const Access& a : info.accesses) {
    const Steps* of = steps.find(a.node->src(1));
    found.push_back(of ? of->count : 0);
  }
  return found;
}

}  // namespace weft::optimize
