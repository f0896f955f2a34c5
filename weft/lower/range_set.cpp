#include "weft/lower/range_set.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::lower {

int RangeSet::last() const {
  for (int w = 3; w >= 0; --w)
    if (words_[w] != 0) return w * 64 + 63 - std::countl_zero(words_[w]);
  return -1;
}

size_t reduced_values(NodeRef reduce) {
  return reduce->nints > 1 ? static_cast<size_t>(reduce->int_arg(1)) : 1;
}

LoopParts loop_parts(NodeRef n) {
  const std::span<const NodeRef> src = n->src();
  if (n->op == Op::Reduce) {
    const size_t values = reduced_values(n);
    return {{}, src.first(values), src.subspan(values), false};
  }
  if (n->op == Op::Scan) return {{}, src.first(1), src.subspan(1), true};
  WEFT_CHECK(n->op == Op::Loop && n->nints >= 4, "not a loop");
  const auto carries = static_cast<size_t>(n->int_arg(2));
  WEFT_CHECK(src.size() > 2 * carries, "a loop without ranges");
  return {src.first(carries), src.subspan(carries, carries), src.subspan(2 * carries),
          n->int_arg(3) != 0};
}

RangeDeps::RangeDeps(NodeRef sink) : order_(sink) {
  number_ranges();
  sets_.resize(order_.size());
  while (!compute()) {}
}

void RangeDeps::number_ranges() {
  for (NodeRef n : order())
    if (n->op == Op::Range) ranges_.push_back(n);
  WEFT_CHECK(ranges_.size() <= RangeSet::kCapacity, "a kernel with {} ranges", ranges_.size());
  std::sort(ranges_.begin(), ranges_.end(), [](NodeRef a, NodeRef b) {
    const bool core_a = range_binding(a) == Binding::Core,
               core_b = range_binding(b) == Binding::Core;
    if (core_a != core_b) return core_a;
    return range_id(a) != range_id(b) ? range_id(a) < range_id(b) : a->hash < b->hash;
  });
  for (size_t i = 0; i < ranges_.size(); ++i) positions_.set(ranges_[i], i);
}

RangeSet RangeDeps::set_of(std::span<const NodeRef> ranges) const {
  RangeSet set;
  for (NodeRef r : ranges)
    if (r->op == Op::Range) set.insert(positions_.at(r));
  return set;
}

RangeSet RangeDeps::bound_to(Binding binding) const {
  RangeSet set;
  for (size_t i = 0; i < ranges_.size(); ++i)
    if (range_binding(ranges_[i]) == binding) set.insert(i);
  return set;
}

RangeSet RangeDeps::open_at(NodeRef n) const {
  RangeSet set;
  if (n->op == Op::Carry) {
    for (const auto& [loop, carried] : carried_)
      if (loop == n->int_arg(1)) return carried;
    return set;
  }
  for (NodeRef s : n->src()) set |= of(s);
  if (n->op == Op::Range) set.insert(positions_.at(n));
  if (!is_loop_op(n->op)) return set;
  const LoopParts parts = loop_parts(n);
  if (!parts.open)
    for (NodeRef r : parts.ranges)
      if (r->op == Op::Range) set.erase(positions_.at(r));
  return set;
}

bool RangeDeps::compute() {
  bool stable = true;
  for (size_t i = 0; i < order_.size(); ++i) {
    NodeRef n = order()[i];
    sets_[i] = open_at(n);
    if (n->op != Op::Loop) continue;
    RangeSet inside = sets_[i];
    inside |= set_of(loop_parts(n).ranges);
    auto at = std::find_if(carried_.begin(), carried_.end(),
                           [n](const auto& c) { return c.first == n->int_arg(0); });
    if (at == carried_.end()) at = carried_.insert(at, {n->int_arg(0), RangeSet{}});
    stable = stable && at->second == inside;
    at->second = inside;
  }
  return stable;
}

}  // namespace weft::lower
