#include "weft/schedule/axes.h"

#include <algorithm>
#include <numeric>

namespace weft {

NodeRef part(Graph& g, NodeRef x, size_t axis, NodeRef begin, NodeRef size, int64_t step) {
  std::vector<NodeRef> src{x};
  for (size_t a = 0; a < x->rank(); ++a) src.push_back(a == axis ? begin : g.index(0));
  for (size_t a = 0; a < x->rank(); ++a) src.push_back(a == axis ? size : x->dim(a));
  std::vector<int64_t> steps(x->rank(), 1);
  steps[axis] = step;
  return g.make({Op::Shrink, x->dtype, src, steps});
}

NodeRef padded(Graph& g, NodeRef x, size_t axis, NodeRef before, NodeRef after) {
  std::vector<NodeRef> src{x};
  for (NodeRef amount : {before, after})
    for (size_t a = 0; a < x->rank(); ++a) src.push_back(a == axis ? amount : g.index(0));
  const std::vector<int64_t> interior(x->rank(), 0);
  return g.make({Op::Pad, x->dtype, src, interior});
}

NodeRef with_axis(Graph& g, NodeRef x, size_t axis, std::initializer_list<int64_t> sizes,
                  size_t of) {
  std::vector<NodeRef> src{x};
  for (size_t a = 0; a < axis; ++a) src.push_back(x->dim(a));
  for (const int64_t n : sizes) src.push_back(g.index(n));
  for (size_t a = axis + of; a < x->rank(); ++a) src.push_back(x->dim(a));
  return g.make({Op::Reshape, x->dtype, src});
}

NodeRef words_along(Graph& g, NodeRef x, size_t axis, int64_t count, int depth) {
  const int width = 32 / depth;
  NodeRef word = nullptr;
  for (int64_t p = 0; p < depth; ++p) {
    NodeRef piece = part(g, x, axis, p, count, depth);
    const DType as = width == 16 ? DType::U16 : DType::U8;
    if (piece->dtype != as) piece = g.make(Op::Bitcast, as, {piece});
    piece = g.make(Op::Cast, DType::U32, {piece});
    if (p > 0)
      piece = g.make(Op::Shl, DType::U32, {piece, g.constant(Value::of(DType::U32, p * width))});
    word = word ? g.make(Op::Or, DType::U32, {word, piece}) : piece;
  }
  return word;
}

NodeRef reshaped(Graph& g, NodeRef x, std::span<const NodeRef> dims) {
  std::vector<NodeRef> src{x};
  src.insert(src.end(), dims.begin(), dims.end());
  return g.make({Op::Reshape, x->dtype, src});
}

NodeRef moved_axis(Graph& g, NodeRef x, size_t from, size_t to) {
  std::vector<int64_t> order(x->rank());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
  const NodeRef src[] = {x};
  return from == to ? x : g.make({Op::Permute, x->dtype, src, order});
}

NodeRef permuted(Graph& g, NodeRef x, std::initializer_list<int64_t> order) {
  const NodeRef src[] = {x};
  const std::vector<int64_t> axes(order);
  return g.make({Op::Permute, x->dtype, src, axes});
}

NodeRef spread(Graph& g, NodeRef x, std::span<const size_t> axes, std::span<const int64_t> sizes) {
  std::vector<NodeRef> own, all{nullptr};
  for (size_t a = 0; a < sizes.size(); ++a) {
    all.push_back(g.index(sizes[a]));
    own.push_back(g.index(std::ranges::find(axes, a) == axes.end() ? 1 : sizes[a]));
  }
  all[0] = reshaped(g, x, own);
  return g.make({Op::Expand, x->dtype, all});
}

NodeRef expanded(Graph& g, NodeRef x, NodeRef like) {
  std::vector<NodeRef> src{x};
  for (size_t a = 0; a < x->rank(); ++a) src.push_back(like->dim(a));
  return g.make({Op::Expand, x->dtype, src});
}

NodeRef reduce_over(Graph& g, NodeRef x, Fold fold, std::vector<int64_t> axes) {
  axes.insert(axes.begin(), static_cast<int64_t>(fold));
  const NodeRef src[] = {x};
  return g.make({Op::Reduce, x->dtype, src, axes});
}

}  // namespace weft
