// Sums of parts that are padded to different places, as gradients of pieces are: many large ones
// are written to where they belong instead of being added up, which reads all parts at every place.
#include <algorithm>
#include <optional>

#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

/// A part along the one axis it is padded on.
struct Placed {
  NodeRef part;
  size_t axis;
  int64_t begin, end;
};

std::optional<Placed> placed(NodeRef pad) {
  if (pad->op != Op::Pad || !is_static(pad) || !is_static(pad->src(0))) return std::nullopt;
  std::optional<Placed> found;
  NodeRef x = pad->src(0);
  for (size_t a = 0; a < x->rank(); ++a) {
    const int64_t before = pad->src(1 + a)->vmin, size = x->dim(a)->vmin;
    if (pad->int_arg(a) != 0) return std::nullopt;
    if (size == pad->dim(a)->vmin) continue;
    if (found || before < 0 || before + size > pad->dim(a)->vmin) return std::nullopt;
    found = Placed{x, a, before, before + size};
  }
  return found;
}

bool disjoint(std::vector<Placed> parts) {
  std::ranges::sort(parts, {}, &Placed::begin);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].axis != parts[0].axis) return false;
    if (i > 0 && parts[i].begin < parts[i - 1].end) return false;
  }
  return true;
}

/// Whether disjoint parts leave nothing out.
bool fill(std::span<const Placed> parts, NodeRef whole) {
  int64_t size = 0;
  for (const Placed& p : parts) size += p.end - p.begin;
  return size == whole->dim(parts[0].axis)->vmin;
}

NodeRef zeros(Graph& g, NodeRef like, int64_t which) {
  std::vector<NodeRef> ones{g.constant(Value::of(like->dtype, 0))};
  ones.resize(1 + like->rank(), g.index(1));
  const NodeRef src[] = {expanded(g, g.make({Op::Reshape, like->dtype, ones}), like)};
  return g.intern({Op::Contiguous, like->dtype, src, {&which, 1}});
}

}  // namespace

NodeRef write_disjoint(Graph& g, std::span<const NodeRef> pads, NodeRef unwritten, bool stored) {
  std::vector<Placed> parts;
  std::vector<NodeRef> values;
  for (NodeRef pad : pads) {
    const std::optional<Placed> p = placed(pad);
    if (!p) return nullptr;
    parts.push_back(*p);
    values.push_back(p->part);
  }
  const bool free = stored && share_a_kernel(values);
  if (!free && !pays_writing(pads.size(), largest_numel(pads[0]->shape->span()), false))
    return nullptr;
  if (!disjoint(parts)) return nullptr;
  const DType dtype = pads[0]->dtype;
  NodeRef zero = g.constant(Value::of(dtype, 0));
  NodeRef out = fill(parts, pads[0]) ? unwritten : zeros(g, pads[0], unwritten->int_arg(0));
  // Adding 0 is what the sum did to -0.
  for (const Placed& p : parts) {
    NodeRef place = part(g, out, p.axis, p.begin, p.end - p.begin);
    out = g.make(Op::Assign, dtype, {out, place, g.add(p.part, zero)});
  }
  return out;
}

}  // namespace weft
