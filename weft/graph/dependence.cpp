#include "weft/graph/dependence.h"

#include <algorithm>

#include "weft/graph/loops.h"

namespace weft {

void RangeDependence::number_ranges(std::span<const NodeRef> order) {
  for (NodeRef n : order)
    if (n->op == Op::Range) ranges_.push_back(n);
  std::sort(ranges_.begin(), ranges_.end(), [](NodeRef a, NodeRef b) {
    const bool core_a = range_binding(a) == Binding::Core,
               core_b = range_binding(b) == Binding::Core;
    if (core_a != core_b) return core_a;
    return range_id(a) != range_id(b) ? range_id(a) < range_id(b) : a->hash < b->hash;
  });
  for (size_t i = 0; i < ranges_.size(); ++i) positions_.set(ranges_[i], i);
}

RangeSet RangeDependence::set_of(std::span<const NodeRef> ranges) const {
  RangeSet set;
  for (NodeRef r : ranges)
    if (r->op == Op::Range) set.insert(position(r));
  return set;
}

void RangeDependence::transfer(NodeRef n, RangeSet& set) const {
  if (n->op == Op::Carry) {
    set.clear();
    for (const auto& [loop, inside] : carried_)
      if (loop == n->int_arg(1)) set = inside;
    return;
  }
  if (n->op == Op::Range) set.insert(position(n));
  for (NodeRef r : reduction_ranges(n))
    if (r->op == Op::Range) set.erase(position(r));
}

/// False when the carries of a loop turned out to vary over more than was assumed.
bool RangeDependence::carry(NodeRef n, const RangeSet& set) {
  if (n->op != Op::Loop) return true;
  RangeSet inside = set;
  inside |= set_of(listed_ranges(n));
  auto at = std::find_if(carried_.begin(), carried_.end(),
                         [n](const auto& c) { return c.first == n->int_arg(0); });
  if (at == carried_.end()) at = carried_.insert(at, {n->int_arg(0), RangeSet{}});
  const bool same = at->second == inside;
  at->second = std::move(inside);
  return same;
}

}  // namespace weft
