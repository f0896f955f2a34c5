// Softmax divides by each sum of exponentials once, and multiplies by that.
#include <algorithm>

#include "weft/schedule/estimate.h"
#include "weft/schedule/plan.h"

namespace weft {

namespace {

/// What `n` repeats along `axes` of it, and no others; null where it is something else.
NodeRef repeated_along(NodeRef n, std::span<const int64_t> axes) {
  if (n->op != Op::Expand) return nullptr;
  NodeRef x = n->src(0);
  for (size_t a = 0; a < n->rank(); ++a) {
    const bool along = std::ranges::find(axes, static_cast<int64_t>(a)) != axes.end();
    if (along ? x->dim(a)->vmax != 1 : x->dim(a) != n->dim(a)) return nullptr;
  }
  while (x->op == Op::Reshape) x = x->src(0);
  return x;
}

/// `n` without the positive numbers it is multiplied by.
NodeRef unscaled(NodeRef n) {
  while (n->op == Op::Mul && n->src(1)->op == Op::Const && const_value(n->src(1)).as_double() > 0)
    n = n->src(0);
  return n;
}

/// Whether `x` is y - max y along the axes: then no sum of its exponentials along them is below 1,
/// where others may be as small as the least number, whose reciprocal is infinite.
bool has_top_zero(NodeRef x, std::span<const int64_t> axes) {
  if (x->op != Op::Add) return false;
  for (size_t i = 0; i < 2; ++i) {
    NodeRef negated = x->src(i), y = x->src(1 - i);
    if (negated->op != Op::Neg) continue;
    NodeRef top = repeated_along(negated->src(0), axes);
    if (top && top->op == Op::Reduce && fold_of(top) == Fold::Max && top->src(0) == y &&
        std::ranges::equal(reduce_axes(top), axes))
      return true;
  }
  return false;
}

}  // namespace

/// Rounds once more, 1.5 ulp in all. That is for exponentials alone, which are rounded themselves:
/// of other quotients, x / x is 1 and one of integers that is an integer is exact.
NodeRef exponentials_by_reciprocal(Graph& g, NodeRef quotient, std::span<const NodeRef> src) {
  if (quotient->op != Op::Div) return nullptr;
  NodeRef e = quotient->src(0), divisor = quotient->src(1);
  if (e->op != Op::Exp2 || divisor->op != Op::Expand) return nullptr;
  NodeRef sum = divisor->src(0);
  while (sum->op == Op::Reshape) sum = sum->src(0);
  if (!is_sum(sum) || sum->src(0) != e || !has_top_zero(unscaled(e->src(0)), reduce_axes(sum)))
    return nullptr;
  // Along other axes reciprocals would be stored, by a kernel that few rows are not worth.
  if (reduce_axes(sum).back() != static_cast<int64_t>(e->rank()) - 1) return nullptr;
  NodeRef repeated = src[1], one = g.constant(Value::of(e->dtype, 1));
  if (repeated->op != Op::Expand) return nullptr;  // the sum became a number
  std::vector<NodeRef> operands(repeated->src().begin(), repeated->src().end());
  operands[0] = g.alu(Op::Div, {one, repeated->src(0)});
  return g.mul(src[0], g.with_sources(repeated, operands));
}

}  // namespace weft
