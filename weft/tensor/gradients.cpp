// The table of derivatives, one row per primitive op.
#include "weft/tensor/gradients.h"

#include <algorithm>
#include <array>
#include <numbers>

namespace weft {

namespace {

using build::AxisList;
using build::Extents;

// ---- elementwise

void add(Backward& b) {
  b.give(0, b.grad);
  b.give(1, b.grad);
}

void mul(Backward& b) {
  if (b.wants(0)) b.give(0, b.grad * b.x(1));
  if (b.wants(1)) b.give(1, b.grad * b.x(0));
}

void divide(Backward& b) {
  const Tensor q = b.grad / b.x(1);
  b.give(0, q);
  if (b.wants(1)) b.give(1, -(q * b.y()));
}

/// x - y * trunc(x / y): the quotient is what was taken off, which is rounded to a whole number.
void remainder(Backward& b) {
  b.give(0, b.grad);
  if (b.wants(1)) b.give(1, -b.grad * ((b.x(0) - b.y()) / b.x(1)).round().detach());
}

void where(Backward& b) {
  if (b.wants(1)) b.give(1, b.x(0).where(b.grad, 0));
  if (b.wants(2)) b.give(2, b.x(0).where(0, b.grad));
}

void mulacc(Backward& b) {
  mul(b);
  b.give(2, b.grad);
}

void neg(Backward& b) { b.give(0, -b.grad); }

// The functions' are in ops.def.
#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, value, doc, ...) \
  void function_##Name(Backward& b) {                                                    \
    [[maybe_unused]] const Tensor x = b.x(0), other = b.x((arity) - 1), y = b.y();       \
    [[maybe_unused]] const Tensor grad = b.grad;                                         \
    const std::vector<Tensor> given = {__VA_ARGS__};                                     \
    for (size_t i = 0; i < given.size(); ++i) b.give(i, given[i]);                       \
  }
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION

void cast(Backward& b) { b.give(0, b.grad.cast(b.n->src(0)->dtype)); }
/// Steps are flat: a result that depends on the operand all the same has a gradient, of 0.
void trunc(Backward& b) { b.give(0, b.x(0).zeros_like()); }
void same(Backward& b) { b.give(0, b.grad); }

void copy(Backward& b) {
  NodeRef node = b.grad.node();
  const int64_t device = b.n->src(0)->device;
  b.give(0, b.tensor(b.g.make(Op::Copy, node->dtype, {node}, {device})));
}

// ---- movement: the adjoint of an index map

void reshape(Backward& b) {
  b.give(0, b.tensor(build::reshape(b.g, b.grad.node(), b.n->src(0)->shape->span())));
}

void expand(Backward& b) {
  Axes axes;
  for (size_t i = 0; i < b.n->rank(); ++i)
    if (b.n->dim(i) != b.n->src(0)->dim(i)) axes.push_back(static_cast<int64_t>(i));
  b.give(0, axes.empty() ? b.grad : b.grad.sum(axes, true));
}

void permute(Backward& b) {
  AxisList inverse(b.n->rank());
  for (size_t i = 0; i < b.n->nints; ++i)
    inverse[static_cast<size_t>(b.n->int_arg(i))] = static_cast<int64_t>(i);
  b.give(0, b.tensor(build::permute(b.g, b.grad.node(), inverse)));
}

void flip(Backward& b) { b.give(0, b.tensor(build::flip(b.g, b.grad.node(), b.n->ints()))); }

void pad(Backward& b) {
  NodeRef x = b.n->src(0);
  const size_t rank = x->rank();
  AxisList steps;
  for (const int64_t between : b.n->ints()) steps.push_back(between + 1);
  b.give(0, b.tensor(build::shrink(b.g, b.grad.node(), b.n->src().subspan(1, rank),
                                   x->shape->span(), steps)));
}

void shrink(Backward& b) {
  NodeRef x = b.n->src(0);
  const size_t rank = x->rank();
  const auto begin = b.n->src().subspan(1, rank);
  Extents after;
  AxisList between;
  for (size_t i = 0; i < rank; ++i) {
    NodeRef size = b.n->dim(i), one = b.g.index(1), step = b.g.index(b.n->int_arg(i));
    // Places taken by `size` elements, step apart: none when there is no element, which the formula
    // says by itself of neighbours, so that their sizes stay sums that cancel.
    NodeRef taken = b.g.add(b.g.mul(b.g.sub(size, one), step), one);
    if (size->vmin < 1 && b.n->int_arg(i) > 1) taken = b.g.alu(Op::Max, {taken, b.g.index(0)});
    after.push_back(b.g.sub(b.g.sub(x->dim(i), begin[i]), taken));
    between.push_back(b.n->int_arg(i) - 1);
  }
  b.give(0, b.tensor(build::pad(b.g, b.grad.node(), begin, after, between)));
}

void window(Backward& b) {
  NodeRef x = b.n->src(0), grad = b.grad.node();
  NodeRef size = x->dim(static_cast<size_t>(b.n->int_arg(0)));
  const NodeRef src[] = {grad, size};
  NodeRef spread = b.g.make({Op::Unwindow, grad->dtype, src, b.n->ints()});
  b.give(0, b.tensor(spread).sum(-1));
}

/// The adjoint reads window element (o, k) at place o*stride + k*dilation of layer k: the diagonal
/// of the windows' and the layers' axis. Under a sum over k, its usual place, all layers are the
/// same.
void unwindow(Backward& b) {
  NodeRef grad = b.grad.node();
  const int64_t axis = b.n->int_arg(0), size = b.n->int_arg(1);
  const size_t last = grad->rank() - 1;
  const bool layers_equal = grad->op == Op::Expand && is_int_const(grad->src(0)->dim(last), 1);
  Tensor seen;
  if (layers_equal) {
    const Tensor one = b.tensor(grad).index({kEllipsis, 0});
    seen = one.window(axis, size, b.n->int_arg(2), b.n->int_arg(3));
  } else {
    const Tensor all = b.tensor(grad).window(axis, size, b.n->int_arg(2), b.n->int_arg(3));
    const Tensor k = Tensor::arange(Dim(size));
    seen = (k.unsqueeze(1) == k.unsqueeze(0)).where(all, 0).sum(-2);
  }
  // More windows may fit than there were.
  std::vector<DimPair> kept;
  for (NodeRef d : b.n->src(0)->shape->span()) kept.emplace_back(0, Dim(d));
  b.give(0, seen.shrink(kept));
}

void cat(Backward& b) {
  const auto axis = static_cast<size_t>(b.n->int_arg(0));
  NodeRef grad = b.grad.node(), at = b.g.index(0);
  const AxisList steps(b.n->rank(), 1);
  for (size_t i = 0; i < b.n->nsrc; ++i) {
    Extents begin(b.n->rank(), b.g.index(0));
    begin[axis] = at;
    at = b.g.add(at, b.n->src(i)->dim(axis));
    if (!b.wants(i)) continue;
    b.give(i, b.tensor(build::shrink(b.g, grad, begin, b.n->src(i)->shape->span(), steps)));
  }
}

// ---- data-dependent movement

Tensor zeros_like(const Backward& b, NodeRef node) {
  return b.tensor(
      build::broadcast_to(b.g, build::scalar(b.g, node->dtype, 0), node->shape->span()));
}

Tensor gathered(const Backward& b, const Tensor& x, int64_t axis) {
  const NodeRef src[] = {x.node(), b.n->src(1)};
  return b.tensor(b.g.make({Op::Gather, x.dtype(), src, {&axis, 1}}));
}

Tensor scattered(const Backward& b, const Tensor& base, const Tensor& src, Fold combine) {
  const NodeRef sources[] = {base.node(), b.n->src(1), src.node()};
  const int64_t ints[] = {b.n->int_arg(0), static_cast<int64_t>(combine), 0};
  return b.tensor(b.g.make({Op::Scatter, base.dtype(), sources, ints}));
}

/// Whether one element of each row along the axis is read.
bool reads_one_of_each(NodeRef gather) {
  const auto axis = static_cast<size_t>(gather->int_arg(0));
  for (size_t i = 0; i < gather->rank(); ++i)
    if (i == axis ? !is_int_const(gather->dim(i), 1) : gather->dim(i) != gather->src(0)->dim(i))
      return false;
  return true;
}

/// The gradient of one element of each row is a comparison with every place, which is computed
/// where it is used; zeros to scatter into would have to lie in memory.
Tensor where_read(const Backward& b) {
  NodeRef x = b.n->src(0), index = b.n->src(1);
  NodeRef at = build::positions(b.g, x->shape->span(), b.n->int_arg(0));
  const DType wide = bits(index->dtype) > 32 ? DType::I64 : at->dtype;
  const Tensor read = b.tensor(b.g.cast(index, wide)) == b.tensor(b.g.cast(at, wide));
  return read.where(b.grad, b.tensor(build::scalar(b.g, b.grad.dtype(), 0)));
}

void gather(Backward& b) {
  b.give(0, reads_one_of_each(b.n) ? where_read(b)
                                   : scattered(b, zeros_like(b, b.n->src(0)), b.grad, Fold::Add));
}

void scatter_set(Backward& b, int64_t axis) {
  const Tensor nothing = zeros_like(b, b.n->src(2));
  if (b.wants(0)) b.give(0, scattered(b, b.grad, nothing, Fold::Set));
  if (!b.wants(2)) return;
  const Tensor back = gathered(b, b.grad, axis);
  if (b.n->int_arg(2) != 0) return b.give(2, back);
  // Where several elements met, only the last was kept: find it by scattering positions.
  NodeRef at = build::positions(b.g, nothing.node()->shape->span(), axis);
  const Tensor position = b.tensor(at);
  const Tensor none = b.tensor(
      build::broadcast_to(b.g, b.g.constant(Value::of(at->dtype, -1)), b.n->shape->span()));
  const Tensor winner = scattered(b, none, position, Fold::Set);
  b.give(2, (gathered(b, winner, axis) == position).where(back, 0));
}

void scatter_extreme(Backward& b, int64_t axis) {
  const Tensor base_has = b.x(0) == b.y(), src_has = gathered(b, b.y(), axis) == b.x(2);
  const DType wide = sum_dtype(b.n->dtype);
  const Tensor count = scattered(b, base_has.cast(wide), src_has.cast(wide), Fold::Add);
  const Tensor share = (b.grad.cast(wide) / count).cast(b.n->dtype);
  if (b.wants(0)) b.give(0, base_has.where(share, 0));
  if (b.wants(2)) b.give(2, src_has.where(gathered(b, share, axis), 0));
}

/// What else is multiplied where each element of a scattered source goes. Zeros are left out of the
/// product that is divided, and come back by their number: one other zero as itself, which has a
/// derivative, more as 0.
Tensor product_of_others(const Backward& b, int64_t axis) {
  const Tensor src = b.x(2), zero = src == 0, divisor = zero.where(1, src);
  const Tensor counted = zero.cast(DType::I32), nothing = zeros_like(b, b.n->src(0));
  const Tensor product = scattered(b, b.x(0), divisor, Fold::Mul);
  const Tensor zeros = scattered(b, nothing.cast(DType::I32), counted, Fold::Add);
  const Tensor sum = scattered(b, nothing, zero.where(src, 0), Fold::Add);
  const Tensor more = gathered(b, zeros, axis) - counted;
  const Tensor other = gathered(b, sum, axis) - zero.where(src, 0);
  return gathered(b, product, axis) / divisor * (more == 0).where(1, (more == 1).where(other, 0));
}

void scatter_product(Backward& b, int64_t axis) {
  const Tensor factor = scattered(b, zeros_like(b, b.n->src(0)) + 1, b.x(2), Fold::Mul);
  if (b.wants(0)) b.give(0, b.grad * factor);
  if (b.wants(2)) b.give(2, gathered(b, b.grad, axis) * product_of_others(b, axis));
}

void scatter(Backward& b) {
  const int64_t axis = b.n->int_arg(0);
  switch (static_cast<Fold>(b.n->int_arg(1))) {
    case Fold::Set: return scatter_set(b, axis);
    case Fold::Max:
    case Fold::Min: return scatter_extreme(b, axis);
    case Fold::Mul: return scatter_product(b, axis);
    default: break;
  }
  b.give(0, b.grad);
  if (b.wants(2)) b.give(2, gathered(b, b.grad, axis));
}

void assign(Backward& b) {
  NodeRef grad = b.grad.node();
  NodeRef view = rebase(b.g, b.n->src(1), b.n->src(0), grad);
  if (b.wants(2)) b.give(2, b.tensor(view));
  if (!b.wants(0)) return;
  NodeRef zeros = build::broadcast_to(b.g, build::scalar(b.g, grad->dtype, 0), view->shape->span());
  b.give(0, b.tensor(b.g.make(Op::Assign, grad->dtype, {grad, view, zeros})));
}

// ---- folds

/// A reduced tensor with its axes back as 1, ready to broadcast over the source.
Tensor with_axes(const Backward& b, const Tensor& reduced) {
  Extents dims = build::extents(b.n->src(0));
  for (const int64_t a : reduce_axes(b.n)) dims[static_cast<size_t>(a)] = b.g.index(1);
  return b.tensor(build::reshape(b.g, reduced.node(), dims));
}

Tensor over_source(const Backward& b, const Tensor& kept) {
  return b.tensor(build::expand(b.g, kept.node(), b.n->src(0)->shape->span()));
}

/// The product of all other elements along the last axis: exact where some are 0.
Tensor product_of_others(const Tensor& x) {
  const auto last = static_cast<int64_t>(x.ndim()) - 1;
  const Tensor before = delayed(x, last, 1).cumprod(last);
  const Tensor after = delayed(x.flip(last), last, 1).cumprod(last).flip(last);
  return before * after;
}

void reduce_product(Backward& b) {
  const Tensor x = b.x(0);
  Ints order, back = Ints::filled(x.ndim());
  const auto axes = reduce_axes(b.n);
  for (size_t i = 0; i < x.ndim(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
      order.push_back(static_cast<int64_t>(i));
  const auto kept = static_cast<int64_t>(order.size());
  for (const int64_t a : axes) order.push_back(a);
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const Tensor moved = x.permute(order);
  const Tensor others = product_of_others(moved.flatten(kept, -1)).reshape(moved.dims());
  b.give(0, over_source(b, with_axes(b, b.grad)) * others.permute(back));
}

void reduce(Backward& b) {
  switch (fold_of(b.n)) {
    case Fold::Add: return b.give(0, over_source(b, with_axes(b, b.grad)));
    case Fold::Mul: return reduce_product(b);
    default: break;
  }
  // Largest or smallest: shared evenly by all that are it.
  // Counted in what sums run in: bf16 ends counting at 256.
  const DType wide = sum_dtype(b.n->dtype);
  const Tensor hit = (b.x(0) == with_axes(b, b.y())).cast(wide);
  const Tensor count = b.tensor(build::reduce(b.g, hit.node(), Fold::Add, reduce_axes(b.n)));
  b.give(0, (hit * with_axes(b, b.grad.cast(wide) / count)).cast(b.n->dtype));
}

Tensor recurrence(const Backward& b, const Tensor& a, const Tensor& c, int64_t axis) {
  return b.tensor(build::linear_recurrence(b.g, a.node(), c.node(), axis));
}

void scan(Backward& b) {
  const int64_t axis = b.n->int_arg(1);
  const Tensor g = b.grad.flip(axis);
  switch (fold_of(b.n)) {
    case Fold::Add: return b.give(0, g.cumsum(axis).flip(axis));
    case Fold::Mul: {
      // y_k = y_{k-1} x_k: r_k = g_k + x_{k+1} r_{k+1}, and x_k gets y_{k-1} r_k.
      const Tensor next = delayed(b.x(0).flip(axis), axis, 0);
      return b.give(0, delayed(b.y(), axis, 1) * recurrence(b, next, g, axis).flip(axis));
    }
    default: break;
  }
  const bool largest = fold_of(b.n) == Fold::Max;
  NodeRef at = build::extreme(b.g, b.n->src(0), axis, largest, true).position;
  b.give(0, zeros_like(b, b.n->src(0)).scatter(axis, b.tensor(at), b.grad, Fold::Add));
}

// ---- the table

struct GradientRow {
  Op op;
  GradientRule rule;
};

// Ops that are not listed pass nothing on: comparisons, integers, Bitcast, Detach.
constexpr GradientRow kGradients[] = {
#define WEFT_FUNCTION(id, Name, ...) {Op::Name, function_##Name},
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
    {Op::Neg, neg},
    {Op::Cast, cast},
    {Op::Rint, trunc},
    {Op::Trunc, trunc},
    {Op::Add, add},
    {Op::Mul, mul},
    {Op::Div, divide},
    {Op::Rem, remainder},
    {Op::Where, where},
    {Op::MulAcc, mulacc},
    {Op::MulAdd, mulacc},
    {Op::Reshape, reshape},
    {Op::Expand, expand},
    {Op::Permute, permute},
    {Op::Pad, pad},
    {Op::Shrink, shrink},
    {Op::Flip, flip},
    {Op::Window, window},
    {Op::Unwindow, unwindow},
    {Op::Cat, cat},
    {Op::Gather, gather},
    {Op::Scatter, scatter},
    {Op::Assign, assign},
    {Op::Reduce, reduce},
    {Op::Scan, scan},
    {Op::Loop, loop_gradient},
    {Op::Contiguous, same},
    {Op::Copy, copy},
    {Op::Function, function_gradient},
    {Op::Repeat, repeat_gradient},
    {Op::Call, call_gradient},
    {Op::Custom, custom_gradient},
};

constexpr std::array<GradientRule, 256> by_op() {
  std::array<GradientRule, 256> table{};
  for (const GradientRow& row : kGradients) table[static_cast<size_t>(row.op)] = row.rule;
  return table;
}
constexpr auto kByOp = by_op();

}  // namespace

GradientRule gradient_rule(Op op) { return kByOp[static_cast<size_t>(op)]; }

}  // namespace weft
