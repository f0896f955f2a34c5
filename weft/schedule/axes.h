// One axis of a tensor graph's value taken in parts, padded, split or joined.
#pragma once
#include <initializer_list>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// Elements begin, begin + step, ..., `size` of them, of one axis.
NodeRef part(Graph& g, NodeRef x, size_t axis, NodeRef begin, NodeRef size, int64_t step = 1);
inline NodeRef part(Graph& g, NodeRef x, size_t axis, int64_t begin, int64_t size,
                    int64_t step = 1) {
  return part(g, x, axis, g.index(begin), g.index(size), step);
}
/// Zeros around one axis.
NodeRef padded(Graph& g, NodeRef x, size_t axis, NodeRef before, NodeRef after);
inline NodeRef padded(Graph& g, NodeRef x, size_t axis, int64_t before, int64_t after) {
  return padded(g, x, axis, g.index(before), g.index(after));
}
/// `of` axes from this one on as axes of these sizes.
NodeRef with_axis(Graph& g, NodeRef x, size_t axis, std::initializer_list<int64_t> sizes,
                  size_t of = 1);
/// u32 words of so many numbers along an axis, which `count` words take, the first in the lowest
/// bits.
NodeRef words_along(Graph& g, NodeRef x, size_t axis, int64_t count, int depth);
NodeRef reshaped(Graph& g, NodeRef x, std::span<const NodeRef> dims);
/// Axis `from` in the place of axis `to`, the others in their order.
NodeRef moved_axis(Graph& g, NodeRef x, size_t from, size_t to);
/// Axes in this order.
NodeRef permuted(Graph& g, NodeRef x, std::initializer_list<int64_t> order);
/// x, which has these axes of a product, broadcast along its others.
NodeRef spread(Graph& g, NodeRef x, std::span<const size_t> axes, std::span<const int64_t> sizes);
inline NodeRef spread(Graph& g, NodeRef x, std::initializer_list<size_t> axes,
                      std::span<const int64_t> sizes) {
  return spread(g, x, std::span(axes.begin(), axes.size()), sizes);
}
/// In the shape of `like`.
NodeRef expanded(Graph& g, NodeRef x, NodeRef like);
NodeRef reduce_over(Graph& g, NodeRef x, Fold fold, std::vector<int64_t> axes);

}  // namespace weft
