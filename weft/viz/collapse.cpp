#include "weft/viz/collapse.h"

#include <algorithm>
#include <map>

#include "weft/base/error.h"

namespace weft::viz {

namespace {

// The numbers of what is equal, in the order in which it is met.
template <class Key>
class Numbering {
 public:
  uint32_t operator()(const Key& key) {
    return numbers_.emplace(key, static_cast<uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<Key, uint32_t> numbers_;
};

std::vector<Edge> edges_between(std::span<const Edge> edges, const std::vector<uint32_t>& box_of) {
  std::vector<Edge> between;
  for (const Edge& e : edges)
    if (box_of[e.from] != box_of[e.to]) between.push_back({box_of[e.from], box_of[e.to]});
  const auto key = [](const Edge& e) { return uint64_t{e.from} << 32 | e.to; };
  std::sort(between.begin(), between.end(),
            [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  between.erase(std::unique(between.begin(), between.end()), between.end());
  return between;
}

// Whether a box lies on a cycle, or between two.
std::vector<bool> near_cycles(size_t boxes, std::vector<Edge> edges) {
  std::vector<bool> near(boxes, true);
  for (int side = 0; side < 2; ++side) {
    const Neighbours users = users_of(boxes, edges);
    std::vector<uint32_t> missing(boxes, 0), todo;
    for (const Edge& e : edges) ++missing[e.to];
    for (uint32_t box = 0; box < boxes; ++box)
      if (missing[box] == 0) todo.push_back(box);
    while (!todo.empty()) {
      const uint32_t box = todo.back();
      todo.pop_back();
      near[box] = false;
      for (const uint32_t user : users.of(box))
        if (--missing[user] == 0) todo.push_back(user);
    }
    for (Edge& e : edges) std::swap(e.from, e.to);
  }
  return near;
}

// How often the longest path to a node goes from one group to another.
std::vector<uint32_t> changes_of_group(std::span<const Edge> edges,
                                       std::span<const uint32_t> groups) {
  const std::vector<uint32_t> ranks = layer_ranks(groups.size(), edges);
  std::vector<uint32_t> order(groups.size()), changes(groups.size(), 0);
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return ranks[a] != ranks[b] ? ranks[a] < ranks[b] : a < b;
  });
  const Neighbours users = users_of(groups.size(), edges);
  for (const uint32_t node : order)
    for (const uint32_t user : users.of(node)) {
      const bool same = groups[user] == groups[node] && groups[user] != kNoGroup;
      changes[user] = std::max(changes[user], changes[node] + (same ? 0 : 1));
    }
  return changes;
}

std::vector<uint32_t> whole_groups(std::span<const uint32_t> groups) {
  Numbering<std::pair<uint32_t, uint32_t>> number;
  std::vector<uint32_t> box_of;
  for (uint32_t i = 0; i < groups.size(); ++i)
    box_of.push_back(number({groups[i], groups[i] == kNoGroup ? i : 0}));
  return box_of;
}

// A path between groups that are in parts makes the second number grow, within one it never falls.
std::vector<uint32_t> parts_of_groups(std::span<const Edge> edges, std::span<const uint32_t> groups,
                                      const std::vector<uint32_t>& whole,
                                      const std::vector<bool>& near) {
  const std::vector<uint32_t> changes = changes_of_group(edges, groups);
  Numbering<std::pair<uint32_t, uint32_t>> number;
  std::vector<uint32_t> box_of;
  for (size_t i = 0; i < groups.size(); ++i)
    box_of.push_back(number({whole[i], near[whole[i]] && groups[i] != kNoGroup ? changes[i] : 0}));
  return box_of;
}

}  // namespace

CollapsedGraph collapse(std::span<const Edge> edges, std::span<const uint32_t> groups) {
  for (const Edge& edge : edges)
    if (edge.from >= groups.size() || edge.to >= groups.size())
      fail("viz.graph", "an edge goes from node {} to node {}; there are {} nodes", edge.from,
           edge.to, groups.size());
  CollapsedGraph graph;
  graph.box_of = whole_groups(groups);
  const size_t wholes =
      graph.box_of.empty()
          ? 0
          : *std::max_element(graph.box_of.begin(), graph.box_of.end()) + size_t{1};
  const std::vector<bool> near = near_cycles(wholes, edges_between(edges, graph.box_of));
  if (std::find(near.begin(), near.end(), true) != near.end())
    graph.box_of = parts_of_groups(edges, groups, graph.box_of, near);
  graph.edges = edges_between(edges, graph.box_of);
  std::vector<Edge> belongs;
  for (uint32_t i = 0; i < groups.size(); ++i) {
    if (graph.box_of[i] == graph.group_of.size()) graph.group_of.push_back(groups[i]);
    belongs.push_back({graph.box_of[i], i});
  }
  graph.members = users_of(graph.size(), belongs);
  return graph;
}

}  // namespace weft::viz
