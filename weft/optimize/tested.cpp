#include "weft/optimize/tested.h"

#include <algorithm>
#include <bit>

#include "weft/base/int128.h"
#include "weft/graph/walks.h"

namespace weft::optimize {
namespace {

/// A comparison of index values: where it holds may be known without computing it.
bool is_bound(NodeRef n) { return n->op == Op::Lt && is_index(n->src(0)->dtype); }

/// Iterations in which a bound is not known to hold.
int64_t tested_by(NodeRef lt, NodeRef range, int64_t extent) {
  Int128 step = 0, rest = 0;  // lt->src(0) - lt->src(1) is at most step * range + rest
  for (size_t side = 0; side < 2; ++side)
    for (NodeRef t : operands_of(lt->src(side), Op::Add)) {
      const bool scaled = t->op == Op::Mul && t->src(1)->op == Op::Const;
      const Int128 by = Int128(side == 0 ? 1 : -1) * (scaled ? t->src(1)->vmin : 1);
      NodeRef term = scaled ? t->src(0) : t;
      if (term == range)
        step += by;
      else if (term->vmin == INT64_MIN || term->vmax == INT64_MAX)
        return extent;
      else
        rest += by * (by > 0 ? term->vmax : term->vmin);
    }
  if (step == 0) return extent;
  const Int128 size = extent, by = step < 0 ? -step : step;
  const Int128 first = rest < 0 ? (-rest - 1) / by + 1 : 0;  // from there it may fail
  const Int128 last = rest < 0 ? -1 : rest / by;             // until there
  return static_cast<int64_t>(
      std::min(size, step > 0 ? std::max<Int128>(0, size - first) : last + 1));
}

}  // namespace

SmallVector<int64_t, 16> tested_iterations(const KernelInfo& info) {
  SmallVector<int64_t, 16> tested;
  tested.resize(info.ranges.size(), 0);
  const auto add = [&](NodeRef n) {
    for (RangeMask m = info.deps(n); m != 0; m &= m - 1) {
      const auto r = static_cast<size_t>(std::countr_zero(m));
      const RangeInfo& range = info.ranges[r];
      tested[r] =
          std::max(tested[r], is_bound(n) ? tested_by(n, range.node, range.extent) : range.extent);
    }
  };
  for (NodeRef n : info.order)
    if (is_alu(n->op) && !is_index(n->dtype) && is_index(n->src(0)->dtype)) add(n);
  for (const Access& a : info.accesses)
    if (a.masked != 0)
      for (NodeRef condition : operands_of(a.node->src(a.is_store() ? 3 : 2), Op::And))
        add(condition);
  return tested;
}

}  // namespace weft::optimize
