#include "weft/optimize/borders.h"

#include <algorithm>

#include "weft/graph/index_algebra.h"
#include "weft/rewrite/driver.h"
#include "weft/simplify/simplify.h"
#include "weft/target/target.h"

namespace weft::optimize {
namespace {

constexpr int64_t kShortest = 8;  // iterations inside, below which nothing is gained

/// Iterations of a range in which a condition holds.
struct Span {
  int64_t first, last;
  bool operator==(const Span&) const = default;
};

/// False where it is no bound of the range alone.
bool cut(Graph& g, NodeRef condition, NodeRef range, Span& span) {
  if (condition->op != Op::Lt || !is_index(condition->src(0)->dtype)) return false;
  Stride s;
  if (!split_stride(g, g.sub(condition->src(0), condition->src(1)), range, s) ||
      s.base->op != Op::Const || std::abs(s.coefficient) != 1)
    return false;
  // r + base < 0, or base < r.
  if (s.coefficient > 0)
    span.last = std::min(span.last, -s.base->vmin);
  else
    span.first = std::max(span.first, s.base->vmin + 1);
  return true;
}

bool span_of(const KernelInfo& info, Graph& g, const Access& load, size_t range, Span& out) {
  const RangeInfo& r = info.ranges[range];
  out = {0, r.extent};
  for (NodeRef condition : conjuncts(load.node->src(2)))
    if ((info.deps(condition) & bit(range)) != 0 && !cut(g, condition, r.node, out)) return false;
  return true;
}

/// What all masks along the range say.
std::optional<Borders> borders_of(const KernelInfo& info, Graph& g, size_t range) {
  std::optional<Span> common;
  for (const Access& a : info.accesses) {
    if ((a.deps & bit(range)) == 0 ||
        (a.is_store() ? a.masked & bit(range) : a.opaque & bit(range)))
      return {};
    if (std::abs(a.stride[range]) != 1) return {};
    if ((a.masked & bit(range)) == 0) continue;
    Span span{};
    if (!span_of(info, g, a, range, span) || (common && *common != span)) return {};
    common = span;
  }
  const int64_t extent = info.ranges[range].extent;
  if (!common || common->last - common->first < kShortest) return {};
  if (common->last - common->first == extent) return {};
  return Borders{range, common->first, common->last};
}

/// What is stored once, in order, must not be stored again by a tile that overlaps another one:
/// what is left behind whole vectors.
std::optional<Borders> remainder_of(const KernelInfo& info, const Target& target, size_t range) {
  int64_t lanes = target.max_lanes;
  for (const Access& a : info.accesses) {
    if ((a.deps & bit(range)) == 0) {
      if (a.is_store()) return {};  // it would be there twice
      continue;
    }
    if ((a.masked | a.opaque) & bit(range) || std::abs(a.stride[range]) != 1) return {};
    lanes = std::min<int64_t>(lanes, target.lanes(a.node->src(0)->dtype));
  }
  const int64_t extent = info.ranges[range].extent, inside = extent / lanes * lanes;
  if (inside < std::max(kShortest, extent / 2) || extent % std::max<int64_t>(2, lanes / 4) == 0)
    return {};
  return Borders{range, 0, inside};
}

}  // namespace

std::optional<Borders> find_borders(const KernelInfo& info, const Target& target, Graph& g) {
  if (info.has_folds() || info.has_loops) return {};
  const bool in_order = std::ranges::any_of(info.ranges, &RangeInfo::in_order);
  if (!info.repeatable && !in_order) return {};
  for (size_t r = info.ranges.size(); r-- > 0;) {
    const RangeInfo& range = info.ranges[r];
    if (!range.constant || !range.parallel || !range.free()) continue;
    if (std::optional<Borders> found =
            in_order ? remainder_of(info, target, r) : borders_of(info, g, r))
      return found;
  }
  return {};
}

NodeRef peel_borders(Graph& g, const KernelInfo& info, const Borders& borders) {
  NodeRef whole = info.ranges[borders.range].node;
  int64_t last_id = 0;
  for (const RangeInfo& r : info.ranges) last_id = std::max(last_id, range_id(r.node));
  SmallVector<NodeRef, 8> stores;
  // The inside keeps the range's id.
  const auto add = [&](Span part, int64_t id) {
    const int64_t size = part.last - part.first;
    if (size == 0) return;
    NodeRef i = size == 1 ? g.index(0) : g.range(g.index(size), id);
    NodeMap<NodeRef> place;
    place[whole] = g.add(i, g.index(part.first));
    for (NodeRef s : info.sink->src())
      if ((info.deps(s) & bit(borders.range)) != 0)
        stores.push_back(simplify(g, substitute(g, s, place)));
  };
  for (NodeRef s : info.sink->src())
    if ((info.deps(s) & bit(borders.range)) == 0) stores.push_back(s);
  add({borders.first, borders.last}, range_id(whole));
  add({0, borders.first}, last_id + 1);
  add({borders.last, info.ranges[borders.range].extent}, last_id + 2);
  return g.with_sources(info.sink, stores);
}

}  // namespace weft::optimize
