#include "weft/lower/loop_tree.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::lower {
namespace {

constexpr int kOpen = 0;  // group of the ranges that stores keep open

bool same_ranges(NodeRef a, NodeRef b) {
  const auto ra = loop_parts(a).ranges, rb = loop_parts(b).ranges;
  return std::is_permutation(ra.begin(), ra.end(), rb.begin(), rb.end());
}

bool is_closed_loop(NodeRef n) {
  // A barrier may stand after a store that needs no loop.
  return is_loop_op(n->op) && !is_running(n) && (n->op != Op::Barrier || !listed_ranges(n).empty());
}

}  // namespace

LoopTree::LoopTree(const RangeDeps& deps) : deps_(deps), loops_(deps.ranges().size()) {
  for (NodeRef n : deps.order())
    if (is_closed_loop(n)) closed_.push_back(n);
  groups_.push_back({nullptr, kTop, 0});  // kOpen
  number_levels();
  if (top() != kTop) loops_[0] = {kTop, 1, kOpen};
  for (NodeRef store : deps.order().back()->src()) {
    SmallVector<NodeRef, 8> chain;
    RangeSet open = deps.of(store);
    if (top() != kTop) open.insert(0);
    open.each([&](size_t r) { chain.push_back(deps.ranges()[r]); });
    claim(store, chain, kTop, kOpen);
  }
  // Users first: the ranges a nested loop's place is made of are placed before it.
  for (size_t i = closed_.size(); i-- > 0;) {
    const int at = place(closed_[i]);
    claim(closed_[i], sorted_ranges(closed_[i]), at, group_of(closed_[i], at));
  }
}

int LoopTree::top() const {
  const auto ranges = deps_.ranges();
  return !ranges.empty() && range_binding(ranges[0]) == Binding::Core ? 0 : kTop;
}

int LoopTree::deepest(const RangeSet& open) const {
  int best = top();
  open.each([&](size_t r) {
    if (depth(static_cast<int>(r)) > depth(best)) best = static_cast<int>(r);
  });
  return best;
}

int LoopTree::place(NodeRef n) const { return deepest(deps_.of(n)); }

SmallVector<NodeRef, 8> LoopTree::sorted_ranges(NodeRef loop) const {
  SmallVector<NodeRef, 8> chain;
  deps_.set_of(listed_ranges(loop)).each([&](size_t r) { chain.push_back(deps_.ranges()[r]); });
  return chain;
}

int LoopTree::group_of(NodeRef loop, int place) {
  for (size_t i = 1; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (g.place == place && g.level == level_.at(loop) && same_ranges(g.first, loop))
      return static_cast<int>(i);
  }
  groups_.push_back({loop, place, level_.at(loop)});
  return static_cast<int>(groups_.size()) - 1;
}

void LoopTree::claim(NodeRef user, std::span<const NodeRef> chain, int parent, int group) {
  Conflict conflict{user, group, {}};
  for (NodeRef r : chain) {
    const size_t position = deps_.position(r);
    Place& p = loops_[position];
    if (p.parent == kNowhere) p = {parent, depth(parent) + 1, group};
    // From the first loop that runs elsewhere on, everything is copied: copies keep their nest
    // order.
    const bool elsewhere = p.parent != parent || p.group != group;
    if (elsewhere || !conflict.positions.empty()) conflict.positions.push_back(position);
    parent = static_cast<int>(position);
  }
  if (!conflict.positions.empty()) conflicts_.push_back(conflict);
}

// ---- which loops may run together

void LoopTree::number_levels() {
  for (NodeRef n : closed_) level_.set(n, 0);
  if (closed_.size() < 2) return;
  if (!number_by_ranges()) number_by_stage();
}

/// Per distinct set of ranges: how many loops over it are on the longest chain below. False when
/// merging the loops of equal level makes two merged loops wait for each other.
bool LoopTree::number_by_ranges() {
  std::vector<NodeRef> shared;  // one loop for each set of ranges
  std::vector<size_t> members;
  for (NodeRef n : closed_) {
    const auto at =
        std::find_if(shared.begin(), shared.end(), [n](NodeRef s) { return same_ranges(s, n); });
    const auto i = static_cast<size_t>(at - shared.begin());
    if (at == shared.end()) shared.push_back(n), members.push_back(0);
    ++members[i];
  }
  size_t merged = 0;
  for (size_t i = 0; i < shared.size(); ++i) {
    if (members[i] < 2) continue;
    ++merged;
    PerNode<uint32_t> below(deps_);
    for (NodeRef n : deps_.order()) {
      uint32_t level = 0;
      for (NodeRef s : n->src()) level = std::max(level, below[s]);
      if (is_closed_loop(n) && same_ranges(n, shared[i])) level_.set(n, level++);
      below[n] = level;
    }
  }
  return merged < 2 || groups_are_acyclic();
}

/// Kahn's algorithm with the loops of one group (same ranges, same level) drawn together to one
/// vertex.
bool LoopTree::groups_are_acyclic() const {
  NodeMap<NodeRef> vertex;
  for (size_t i = 0; i < closed_.size(); ++i) {
    NodeRef n = closed_[i];
    const auto at = std::find_if(closed_.begin(), closed_.end(), [&](NodeRef m) {
      return level_.at(m) == level_.at(n) && same_ranges(m, n);
    });
    vertex.set(n, *at);
  }
  auto of = [&](NodeRef n) { return vertex.contains(n) ? vertex.at(n) : n; };
  NodeMap<uint32_t> waits;
  NodeMap<std::vector<NodeRef>> users;
  size_t vertices = 0, done = 0;
  for (NodeRef n : deps_.order()) {
    vertices += of(n) == n;
    for (NodeRef s : n->src()) {
      ++waits[of(n)];
      users[of(s)].push_back(of(n));
    }
  }
  std::vector<NodeRef> ready;
  for (NodeRef n : deps_.order())
    if (of(n) == n && !waits.contains(n)) ready.push_back(n);
  while (!ready.empty()) {
    NodeRef n = ready.back();
    ready.pop_back();
    ++done;
    if (const auto* after = users.find(n))
      for (NodeRef u : *after)
        if (--waits[u] == 0) ready.push_back(u);
  }
  return done == vertices;
}

/// Levels along every dependence between loops, whatever their ranges: merges less, never waits in
/// a circle.
void LoopTree::number_by_stage() {
  PerNode<uint32_t> below(deps_);
  for (NodeRef n : deps_.order()) {
    uint32_t level = 0;
    for (NodeRef s : n->src()) level = std::max(level, below[s]);
    if (is_closed_loop(n)) level_.set(n, level++);
    below[n] = level;
  }
}

}  // namespace weft::lower
