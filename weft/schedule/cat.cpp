// Joined parts as ops that kernels have: few or small ones are selected from, element by element;
// many, or large ones, are written one after the other to where they belong, which costs each
// element once.
#include <algorithm>
#include <optional>

#include "weft/base/error.h"
#include "weft/graph/tuple.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

// A selection has a mask for every part at every element. It needs no buffer.
constexpr size_t kFewParts = 8;           // as many as a kernel may become longer by
constexpr double kSmallSelection = 1024;  // parts times elements

// In cycles for an element, as in the plan: a part under its mask, the same where masks differ
// between lanes or rows that are transposed in registers, an element written and read again.
constexpr double kMasked = 0.4, kMaskedLanes = 2, kWrite = 2.5, kLaunch = 1500;

size_t axis_of(NodeRef cat) { return static_cast<size_t>(cat->int_arg(0)); }

/// True where the position along the axis is below `limit`.
NodeRef before_limit(Graph& g, NodeRef cat, NodeRef limit) {
  const DType wide = limit->vmax > INT32_MAX ? DType::I64 : DType::I32;
  NodeRef position = g.make({Op::Iota, wide, cat->shape->span(), cat->ints()});
  return g.lt(position, g.cast(limit, wide));
}

/// Whether parts meet inside of a vector, which then has a mask for each lane.
bool splits_vectors(NodeRef cat, const Target& target) {
  return largest_numel(cat->shape->span().subspan(axis_of(cat) + 1)) < target.lanes(DType::F32);
}

/// Whether lanes come from rows: of several vectors at once, which masks keep apart.
bool is_transposed(NodeRef x) {
  for (NodeRef n = x; is_movement(n->op); n = n->src(0))
    if (n->op == Op::Permute && n->ints().back() != static_cast<int64_t>(n->rank()) - 1)
      return true;
  return false;
}

bool has_wide_masks(NodeRef cat, const Target& target) {
  return splits_vectors(cat, target) || std::ranges::any_of(cat->src(), is_transposed);
}

}  // namespace

bool pays_writing(size_t parts, double numel, bool wide_masks) {
  const double masked = wide_masks ? kMaskedLanes : kMasked;
  const auto count = static_cast<double>(parts);
  return count * masked * numel > count * kLaunch + kWrite * numel;
}

bool is_better_selected(NodeRef cat, const Target& target) {
  const double numel = largest_numel(cat->shape->span());
  if (cat->nsrc >= target.most_buffers) return false;
  if (static_cast<double>(cat->nsrc) * numel <= kSmallSelection) return true;
  return cat->nsrc <= kFewParts &&
         !(is_static(cat) && pays_writing(cat->nsrc, numel, has_wide_masks(cat, target)));
}

namespace {

constexpr size_t kLargestCone = 1024;  // nodes looked at
constexpr size_t kFewLeaves = 4;       // values in memory that others are made of
constexpr size_t kMostAlike = 16;      // parts made of so few

bool is_elementwise(NodeRef n) { return is_alu(n->op) || is_movement(n->op) || n->nsrc == 0; }

/// How many values in memory these are made of, element by element; else nothing.
std::optional<size_t> leaves_of(std::span<const NodeRef> values) {
  NodeMap<bool> seen;
  std::vector<NodeRef> cone;
  const auto add = [&](NodeRef n) {
    if (!seen.contains(n)) cone.push_back(n);
    seen[n] = true;
  };
  size_t leaves = 0;
  for (NodeRef n : values) add(n);
  for (size_t i = 0; i < cone.size(); ++i) {
    if (cone[i]->op == Op::Param || always_staged(cone[i])) {
      ++leaves;
      continue;
    }
    if (!is_elementwise(cone[i]) || cone.size() > kLargestCone) return std::nullopt;
    for (NodeRef s : cone[i]->src())
      if (!is_index(s->dtype)) add(s);
  }
  return leaves;
}

bool are_alike(std::span<const NodeRef> values) {
  return std::ranges::all_of(values, [&](NodeRef n) { return n->shape == values[0]->shape; });
}

}  // namespace

/// As the outputs of a butterfly are, many may be made of few values in memory.
bool share_a_kernel(std::span<const NodeRef> values) {
  if (values.size() > kMostAlike || !are_alike(values)) return false;
  const std::optional<size_t> leaves = leaves_of(values);
  return leaves && (values.size() <= kFewParts || *leaves <= kFewLeaves);
}

bool fills_by_copies(NodeRef assign, std::span<const NodeRef> values) {
  NodeRef base = assign;
  while (base->op == Op::Assign) base = base->src(0);
  if (!is_unwritten(base)) return false;
  const bool copies = std::ranges::all_of(values, [](NodeRef n) {
    while (is_movement(n->op)) n = n->src(0);
    return n->op == Op::Param || always_staged(n);
  });
  return copies || leaves_of(values).value_or(kLargestCone) <= kFewLeaves;
}

/// Selecting keeps every bit; adding padded parts would lose -0.
NodeRef select_parts(Graph& g, NodeRef cat, std::span<const NodeRef> parts) {
  const size_t axis = axis_of(cat);
  NodeRef out = nullptr, begin = g.index(0);
  for (NodeRef x : parts) {
    NodeRef after = g.sub(g.sub(cat->dim(axis), begin), x->dim(axis));
    NodeRef piece = padded(g, x, axis, begin, after);
    out = out ? g.where(before_limit(g, cat, begin), out, piece) : piece;
    begin = g.add(begin, x->dim(axis));
  }
  return out;
}

NodeRef write_parts(Graph& g, NodeRef cat, std::span<const NodeRef> parts, NodeRef unwritten) {
  const size_t axis = axis_of(cat);
  NodeRef out = unwritten, begin = g.index(0);
  for (NodeRef x : parts) {
    NodeRef place = part(g, out, axis, begin, x->dim(axis));
    out = g.make(Op::Assign, cat->dtype, {out, place, x});
    begin = g.add(begin, x->dim(axis));
  }
  return out;
}

}  // namespace weft
