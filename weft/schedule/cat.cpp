// Joined parts as ops that kernels have: few or small ones are selected from, element by element;
// many, or large ones, are written one after the other to where they belong, which costs each
// element once.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

// A selection has a mask for every part at every element. It needs no buffer.
constexpr size_t kFewParts = 8;           // as many as a kernel may become longer by
constexpr double kSmallSelection = 1024;  // parts times elements

// In cycles for an element, as in the plan: a part under its mask, the same where masks differ
// between lanes, an element written and read again.
constexpr double kMasked = 0.4, kMaskedLanes = 2, kWrite = 2.5, kLaunch = 1500;

NodeRef extent_of(NodeRef part, NodeRef cat) {
  return part->dim(static_cast<size_t>(cat->int_arg(0)));
}

/// True where the position along the axis is below `limit`.
NodeRef before_limit(Graph& g, NodeRef cat, NodeRef limit) {
  const DType wide = limit->vmax > INT32_MAX ? DType::I64 : DType::I32;
  NodeRef position = g.make({Op::Iota, wide, cat->shape->span(), cat->ints()});
  return g.lt(position, g.cast(limit, wide));
}

/// Zeros around a part that begins at `begin`.
NodeRef padded(Graph& g, NodeRef part, NodeRef cat, NodeRef begin) {
  const auto axis = static_cast<size_t>(cat->int_arg(0));
  const size_t rank = part->rank();
  std::vector<NodeRef> src(1 + 2 * rank, g.index(0));
  src[0] = part;
  src[1 + axis] = begin;
  src[1 + rank + axis] = g.sub(g.sub(cat->dim(axis), begin), part->dim(axis));
  return g.make({Op::Pad, part->dtype, src, std::vector<int64_t>(rank, 0)});
}

/// Where `part` belongs in `whole`.
NodeRef slice_of(Graph& g, NodeRef whole, NodeRef part, NodeRef cat, NodeRef begin) {
  const size_t rank = part->rank();
  std::vector<NodeRef> src(1 + rank, g.index(0));
  src[0] = whole;
  src[1 + static_cast<size_t>(cat->int_arg(0))] = begin;
  const auto size = part->shape->span();
  src.insert(src.end(), size.begin(), size.end());
  return g.make({Op::Shrink, part->dtype, src, std::vector<int64_t>(rank, 1)});
}

/// Whether parts meet inside of a vector, which then has a mask for each lane.
bool splits_vectors(NodeRef cat, const Target& target) {
  const auto axis = static_cast<size_t>(cat->int_arg(0));
  return largest_numel(cat->shape->span().subspan(axis + 1)) < target.lanes(DType::F32);
}

}  // namespace

bool pays_writing(size_t parts, double numel, bool splits_vectors) {
  const double masked = splits_vectors ? kMaskedLanes : kMasked;
  const auto count = static_cast<double>(parts);
  return count * masked * numel > count * kLaunch + kWrite * numel;
}

bool is_better_selected(NodeRef cat, const Target& target) {
  const double numel = largest_numel(cat->shape->span());
  if (cat->nsrc >= target.most_buffers) return false;
  if (static_cast<double>(cat->nsrc) * numel <= kSmallSelection) return true;
  return cat->nsrc <= kFewParts &&
         !(is_static(cat) && pays_writing(cat->nsrc, numel, splits_vectors(cat, target)));
}

/// Selecting keeps every bit; adding padded parts would lose -0.
NodeRef select_parts(Graph& g, NodeRef cat, std::span<const NodeRef> parts) {
  NodeRef out = nullptr, begin = g.index(0);
  for (NodeRef part : parts) {
    NodeRef piece = padded(g, part, cat, begin);
    out = out ? g.where(before_limit(g, cat, begin), out, piece) : piece;
    begin = g.add(begin, extent_of(part, cat));
  }
  return out;
}

NodeRef write_parts(Graph& g, NodeRef cat, std::span<const NodeRef> parts, NodeRef unwritten) {
  NodeRef out = unwritten, begin = g.index(0);
  for (NodeRef part : parts) {
    NodeRef view = slice_of(g, out, part, cat, begin);
    out = g.make(Op::Assign, cat->dtype, {out, view, part});
    begin = g.add(begin, extent_of(part, cat));
  }
  return out;
}

}  // namespace weft
