#include "weft/schedule/convolution.h"

#include <algorithm>
#include <array>

#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

bool is_window(NodeRef n, int64_t axis) { return n->op == Op::Window && n->int_arg(0) == axis; }

Taps taps_of(NodeRef window) {
  return {window->int_arg(1), window->int_arg(2), window->int_arg(3)};
}

bool has_dims(NodeRef n, std::initializer_list<int64_t> dims) {
  return std::ranges::equal(n->shape->span(), dims,
                            [](NodeRef d, int64_t size) { return is_int_const(d, size); });
}

/// The windows of an image as conv2d multiplies them: (images, 1, 1, in, rows, columns, taps,
/// taps), broadcast along outputs.
bool find_windows(NodeRef factor, Convolution& out) {
  if (factor->op != Op::Expand || factor->src(0)->op != Op::Reshape) return false;
  NodeRef x = factor->src(0), windows = x->src(0), rows = windows->src(0);
  if (!is_window(windows, 3) || !is_window(rows, 2) || windows->rank() != 6) return false;
  const auto size = [&](size_t axis) { return windows->dim(axis)->vmin; };
  out.image = rows->src(0), out.down = taps_of(rows), out.along = taps_of(windows);
  out.images = size(0), out.in = size(1), out.rows = size(2), out.columns = size(3);
  out.out = factor->dim(2)->vmin;
  return has_dims(
      x, {out.images, 1, 1, out.in, out.rows, out.columns, out.down.count, out.along.count});
}

/// A factor of these dims that is broadcast along others, with four axes; else null.
NodeRef broadcast_factor(Graph& g, NodeRef factor, std::initializer_list<int64_t> dims,
                         std::initializer_list<size_t> axes) {
  if (factor->op != Op::Expand || !has_dims(factor->src(0), dims)) return nullptr;
  std::vector<NodeRef> own;
  for (const size_t a : axes) own.push_back(factor->dim(a));
  return reshaped(g, factor->src(0), own);
}

/// What is summed, where it is a product of f32 as conv2d writes it, along these axes; else null.
NodeRef summed_product(NodeRef sum, std::initializer_list<int64_t> axes) {
  NodeRef x = sum->op == Op::Reduce && fold_of(sum) == Fold::Add ? sum->src(0) : nullptr;
  const bool found = x && x->op == Op::Mul && x->dtype == DType::F32 && x->rank() == 8 &&
                     is_static(x) && std::ranges::equal(reduce_axes(sum), axes);
  return found ? x : nullptr;
}

/// A convolution of two axes, without groups.
bool find_convolution(Graph& g, NodeRef sum, Convolution& out) {
  NodeRef x = summed_product(sum, {3, 6, 7});
  for (const size_t i : {0, 1}) {
    if (!x || !find_windows(x->src(i), out)) continue;
    out.weight = broadcast_factor(g, x->src(1 - i),
                                  {1, 1, out.out, out.in, 1, 1, out.down.count, out.along.count},
                                  {2, 3, 6, 7});
    if (out.weight) return true;
  }
  return false;
}

/// The gradient of its weights, whose place what comes from above has.
bool find_gradient_of_weights(Graph& g, NodeRef sum, Convolution& out) {
  NodeRef all = summed_product(sum, {0, 4, 5}), x = all ? all : summed_product(sum, {4, 5});
  for (const size_t i : {0, 1}) {
    if (!x || !find_windows(x->src(i), out) || (x != all && out.images > 1)) continue;
    out.weight = broadcast_factor(
        g, x->src(1 - i), {out.images, 1, out.out, 1, out.rows, out.columns, 1, 1}, {0, 2, 4, 5});
    if (out.weight) return true;
  }
  return false;
}

/// What a sum over the places of a window adds up, where it is the gradient of one along `axis`;
/// else null.
NodeRef spread_along(NodeRef n, int64_t axis, Taps& taps) {
  if (n->op != Op::Reduce || fold_of(n) != Fold::Add) return nullptr;
  NodeRef x = n->src(0);
  const int64_t last[] = {static_cast<int64_t>(x->rank()) - 1};
  if (x->op != Op::Unwindow || x->int_arg(0) != axis || !std::ranges::equal(reduce_axes(n), last))
    return nullptr;
  taps = taps_of(x);
  return x->src(0);
}

/// The product of what comes from above with the weights, (images, 1, above, in, rows, columns,
/// taps, taps), of which the gradient of an image is sums; else null.
NodeRef product_of_gradient(NodeRef n, Convolution& out) {
  NodeRef x = spread_along(n, 2, out.down);
  if (x) x = spread_along(x, 3, out.along);
  if (!x || x->op != Op::Reshape || x->rank() != 6) return nullptr;
  NodeRef sum = x->src(0), product = summed_product(sum, {2});
  for (const size_t a : {0, 1, 2, 3})
    if (!product || x->dim(a) != sum->dim(a == 0 ? 0 : a + 1)) return nullptr;
  return product;
}

/// Zeros before and after rows and columns of what comes from above, so that windows around them
/// are as many as `n` has: it may leave out some of the gradient's border, as that of a padded
/// image does.
bool find_zeros(NodeRef n, NodeRef gradient, NodeRef product, const Convolution& c,
                std::array<int64_t, 4>& out) {
  for (const size_t a : {2, 3}) {
    const bool whole = n == gradient;
    if (!whole && (n->int_arg(a) != 1 || n->src(1 + a)->op != Op::Const)) return false;
    const Taps& taps = a == 2 ? c.down : c.along;
    const int64_t begin = whole ? 0 : n->src(1 + a)->vmin;
    const int64_t spread = (product->dim(a + 2)->vmin - 1) * taps.stride + 1;
    out[a - 2] = taps.reach() - begin;
    out[a] = begin + n->dim(a)->vmin - spread;
    if (out[a - 2] < 0 || out[a] < 0) return false;
  }
  return n == gradient || (n->dim(0) == gradient->dim(0) && n->dim(1) == gradient->dim(1));
}

/// The gradient of an image as the convolution that it is: of what comes from above with zeros
/// around and between, by the weights turned around. `copies`: what values are by now.
bool find_gradient(Graph& g, NodeRef n, const NodeMap<NodeRef>& copies, Convolution& out) {
  NodeRef gradient = n->op == Op::Shrink ? n->src(0) : n;
  NodeRef product = product_of_gradient(gradient, out);
  std::array<int64_t, 4> zeros{};
  if (!product || !find_zeros(n, gradient, product, out, zeros)) return false;
  const auto size = [&](size_t axis) { return product->dim(axis)->vmin; };
  for (const size_t i : {0, 1}) {
    NodeRef above = product->src(i), weight = product->src(1 - i);
    if (above->op != Op::Expand || weight->op != Op::Expand) return false;
    above = above->src(0), weight = weight->src(0);
    if (!has_dims(above, {size(0), 1, size(2), 1, size(4), size(5), 1, 1}) ||
        !has_dims(weight, {1, 1, size(2), size(3), 1, 1, size(6), size(7)}))
      continue;
    NodeRef image[] = {above->dim(0), above->dim(2), above->dim(4), above->dim(5)};
    NodeRef taps[] = {weight->dim(2), weight->dim(3), weight->dim(6), weight->dim(7)};
    std::vector<NodeRef> src{reshaped(g, copies.at(above), image)};
    for (const size_t side : {0, 2})
      for (const int64_t count : {int64_t{0}, int64_t{0}, zeros[side], zeros[side + 1]})
        src.push_back(g.index(count));
    const int64_t between[] = {0, 0, out.down.stride - 1, out.along.stride - 1}, both[] = {2, 3};
    NodeRef turned[] = {moved_axis(g, reshaped(g, copies.at(weight), taps), 1, 0)};
    out.image = g.make({Op::Pad, above->dtype, src, between});
    out.weight = g.make({Op::Flip, weight->dtype, turned, both});
    out.images = size(0), out.in = size(2), out.out = size(3);
    out.rows = n->dim(2)->vmin, out.columns = n->dim(3)->vmin;
    out.is_spaced = out.down.stride > 1 || out.along.stride > 1;
    out.down.stride = out.along.stride = 1;
    return true;
  }
  return false;
}

NodeRef in_fewer_steps(Graph& g, const Convolution& c, NodeRef like, const Target& target,
                       const ConstantValues& constants) {
  NodeRef made = by_tiles(g, c, like, target);
  return made ? made : by_winograd(g, c, like, target, constants);
}

}  // namespace

NodeRef window(Graph& g, NodeRef x, int64_t axis, const Taps& t) {
  return g.make(Op::Window, x->dtype, {x}, {axis, t.count, t.stride, t.dilation});
}

NodeRef fast_convolution(Graph& g, NodeRef sum, const Target& target,
                         const ConstantValues& constants) {
  Convolution c;
  if (find_convolution(g, sum, c)) return in_fewer_steps(g, c, sum, target, constants);
  return find_gradient_of_weights(g, sum, c) ? weight_gradient_by_tiles(g, c, sum, target)
                                             : nullptr;
}

NodeRef fast_gradient_of_image(Graph& g, NodeRef n, const Target& target,
                               const ConstantValues& constants, const NodeMap<NodeRef>& copies) {
  Convolution c;
  return find_gradient(g, n, copies, c) ? in_fewer_steps(g, c, n, target, constants) : nullptr;
}

NodeMap<bool> spread_sums(const Toposort& order) {
  NodeMap<bool> found;
  for (NodeRef n : order)
    if (n->op == Op::Unwindow) found[moved(n->src(0))] = true;
  return found;
}

}  // namespace weft
