#include "weft/viz/collapse.h"

#include <algorithm>
#include <unordered_map>

#include "weft/base/error.h"

namespace weft::viz {

namespace {

std::vector<Edge> edges_between(std::span<const Edge> edges, const std::vector<uint32_t>& box_of,
                                size_t boxes) {
  std::vector<Edge> between;
  between.reserve(edges.size());
  for (const Edge& e : edges)
    if (box_of[e.from] != box_of[e.to]) between.push_back({box_of[e.from], box_of[e.to]});
  Neighbours users = users_of(boxes, between);
  between.clear();
  for (uint32_t box = 0; box < boxes; ++box) {
    const auto begin = users.ids.begin() + users.begin[box],
               end = users.ids.begin() + users.begin[box + 1];
    std::sort(begin, end);
    std::for_each(begin, std::unique(begin, end),
                  [&](uint32_t user) { between.push_back({box, user}); });
  }
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

struct Boxes {
  std::vector<uint32_t> of;  // nodes
  size_t count = 0;
};

Boxes whole_groups(std::span<const uint32_t> groups) {
  std::unordered_map<uint32_t, uint32_t> numbers;
  Boxes boxes;
  for (const uint32_t group : groups) {
    const auto next = static_cast<uint32_t>(boxes.count);
    const uint32_t box = group == kNoGroup ? next : numbers.emplace(group, next).first->second;
    if (box == next) ++boxes.count;
    boxes.of.push_back(box);
  }
  return boxes;
}

// A path between groups that are in parts makes the second number grow, within one it never falls.
Boxes parts_of_groups(std::span<const Edge> edges, std::span<const uint32_t> groups,
                      const Boxes& wholes, const std::vector<bool>& near) {
  const std::vector<uint32_t> changes = changes_of_group(edges, groups);
  std::unordered_map<uint64_t, uint32_t> numbers;
  Boxes boxes;
  for (size_t i = 0; i < groups.size(); ++i) {
    const uint32_t whole = wholes.of[i],
                   part = near[whole] && groups[i] != kNoGroup ? changes[i] : 0;
    const auto [found, is_new] =
        numbers.emplace(uint64_t{whole} << 32 | part, static_cast<uint32_t>(boxes.count));
    if (is_new) ++boxes.count;
    boxes.of.push_back(found->second);
  }
  return boxes;
}

}  // namespace

CollapsedGraph collapse(std::span<const Edge> edges, std::span<const uint32_t> groups) {
  for (const Edge& edge : edges)
    if (edge.from >= groups.size() || edge.to >= groups.size())
      fail("viz.graph", "an edge goes from node {} to node {}; there are {} nodes", edge.from,
           edge.to, groups.size());
  CollapsedGraph graph;
  Boxes boxes = whole_groups(groups);
  graph.edges = edges_between(edges, boxes.of, boxes.count);
  const std::vector<bool> near =
      boxes.count < groups.size() ? near_cycles(boxes.count, graph.edges) : std::vector<bool>();
  if (std::find(near.begin(), near.end(), true) != near.end()) {
    boxes = parts_of_groups(edges, groups, boxes, near);
    graph.edges = edges_between(edges, boxes.of, boxes.count);
  }
  graph.box_of = std::move(boxes.of);
  std::vector<Edge> belongs;
  for (uint32_t i = 0; i < groups.size(); ++i) {
    if (graph.box_of[i] == graph.group_of.size()) graph.group_of.push_back(groups[i]);
    belongs.push_back({graph.box_of[i], i});
  }
  graph.members = users_of(graph.size(), belongs);
  return graph;
}

}  // namespace weft::viz
