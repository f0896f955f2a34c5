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

// Products have axes (images, 1, out, in, planes, rows, columns, taps, taps, taps), as conv2d
// multiplies them; without planes and rows and their taps, which are one each then, where images
// have two axes or one.
using Dims = std::array<int64_t, 10>;
constexpr size_t kPlanes = 4, kRows = 5, kColumns = 6, kTaps = 7;

/// How many axes of an image windows slide along.
size_t axes_of(NodeRef product) { return (product->rank() - 4) / 2; }
bool is_product_of_windows(NodeRef n) {
  return n->rank() == 6 || n->rank() == 8 || n->rank() == std::tuple_size_v<Dims>;
}
bool has_axis(NodeRef product, size_t axis) {
  const size_t missing = 3 - axes_of(product);
  return axis < kPlanes || (axis < kTaps ? axis - kPlanes : axis - kTaps) >= missing;
}

/// Where a product has that axis.
size_t axis_of(NodeRef product, size_t axis) {
  const size_t missing = 3 - axes_of(product);
  return axis < kPlanes ? axis : axis - missing * (axis < kTaps ? 1 : 2);
}
int64_t size_of(NodeRef product, size_t axis) {
  return has_axis(product, axis) ? product->dim(axis_of(product, axis))->vmin : 1;
}

bool has_dims(NodeRef n, const Dims& dims) {
  if (!is_product_of_windows(n)) return false;
  for (size_t a = 0; a < dims.size(); ++a)
    if (size_of(n, a) != dims[a]) return false;
  return true;
}

/// Of two axes where images of one or two have windows; of three with planes.
std::vector<NodeRef> image_dims(Graph& g, NodeRef product, std::array<int64_t, 5> sizes) {
  std::vector<NodeRef> dims;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (i != 2 || axes_of(product) == 3) dims.push_back(g.index(sizes[i]));
  return dims;
}

/// A factor of these dims that is broadcast along others, with five of its axes, or four; else
/// null.
NodeRef broadcast_factor(Graph& g, NodeRef factor, const Dims& dims,
                         const std::array<size_t, 5>& axes) {
  if (factor->op != Op::Expand || !has_dims(factor->src(0), dims)) return nullptr;
  std::array<int64_t, 5> sizes{};
  for (size_t i = 0; i < axes.size(); ++i) sizes[i] = dims[axes[i]];
  return reshaped(g, factor->src(0), image_dims(g, factor, sizes));
}

/// The image in front of windows, a row of places where it has one axis of them.
NodeRef with_rows(Graph& g, NodeRef image) {
  return image->rank() > 3 ? image : with_axis(g, image, 2, {1}, 0);
}

/// The windows of an image, broadcast along outputs.
bool find_windows(Graph& g, NodeRef factor, Convolution& out) {
  if (factor->op != Op::Expand || factor->src(0)->op != Op::Reshape) return false;
  NodeRef x = factor->src(0), windows = x->src(0), image = windows;
  const size_t axes = axes_of(factor);
  if (windows->rank() != 2 + 2 * axes) return false;
  std::array<Taps, 3> taps{};
  for (size_t i = axes; i-- > 0; image = image->src(0)) {
    if (!is_window(image, static_cast<int64_t>(2 + i))) return false;
    taps[3 - axes + i] = taps_of(image);
  }
  out.image = with_rows(g, image);
  out.across = taps[0], out.down = taps[1], out.along = taps[2];
  out.images = size_of(x, 0), out.in = size_of(x, 3), out.out = size_of(factor, 2);
  out.planes = size_of(x, kPlanes), out.rows = size_of(x, kRows),
  out.columns = size_of(x, kColumns);
  return windows->dim(0)->vmin == out.images && windows->dim(1)->vmin == out.in &&
         has_dims(x, {out.images, 1, 1, out.in, out.planes, out.rows, out.columns, out.across.count,
                      out.down.count, out.along.count});
}

/// What is summed, where it is a product of f32, along these axes; else null.
NodeRef summed_product(NodeRef sum, std::initializer_list<size_t> axes) {
  NodeRef x = sum->op == Op::Reduce && fold_of(sum) == Fold::Add ? sum->src(0) : nullptr;
  if (!x || x->op != Op::Mul || x->dtype != DType::F32 || !is_static(x) ||
      !is_product_of_windows(x))
    return nullptr;
  std::vector<int64_t> wanted;
  for (const size_t a : axes)
    if (has_axis(x, a)) wanted.push_back(static_cast<int64_t>(axis_of(x, a)));
  return std::ranges::equal(reduce_axes(sum), wanted) ? x : nullptr;
}

/// A convolution without groups.
bool find_convolution(Graph& g, NodeRef sum, Convolution& out) {
  NodeRef x = summed_product(sum, {3, kTaps, kTaps + 1, kTaps + 2});
  for (const size_t i : {0, 1}) {
    if (!x || !find_windows(g, x->src(i), out)) continue;
    out.weight = broadcast_factor(
        g, x->src(1 - i),
        {1, 1, out.out, out.in, 1, 1, 1, out.across.count, out.down.count, out.along.count},
        {2, 3, kTaps, kTaps + 1, kTaps + 2});
    if (out.weight) return true;
  }
  return false;
}

/// The gradient of its weights, whose place what comes from above has.
bool find_gradient_of_weights(Graph& g, NodeRef sum, Convolution& out) {
  NodeRef all = summed_product(sum, {0, kPlanes, kRows, kColumns}),
          x = all ? all : summed_product(sum, {kPlanes, kRows, kColumns});
  for (const size_t i : {0, 1}) {
    if (!x || !find_windows(g, x->src(i), out) || (x != all && out.images > 1)) continue;
    out.weight = broadcast_factor(
        g, x->src(1 - i), {out.images, 1, out.out, 1, out.planes, out.rows, out.columns, 1, 1, 1},
        {0, 2, kPlanes, kRows, kColumns});
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
  if (n->rank() < 3 || n->rank() > 5) return nullptr;
  const size_t axes = n->rank() - 2;
  std::array<Taps, 3> taps{};
  NodeRef x = n;
  for (size_t i = 0; x && i < axes; ++i)
    x = spread_along(x, static_cast<int64_t>(2 + i), taps[3 - axes + i]);
  if (!x || x->op != Op::Reshape || x->rank() != 2 + 2 * axes) return nullptr;
  NodeRef sum = x->src(0), product = summed_product(sum, {2});
  if (!product || axes_of(product) != axes) return nullptr;
  for (size_t a = 0; a < x->rank(); ++a)
    if (x->dim(a) != sum->dim(a == 0 ? 0 : a + 1)) return nullptr;
  out.across = taps[0], out.down = taps[1], out.along = taps[2];
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

/// What comes from above with zeros around and, by steps, between. Of three axes the last ones are
/// there.
NodeRef with_zeros(Graph& g, NodeRef above, const std::array<Zeros, 3>& zeros,
                   const std::array<int64_t, 3>& steps) {
  const size_t rank = above->rank(), first = 5 - rank;
  std::vector<NodeRef> src{above};
  for (const bool after : {false, true})
    for (size_t d = 0; d < rank; ++d) {
      const Zeros z = d < 2 ? Zeros{} : zeros[first + d - 2];
      src.push_back(g.index(after ? z.after : z.before));
    }
  std::vector<int64_t> between(rank, 0);
  for (size_t d = 2; d < rank; ++d) between[d] = steps[first + d - 2] - 1;
  return g.make({Op::Pad, above->dtype, src, between});
}

/// (in, out, taps) as (out, in, taps), the last of these first.
NodeRef turned_around(Graph& g, NodeRef weight) {
  std::vector<int64_t> taps;
  for (size_t a = 2; a < weight->rank(); ++a) taps.push_back(static_cast<int64_t>(a));
  const NodeRef src[] = {moved_axis(g, weight, 1, 0)};
  return g.make({Op::Flip, weight->dtype, src, taps});
}

/// The gradient of an image as the convolution that it is: of what comes from above with zeros
/// around and between, by the weights turned around. `copies`: what values are by now.
bool find_gradient(Graph& g, NodeRef n, const NodeMap<NodeRef>& copies, Convolution& out) {
  NodeRef gradient = n->op == Op::Shrink ? n->src(0) : n;
  NodeRef product = product_of_gradient(gradient, out);
  if (!product || n->dim(0) != gradient->dim(0) || n->dim(1) != gradient->dim(1)) return false;
  const auto size = [&](size_t axis) { return size_of(product, axis); };
  const Taps* taps[] = {&out.across, &out.down, &out.along};
  std::array<Zeros, 3> zeros{};
  for (size_t i = 0; i < zeros.size(); ++i)
    if (has_axis(product, kPlanes + i) &&
        !find_zeros(n, gradient, n->rank() + i - 3, size(kPlanes + i), *taps[i], zeros[i]))
      return false;
  for (const size_t i : {0, 1}) {
    NodeRef above = product->src(i), weight = product->src(1 - i);
    if (above->op != Op::Expand || weight->op != Op::Expand) return false;
    above = above->src(0), weight = weight->src(0);
    if (!has_dims(above,
                  {size(0), 1, size(2), 1, size(kPlanes), size(kRows), size(kColumns), 1, 1, 1}) ||
        !has_dims(weight,
                  {1, 1, size(2), size(3), 1, 1, 1, size(kTaps), size(kTaps + 1), size(kTaps + 2)}))
      continue;
    out.image = with_zeros(
        g,
        reshaped(
            g, copies.at(above),
            image_dims(g, product, {size(0), size(2), size(kPlanes), size(kRows), size(kColumns)})),
        zeros, {out.across.stride, out.down.stride, out.along.stride});
    out.weight = turned_around(
        g, reshaped(g, copies.at(weight),
                    image_dims(g, product,
                               {size(2), size(3), size(kTaps), size(kTaps + 1), size(kTaps + 2)})));
    out.is_spaced = out.across.stride > 1 || out.down.stride > 1 || out.along.stride > 1;
    out.images = size(0), out.in = size(2), out.out = size(3);
    const auto places = [&](size_t axis) {
      return has_axis(product, axis) ? n->dim(n->rank() + axis - kColumns - 1)->vmin : 1;
    };
    out.planes = places(kPlanes), out.rows = places(kRows), out.columns = places(kColumns);
    out.across.stride = out.down.stride = out.along.stride = 1;
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
