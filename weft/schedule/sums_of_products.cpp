// A sum of two products of matrices, as the gradient of what two layers read is one: each of them
// has units, panels and tiles of its own only as a kernel of its own.
#include <algorithm>

#include "weft/schedule/plan.h"

namespace weft {
namespace {

constexpr double kLeast = 1 << 20;  // products; below, one kernel more costs more than it saves
constexpr int64_t kShortest = 32;   // sum, beside which adding up the results is little
constexpr size_t kMost = 256;       // products

/// A factor of a product of matrices: it is read again for some axis of the result.
bool is_spread_along(NodeRef factor, NodeRef sum) {
  if (factor->op != Op::Expand) return false;
  const auto reduced = reduce_axes(sum);
  for (size_t a = 0; a < factor->rank(); ++a)
    if (factor->src(0)->dim(a) != factor->dim(a) &&
        std::ranges::find(reduced, static_cast<int64_t>(a)) == reduced.end())
      return true;
  return false;
}

bool is_product(NodeRef x, NodeRef sum) {
  return x->op == Op::Mul && is_float(x->dtype) && is_spread_along(x->src(0), sum) &&
         is_spread_along(x->src(1), sum);
}

/// What `x` adds up, in order, where it is products and not too many of them; else none.
std::vector<NodeRef> products_in(NodeRef x, NodeRef sum) {
  std::vector<NodeRef> found, left{x};
  while (!left.empty()) {
    NodeRef n = left.back();
    left.pop_back();
    if (n->op == Op::Add) {
      left.push_back(n->src(1));
      left.push_back(n->src(0));
    } else if (is_product(n, sum)) {
      found.push_back(n);
    } else {
      return {};
    }
    if (found.size() + left.size() > kMost) return {};
  }
  return found;
}

}  // namespace

std::vector<NodeRef> sums_of_products(Graph& g, NodeRef sum) {
  NodeRef x = sum->src(0);
  if (fold_of(sum) != Fold::Add || x->op != Op::Add || !is_static(x)) return {};
  const double all = largest_numel(x->shape->span()), results = largest_numel(sum->shape->span());
  if (all < kLeast || all < static_cast<double>(kShortest) * results) return {};
  std::vector<NodeRef> products = products_in(x, sum);
  for (NodeRef& n : products) {
    const NodeRef src[] = {n};
    n = g.with_sources(sum, src);
  }
  return products;
}

}  // namespace weft
