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

// Products have axes (images, 1, out, in, rows, columns, taps, taps), as conv2d multiplies them;
// without rows and their taps, which are one each then, where images have one axis.
using Dims = std::array<int64_t, 8>;
constexpr size_t kRows = 4, kTapsOfRows = 6;

bool has_rows(NodeRef product) { return product->rank() == std::tuple_size_v<Dims>; }

/// Where a product has that axis.
size_t axis_of(NodeRef product, size_t axis) {
  return axis - (has_rows(product) ? 0 : (axis > kRows) + (axis > kTapsOfRows));
}
int64_t size_of(NodeRef product, size_t axis) {
  const bool there = has_rows(product) || (axis != kRows && axis != kTapsOfRows);
  return there ? product->dim(axis_of(product, axis))->vmin : 1;
}

bool has_dims(NodeRef n, const Dims& dims) {
  if (n->rank() != 6 && n->rank() != 8) return false;
  for (size_t a = 0; a < dims.size(); ++a)
    if (size_of(n, a) != dims[a]) return false;
  return true;
}

/// A factor of these dims that is broadcast along others, with four of its axes; else null.
NodeRef broadcast_factor(Graph& g, NodeRef factor, const Dims& dims,
                         std::initializer_list<size_t> axes) {
  if (factor->op != Op::Expand || !has_dims(factor->src(0), dims)) return nullptr;
  std::vector<NodeRef> own;
  for (const size_t a : axes) own.push_back(g.index(dims[a]));
  return reshaped(g, factor->src(0), own);
}

/// The image in front of windows, a row of places where it has one axis of them.
NodeRef with_rows(Graph& g, NodeRef image) {
  return image->rank() == 4 ? image : with_axis(g, image, 2, {1}, 0);
}

/// The windows of an image, broadcast along outputs.
bool find_windows(Graph& g, NodeRef factor, Convolution& out) {
  if (factor->op != Op::Expand || factor->src(0)->op != Op::Reshape) return false;
  NodeRef x = factor->src(0), columns = x->src(0), rows = columns;
  const bool two = has_rows(factor);
  if (!is_window(columns, two ? 3 : 2) || columns->rank() != (two ? 6 : 4)) return false;
  if (two) rows = columns->src(0);
  if (two && !is_window(rows, 2)) return false;
  out.image = with_rows(g, rows->src(0));
  out.down = two ? taps_of(rows) : Taps{}, out.along = taps_of(columns);
  out.images = size_of(x, 0), out.in = size_of(x, 3), out.out = size_of(factor, 2);
  out.rows = size_of(x, kRows), out.columns = size_of(x, 5);
  return columns->dim(0)->vmin == out.images && columns->dim(1)->vmin == out.in &&
         has_dims(
             x, {out.images, 1, 1, out.in, out.rows, out.columns, out.down.count, out.along.count});
}

/// What is summed, where it is a product of f32, along these axes; else null.
NodeRef summed_product(NodeRef sum, std::initializer_list<size_t> axes) {
  NodeRef x = sum->op == Op::Reduce && fold_of(sum) == Fold::Add ? sum->src(0) : nullptr;
  if (!x || x->op != Op::Mul || x->dtype != DType::F32 || !is_static(x) ||
      (x->rank() != 6 && x->rank() != 8))
    return nullptr;
  std::vector<int64_t> wanted;
  for (const size_t a : axes)
    if (has_rows(x) || (a != kRows && a != kTapsOfRows))
      wanted.push_back(static_cast<int64_t>(axis_of(x, a)));
  return std::ranges::equal(reduce_axes(sum), wanted) ? x : nullptr;
}

/// A convolution without groups.
bool find_convolution(Graph& g, NodeRef sum, Convolution& out) {
  NodeRef x = summed_product(sum, {3, 6, 7});
  for (const size_t i : {0, 1}) {
    if (!x || !find_windows(g, x->src(i), out)) continue;
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
    if (!x || !find_windows(g, x->src(i), out) || (x != all && out.images > 1)) continue;
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

/// The product of what comes from above with the weights, of which the gradient of an image is sums
/// over taps; else null.
NodeRef product_of_gradient(NodeRef n, Convolution& out) {
  const bool two = n->rank() == 4;
  out.down = {};
  NodeRef x = two ? spread_along(n, 2, out.down) : n->rank() == 3 ? n : nullptr;
  if (x) x = spread_along(x, two ? 3 : 2, out.along);
  if (!x || x->op != Op::Reshape || x->rank() != (two ? 6 : 4)) return nullptr;
  NodeRef sum = x->src(0), product = summed_product(sum, {2});
  if (!product || has_rows(product) != two) return nullptr;
  for (size_t a = 0; a < x->rank(); ++a)
    if (x->dim(a) != sum->dim(a == 0 ? 0 : a + 1)) return nullptr;
  return product;
}

/// Zeros before and after what comes from above, along rows or columns, so that windows around it
/// are as many as `n` has: it may leave out some of the gradient's border, as that of a padded
/// image does.
struct Zeros {
  int64_t before = 0, after = 0;
};
bool find_zeros(NodeRef n, NodeRef gradient, size_t axis, int64_t above, const Taps& taps,
                Zeros& out) {
  const bool whole = n == gradient;
  if (!whole && (n->int_arg(axis) != 1 || n->src(1 + axis)->op != Op::Const)) return false;
  const int64_t begin = whole ? 0 : n->src(1 + axis)->vmin;
  out.before = taps.reach() - begin;
  out.after = begin + n->dim(axis)->vmin - (above - 1) * taps.stride - 1;
  return out.before >= 0 && out.after >= 0;
}

/// The gradient of an image as the convolution that it is: of what comes from above with zeros
/// around and between, by the weights turned around. `copies`: what values are by now.
bool find_gradient(Graph& g, NodeRef n, const NodeMap<NodeRef>& copies, Convolution& out) {
  NodeRef gradient = n->op == Op::Shrink ? n->src(0) : n;
  NodeRef product = product_of_gradient(gradient, out);
  if (!product || n->dim(0) != gradient->dim(0) || n->dim(1) != gradient->dim(1)) return false;
  const auto size = [&](size_t axis) { return size_of(product, axis); };
  Zeros rows{}, columns{};
  if ((has_rows(product) && !find_zeros(n, gradient, 2, size(kRows), out.down, rows)) ||
      !find_zeros(n, gradient, n->rank() - 1, size(5), out.along, columns))
    return false;
  for (const size_t i : {0, 1}) {
    NodeRef above = product->src(i), weight = product->src(1 - i);
    if (above->op != Op::Expand || weight->op != Op::Expand) return false;
    above = above->src(0), weight = weight->src(0);
    if (!has_dims(above, {size(0), 1, size(2), 1, size(4), size(5), 1, 1}) ||
        !has_dims(weight, {1, 1, size(2), size(3), 1, 1, size(6), size(7)}))
      continue;
    const NodeRef image[] = {g.index(size(0)), g.index(size(2)), g.index(size(4)),
                             g.index(size(5))};
    const NodeRef taps[] = {g.index(size(2)), g.index(size(3)), g.index(size(6)), g.index(size(7))};
    std::vector<NodeRef> src{reshaped(g, copies.at(above), image)};
    for (const int64_t count : {int64_t{0}, int64_t{0}, rows.before, columns.before, int64_t{0},
                                int64_t{0}, rows.after, columns.after})
      src.push_back(g.index(count));
    const int64_t between[] = {0, 0, out.down.stride - 1, out.along.stride - 1}, both[] = {2, 3};
    const NodeRef turned[] = {moved_axis(g, reshaped(g, copies.at(weight), taps), 1, 0)};
    out.image = g.make({Op::Pad, above->dtype, src, between});
    out.weight = g.make({Op::Flip, weight->dtype, turned, both});
    out.images = size(0), out.in = size(2), out.out = size(3);
    out.rows = has_rows(product) ? n->dim(2)->vmin : 1, out.columns = n->dim(n->rank() - 1)->vmin;
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
