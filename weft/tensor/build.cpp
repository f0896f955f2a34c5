#include "weft/tensor/build.h"

#include <algorithm>

#include "weft/base/checked.h"
#include "weft/base/error.h"

namespace weft::build {

namespace {

// Bytes and offsets of anything smaller fit in 64 bits; as in the verifier.
constexpr int64_t kMostElements = int64_t{1} << 56;

/// Elements are counted before there is a node that claims to have them.
void check_elements(Op op, std::span<const NodeRef> dims) {
  int64_t count = 1;
  for (NodeRef d : dims)
    if (d->op != Op::Const || d->vmin == 0) return;
  for (NodeRef d : dims) {
    const auto product = checked_mul(count, d->vmin);
    if (!product || *product > kMostElements) {
      std::string text;
      for (NodeRef n : dims) append_format(text, "{}{}", text.empty() ? "" : ", ", n->vmin);
      fail(info(op).mnemonic,
           "({}) has more than {} elements, which no machine holds: use smaller "
           "sizes",
           text, kMostElements);
    }
    count = *product;
  }
}

NodeRef make(Graph& g, Op op, NodeRef x, std::span<const NodeRef> more,
             std::span<const int64_t> ints = {}) {
  SmallVector<NodeRef, 16> src{x};
  src.append(more);
  return g.make({op, x->dtype, src, ints});
}

bool same(std::span<const NodeRef> a, std::span<const NodeRef> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool all(std::span<const NodeRef> list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [=](NodeRef n) { return is_int_const(n, value); });
}

/// Whether an element of the strided `cut` is one of what it is cut from: past the last one is not.
bool begins_inside(NodeRef cut, std::span<const NodeRef> size) {
  for (size_t a = 0; a < size.size(); ++a)
    if (cut->int_arg(a) != 1 && size[a]->vmin < 1) return false;
  return true;
}

/// n elements with k zeros between and some around; nothing is added up before it is known to fit.
void check_padded(NodeRef x, std::span<const NodeRef> before, std::span<const NodeRef> after,
                  std::span<const int64_t> interior) {
  const std::string_view tag = info(Op::Pad).mnemonic;
  for (size_t i = 0; i < interior.size(); ++i) {
    if (x->dim(i)->op != Op::Const) continue;
    int64_t n = mul_or_fail(tag, x->dim(i)->vmin, add_or_fail(tag, interior[i], 1));
    for (NodeRef more : {before[i], after[i]})
      if (more->op == Op::Const) n = add_or_fail(tag, n, more->vmin);
  }
}

}  // namespace

Extents extents(NodeRef x) { return Extents(x->shape->span()); }

Extents with_front(NodeRef size, std::span<const NodeRef> dims) {
  Extents all{size};
  all.append(dims);
  return all;
}

NodeRef product(Graph& g, std::span<const NodeRef> dims) {
  NodeRef total = g.index(1);
  for (NodeRef d : dims) total = g.mul(total, d);
  return total;
}

NodeRef reshape(Graph& g, NodeRef x, std::span<const NodeRef> dims) {
  if (x->op == Op::Reshape) x = x->src(0);
  return same(x->shape->span(), dims) ? x : make(g, Op::Reshape, x, dims);
}

NodeRef expand(Graph& g, NodeRef x, std::span<const NodeRef> dims) {
  if (same(x->shape->span(), dims)) return x;
  if (x->op == Op::Expand) x = x->src(0);
  check_elements(Op::Expand, dims);
  return make(g, Op::Expand, x, dims);
}

NodeRef broadcast_to(Graph& g, NodeRef x, std::span<const NodeRef> dims) {
  if (same(x->shape->span(), dims)) return x;
  Extents aligned(dims.size() - x->rank(), g.index(1));
  aligned.append(x->shape->span());
  return expand(g, reshape(g, x, aligned), dims);
}

NodeRef permute(Graph& g, NodeRef x, std::span<const int64_t> axes) {
  AxisList order(axes);
  if (x->op == Op::Permute) {
    for (int64_t& a : order) a = x->int_arg(static_cast<size_t>(a));
    x = x->src(0);
  }
  bool identity = true;
  for (size_t i = 0; i < order.size(); ++i) identity &= order[i] == static_cast<int64_t>(i);
  return identity ? x : make(g, Op::Permute, x, {}, order);
}

NodeRef flip(Graph& g, NodeRef x, std::span<const int64_t> axes) {
  AxisList list(axes);
  std::sort(list.begin(), list.end());
  if (x->op == Op::Flip) {
    AxisList once;  // what is flipped by one of the two
    std::set_symmetric_difference(list.begin(), list.end(), x->ints().begin(), x->ints().end(),
                                  std::back_inserter(once));
    list = once;
    x = x->src(0);
  }
  return list.empty() ? x : make(g, Op::Flip, x, {}, list);
}

NodeRef shrink(Graph& g, NodeRef x, std::span<const NodeRef> begin, std::span<const NodeRef> size,
               std::span<const int64_t> steps) {
  const bool unit = std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; });
  if (unit && all(begin, 0) && same(x->shape->span(), size)) return x;
  Extents args(begin);
  AxisList strides(steps);
  if (x->op == Op::Shrink && begins_inside(x, size)) {
    for (size_t a = 0; a < strides.size(); ++a) {
      args[a] = g.add(x->src(1 + a), g.mul(args[a], g.index(x->int_arg(a))));
      strides[a] *= x->int_arg(a);
    }
    x = x->src(0);
  }
  args.append(size);
  return make(g, Op::Shrink, x, args, strides);
}

NodeRef pad(Graph& g, NodeRef x, std::span<const NodeRef> before, std::span<const NodeRef> after,
            std::span<const int64_t> interior) {
  const bool dense =
      std::all_of(interior.begin(), interior.end(), [](int64_t s) { return s == 0; });
  if (dense && all(before, 0) && all(after, 0)) return x;
  check_padded(x, before, after, interior);
  Extents args(before);
  args.append(after);
  if (dense && x->op == Op::Pad &&
      std::ranges::all_of(x->ints(), [](int64_t s) { return s == 0; })) {
    for (size_t i = 0; i < args.size(); ++i) args[i] = g.add(args[i], x->src(1 + i));
    x = x->src(0);
  }
  NodeRef n = make(g, Op::Pad, x, args, interior);
  check_elements(Op::Pad, n->shape->span());
  return n;
}

NodeRef cat(Graph& g, std::span<const NodeRef> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  NodeRef n = g.make({Op::Cat, parts[0]->dtype, parts, {&axis, 1}});
  check_elements(Op::Cat, n->shape->span());
  return n;
}

NodeRef window(Graph& g, NodeRef x, int64_t axis, int64_t size, int64_t stride, int64_t dilation) {
  const int64_t ints[] = {axis, size, stride, dilation};
  NodeRef n = make(g, Op::Window, x, {}, ints);
  check_elements(Op::Window, n->shape->span());
  return n;
}

NodeRef reduce(Graph& g, NodeRef x, Fold fold, std::span<const int64_t> axes) {
  if (axes.empty()) return x;
  AxisList ints{static_cast<int64_t>(fold)};
  ints.append(axes);
  std::sort(ints.begin() + 1, ints.end());
  return make(g, Op::Reduce, x, {}, ints);
}

NodeRef scan(Graph& g, NodeRef x, Fold fold, int64_t axis) {
  const int64_t ints[] = {static_cast<int64_t>(fold), axis};
  return make(g, Op::Scan, x, {}, ints);
}

NodeRef positions(Graph& g, std::span<const NodeRef> dims, int64_t axis) {
  const int64_t ints[] = {axis};
  check_elements(Op::Iota, dims);
  return g.make({Op::Iota, position_dtype(dims[static_cast<size_t>(axis)]->vmax), dims, ints});
}

NodeRef iota(Graph& g, std::span<const NodeRef> dims, int64_t axis, DType dtype) {
  return g.cast(positions(g, dims, axis), dtype);
}

NodeRef without_broadcast(NodeRef x) {
  NodeRef inner = x;
  while (inner->op == Op::Expand || inner->op == Op::Reshape) inner = inner->src(0);
  return inner->rank() == 0 ? inner : x;
}

NodeRef scalar(Graph& g, DType dtype, double value) { return g.constant(Value::of(dtype, value)); }

}  // namespace weft::build
