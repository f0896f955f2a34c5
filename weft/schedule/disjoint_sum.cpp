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

}  // namespace

NodeRef write_disjoint(Graph& g, std::span<const NodeRef> pads, int64_t which) {
  if (!pays_writing(pads.size(), largest_numel(pads[0]->shape->span()), false)) return nullptr;
  std::vector<Placed> parts;
  for (NodeRef pad : pads) {
    const std::optional<Placed> p = placed(pad);
    if (!p) return nullptr;
    parts.push_back(*p);
  }
  if (!disjoint(parts)) return nullptr;
  const DType dtype = pads[0]->dtype;
  NodeRef zero = g.constant(Value::of(dtype, 0));
  std::vector<NodeRef> ones{zero};
  ones.resize(1 + pads[0]->rank(), g.index(1));
  const NodeRef zeros[] = {expanded(g, g.make({Op::Reshape, dtype, ones}), pads[0])};
  NodeRef out = g.intern({Op::Contiguous, dtype, zeros, {&which, 1}});
  // Adding 0 is what the sum did to -0.
  for (const Placed& p : parts) {
    NodeRef place = part(g, out, p.axis, p.begin, p.end - p.begin);
    out = g.make(Op::Assign, dtype, {out, place, g.add(p.part, zero)});
  }
  return out;
}

}  // namespace weft
