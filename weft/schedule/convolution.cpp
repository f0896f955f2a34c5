#include "weft/schedule/convolution.h"

#include "weft/graph/loops.h"
#include "weft/schedule/axes.h"

namespace weft {
namespace {

bool is_window(NodeRef n, int64_t axis) { return n->op == Op::Window && n->int_arg(0) == axis; }

Taps taps_of(NodeRef window) {
  return {window->int_arg(1), window->int_arg(2), window->int_arg(3)};
}

/// As conv2d multiplies them: (images, 1, out, in, rows, columns, taps, taps), where each factor is
/// broadcast along what it does not have.
bool find_factors(Graph& g, NodeRef image, NodeRef weight, Convolution& out) {
  if (image->op != Op::Expand || weight->op != Op::Expand) return false;
  image = image->src(0), weight = weight->src(0);
  if (image->op != Op::Reshape || !is_window(image->src(0), 3)) return false;
  NodeRef windows = image->src(0), rows = windows->src(0);
  if (!is_window(rows, 2) || windows->rank() != 6) return false;
  for (const size_t a : {0, 1, 4, 5})
    if (!is_int_const(weight->dim(a), 1)) return false;
  const auto size = [&](size_t axis) { return windows->dim(axis)->vmin; };
  out = {rows->src(0), nullptr, size(0),       size(1),         weight->dim(2)->vmin,
         size(2),      size(3), taps_of(rows), taps_of(windows)};
  const int64_t dims[] = {out.images,     1, 1, out.in, out.rows, out.columns, out.down.count,
                          out.along.count};
  for (size_t a = 0; a < std::size(dims); ++a)
    if (!is_int_const(image->dim(a), dims[a])) return false;
  const NodeRef shape[] = {weight->dim(2), weight->dim(3), weight->dim(6), weight->dim(7)};
  out.weight = reshaped(g, weight, shape);
  return is_int_const(weight->dim(3), out.in);
}

}  // namespace

bool find_convolution(Graph& g, NodeRef sum, Convolution& out) {
  NodeRef x = sum->src(0);
  constexpr int64_t kSummed[] = {3, 6, 7};
  if (fold_of(sum) != Fold::Add || x->op != Op::Mul || x->dtype != DType::F32 || x->rank() != 8 ||
      !is_static(x) || !std::ranges::equal(reduce_axes(sum), kSummed))
    return false;
  return find_factors(g, x->src(0), x->src(1), out) || find_factors(g, x->src(1), x->src(0), out);
}

}  // namespace weft
