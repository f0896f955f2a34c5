#include "weft/tensor/strides.h"

#include <algorithm>

namespace weft {

namespace {

using build::Extents;
using Numbers = SmallVector<int64_t, 6>;

Extents dense_strides(Graph& g, std::span<const NodeRef> dims, NodeRef step) {
  Extents strides(dims.size());
  for (size_t i = dims.size(); i-- > 0; step = g.mul(step, dims[i])) strides[i] = step;
  return strides;
}

std::optional<Numbers> numbers(std::span<const NodeRef> list) {
  Numbers out;
  for (NodeRef n : list) {
    if (n->op != Op::Const) return std::nullopt;
    out.push_back(n->vmin);
  }
  return out;
}

/// NumPy's _attempt_nocopy_reshape: groups of old axes and of new axes with equal products; within
/// a group the old axes must lie densely inside each other.
std::optional<Numbers> without_copy(const Numbers& all_from, const Numbers& all_strides,
                                    const Numbers& to) {
  Numbers from, strides;
  for (size_t i = 0; i < all_from.size(); ++i) {
    if (all_from[i] == 1) continue;
    from.push_back(all_from[i]);
    strides.push_back(all_strides[i]);
  }
  Numbers out(to.size(), 1);
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    size_t i_end = i + 1, j_end = j + 1;
    int64_t a = from[i], b = to[j];
    while (a != b) {
      if (a < b) {
        if (i_end == from.size()) return std::nullopt;
        a *= from[i_end++];
      } else {
        if (j_end == to.size()) return std::nullopt;
        b *= to[j_end++];
      }
    }
    for (size_t k = i; k + 1 < i_end; ++k)
      if (strides[k] != from[k + 1] * strides[k + 1]) return std::nullopt;
    int64_t step = strides[i_end - 1];
    for (size_t k = j_end; k-- > j; step *= to[k]) out[k] = step;
    i = i_end;
    j = j_end;
  }
  return out;
}

NodeRef bytes_of(Graph& g, NodeRef n) { return g.index(bits(n->dtype) / 8); }

/// Strides of `n` from those of its source; nothing where it has none. What is no movement is a
/// view of bits: Shr and Reduce change their width, see bits.cpp.
std::optional<Extents> step(Graph& g, NodeRef n, const Extents& strides) {
  Extents out(strides);
  switch (n->op) {
    case Op::Reshape: return reshaped_strides(g, n->src(0), strides, n->shape->span());
    case Op::Permute:
      for (size_t i = 0; i < out.size(); ++i) out[i] = strides[static_cast<size_t>(n->int_arg(i))];
      return out;
    case Op::Expand:
      for (size_t i = 0; i < out.size(); ++i)
        if (n->dim(i) != n->src(0)->dim(i)) out[i] = g.index(0);
      return out;
    case Op::Shrink:
      for (size_t i = 0; i < out.size(); ++i) out[i] = g.mul(out[i], g.index(n->int_arg(i)));
      return out;
    case Op::Flip:
      for (const int64_t a : n->ints()) {
        NodeRef& s = out[static_cast<size_t>(a)];
        s = g.mul(s, g.index(-1));
      }
      return out;
    case Op::Window: {
      NodeRef along = out[static_cast<size_t>(n->int_arg(0))];
      out[static_cast<size_t>(n->int_arg(0))] = g.mul(along, g.index(n->int_arg(2)));
      out.push_back(g.mul(along, g.index(n->int_arg(3))));
      return out;
    }
    case Op::Shr:  // narrower pieces of each element along the last axis
      out.back() = g.index(bits(n->dtype) / 8 / n->dim(n->rank() - 1)->vmin);
      return out;
    case Op::Reduce:  // the pieces along the last axis as one element
      if (out.back() != bytes_of(g, n->src(0)->src(0)->src(0))) return std::nullopt;
      out.pop_back();
      return out;
    case Op::Contiguous:
    case Op::Detach:
    case Op::Bitcast:
    case Op::Cast:
    case Op::Shl: return out;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<Extents> strides_of(Graph& g, NodeRef chain) {
  SmallVector<NodeRef, 16> moves;
  for (; chain->op != Op::Param && chain->op != Op::Buffer; chain = chain->src(0))
    moves.push_back(chain);
  std::optional<Extents> strides = dense_strides(g, chain->shape->span(), bytes_of(g, chain));
  for (size_t i = moves.size(); strides && i-- > 0;) strides = step(g, moves[i], *strides);
  return strides;
}

std::optional<Extents> reshaped_strides(Graph& g, NodeRef x, std::span<const NodeRef> strides,
                                        std::span<const NodeRef> to) {
  const std::span<const NodeRef> from = x->shape->span();
  NodeRef item = bytes_of(g, x);
  const auto old_sizes = numbers(from), old_strides = numbers(strides), sizes = numbers(to);
  if (old_sizes && old_strides && sizes) {
    if (std::find(sizes->begin(), sizes->end(), 0) != sizes->end())
      return dense_strides(g, to, item);
    const auto found = without_copy(*old_sizes, *old_strides, *sizes);
    if (!found) return std::nullopt;
    Extents out;
    for (const int64_t s : *found) out.push_back(g.index(s));
    return out;
  }
  const Extents dense = dense_strides(g, from, item);
  if (!std::equal(dense.begin(), dense.end(), strides.begin())) return std::nullopt;
  return dense_strides(g, to, item);
}

}  // namespace weft
