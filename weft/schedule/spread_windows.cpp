// Convolutions of few places by many weights: 512 channels of 7 x 7 by 9.4 MB of them. Vectors
// along channels would want all weights in another order, which takes as long as half of the
// products. Instead the windows are written side by side, all places of one element of the windows
// in a row that vectors run along; weights are then read as they lie, one by one.
#include <algorithm>

#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

// Elements of weights that are put in another order in the time of writing one of a window, and
// weights that take as long as one more kernel.
constexpr double kMoved = 3, kFewest = 65536;
constexpr double kPartOfL2 = 1.0 / 2;  // that windows may fill: all are read for each weight

/// Whether the elements of `n` are those of windows that overlap.
bool has_windows(NodeRef n) {
  for (; is_movement(n->op) && n->op != Op::Gather; n = n->src(0))
    if (n->op == Op::Window && n->int_arg(1) > n->int_arg(2)) return true;
  return false;
}

/// Whether `weight` lies along the innermost axis of the sum and would be moved in each run.
bool lies_along_sum(Graph& g, NodeRef weight, size_t axis, const ConstantValues& constants) {
  const Reading read(g, weight);
  return is_static(read.of) && read.of->op == Op::Param && !constants.contain(read.of) &&
         read.of->dtype == weight->dtype && read.lies_along(g, axis);
}

/// `windows` in memory, the axes of places innermost.
NodeRef side_by_side(Graph& g, NodeRef windows, std::span<const int64_t> summed) {
  std::vector<int64_t> order, back(windows->rank());
  for (const bool is_summed : {true, false})
    for (size_t a = 0; a < windows->rank(); ++a)
      if ((std::ranges::find(summed, static_cast<int64_t>(a)) != summed.end()) == is_summed)
        order.push_back(static_cast<int64_t>(a));
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const auto permuted = [&](NodeRef x, const std::vector<int64_t>& axes) {
    const NodeRef src[] = {x};
    return g.make({Op::Permute, x->dtype, src, axes});
  };
  const NodeRef src[] = {permuted(windows, order)};
  return permuted(g.make({Op::Contiguous, windows->dtype, src}), back);
}

}  // namespace

NodeRef by_spread_windows(Graph& g, NodeRef sum, const Target& target,
                          const ConstantValues& constants) {
  NodeRef x = sum->src(0);
  const auto summed = reduce_axes(sum);
  if (target.vector_bits == 0 || target.canonical || fold_of(sum) != Fold::Add ||
      x->op != Op::Mul || !is_float(x->dtype) || !is_static(x) || summed.size() < 2)
    return sum;
  const int64_t innermost = *std::ranges::max_element(summed);
  for (const size_t i : {0, 1}) {
    NodeRef all = x->src(i), weight = x->src(1 - i);
    if (all->op != Op::Expand || !has_windows(all)) continue;
    NodeRef windows = all->src(0);
    const double elements = largest_numel(windows->shape->span());
    const double weights = largest_numel(moved(weight)->shape->span());
    if (weights < kFewest || weights < kMoved * elements ||
        elements * bits(x->dtype) / 8 >
            kPartOfL2 * static_cast<double>(target.machine.l2().bytes) ||
        !lies_along_sum(g, weight, static_cast<size_t>(innermost), constants))
      continue;
    NodeRef factors[2];
    factors[i] = expanded(g, side_by_side(g, windows, {summed.begin(), summed.end()}), all);
    factors[1 - i] = weight;
    NodeRef product = g.make(Op::Mul, x->dtype, {factors[0], factors[1]});
    return reduce_over(g, product, Fold::Add, {summed.begin(), summed.end()});
  }
  return sum;
}

}  // namespace weft
