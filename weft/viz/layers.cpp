#include "weft/viz/layers.h"

#include <algorithm>

namespace weft::viz {

namespace {

constexpr size_t kVirtualsPerBox = 3, kFreeVirtuals = 4096;

// The longest edge that gets bends, so that there are not too many of them.
uint32_t longest_chain(const std::vector<uint32_t>& reach, size_t boxes) {
  std::vector<uint64_t> count;  // of boxes by how far their edges reach
  for (const uint32_t r : reach) {
    if (r >= count.size()) count.resize(r + 1, 0);
    ++count[r];
  }
  const uint64_t most = kVirtualsPerBox * boxes + kFreeVirtuals;
  uint64_t virtuals = 0;
  for (uint32_t r = 1; r < count.size(); ++r) {
    virtuals += count[r] * (r - 1);
    if (virtuals > most) return r - 1;
  }
  return static_cast<uint32_t>(count.size());
}

struct Chains {
  std::vector<uint32_t> begin;
  uint32_t longest;  ///< of edges with bends, in layers
};

// One chain below each box, as long as its longest edge that gets one.
Chains make_chains(std::span<const Edge> edges, const std::vector<uint32_t>& ranks) {
  std::vector<uint32_t> reach(ranks.size(), 0);
  for (const Edge& e : edges) reach[e.from] = std::max(reach[e.from], ranks[e.to] - ranks[e.from]);
  const uint32_t longest = longest_chain(reach, ranks.size());
  std::fill(reach.begin(), reach.end(), 0);
  for (const Edge& e : edges) {
    const uint32_t span = ranks[e.to] - ranks[e.from];
    if (span <= longest) reach[e.from] = std::max(reach[e.from], span);
  }
  std::vector<uint32_t> begin(ranks.size() + 1, 0);
  for (size_t i = 0; i < reach.size(); ++i) begin[i + 1] = begin[i] + std::max(reach[i], 1u) - 1;
  return {std::move(begin), longest};
}

// Of edges between neighbouring layers, each once.
std::vector<Edge> short_edges(std::span<const Edge> edges, const LayeredGraph& graph,
                              uint32_t longest) {
  std::vector<Edge> all;
  all.reserve(edges.size() + graph.size() - graph.boxes);
  const auto boxes = static_cast<uint32_t>(graph.boxes);
  for (uint32_t i = 0; i < boxes; ++i)
    for (uint32_t bend = graph.chains[i]; bend < graph.chains[i + 1]; ++bend)
      all.push_back({bend == graph.chains[i] ? i : boxes + bend - 1, boxes + bend});
  for (const Edge& e : edges) {
    const uint32_t span = graph.ranks[e.to] - graph.ranks[e.from];
    if (span > longest) continue;
    all.push_back({span == 1 ? e.from : boxes + graph.chains[e.from] + span - 2, e.to});
  }
  return all;
}

Neighbours turned(const Neighbours& lists) {
  std::vector<Edge> edges;
  edges.reserve(lists.ids.size());
  for (uint32_t node = 0; node + 1 < lists.begin.size(); ++node)
    for (const uint32_t other : lists.of(node)) edges.push_back({other, node});
  return users_of(lists.begin.size() - 1, edges);
}

// Depth first, so that what belongs together stays together.
void order_as_found(LayeredGraph& graph) {
  std::vector<uint32_t> next(graph.layer_begin.begin(), graph.layer_begin.end() - 1), todo;
  std::vector<bool> found(graph.size(), false);
  for (uint32_t start = 0; start < graph.size(); ++start) {
    if (!graph.above.of(start).empty()) continue;
    todo.push_back(start);
    while (!todo.empty()) {
      const uint32_t node = todo.back();
      todo.pop_back();
      if (found[node]) continue;
      found[node] = true;
      graph.order[next[graph.ranks[node]]++] = node;
      const auto users = graph.below.of(node);
      for (auto user = users.rbegin(); user != users.rend(); ++user)
        if (!found[*user]) todo.push_back(*user);
    }
  }
}

}  // namespace

void LayeredGraph::update_places() {
  for (size_t rank = 0; rank < layers(); ++rank) {
    const auto nodes = layer(rank);
    for (uint32_t i = 0; i < nodes.size(); ++i) place[nodes[i]] = i;
  }
}

void LayeredGraph::sort_neighbours() {
  const auto fill = [this](Neighbours& lists, const Neighbours& others) {
    std::vector<uint32_t> next(lists.begin.begin(), lists.begin.end() - 1);
    for (const uint32_t node : order)
      for (const uint32_t other : others.of(node)) lists.ids[next[other]++] = node;
  };
  fill(above, below);
  fill(below, above);
}

LayeredGraph layered_graph(std::span<const Edge> edges, std::vector<uint32_t> ranks) {
  LayeredGraph graph;
  graph.boxes = ranks.size();
  Chains chains = make_chains(edges, ranks);
  graph.chains = std::move(chains.begin);
  graph.ranks = std::move(ranks);
  graph.ranks.resize(graph.boxes + graph.chains.back());
  for (size_t i = 0; i < graph.boxes; ++i)
    for (uint32_t bend = graph.chains[i]; bend < graph.chains[i + 1]; ++bend)
      graph.ranks[graph.boxes + bend] = graph.ranks[i] + 1 + bend - graph.chains[i];
  graph.below = users_of(graph.size(), short_edges(edges, graph, chains.longest));
  graph.above = turned(graph.below);
  uint32_t layers = 0;
  for (const uint32_t rank : graph.ranks) layers = std::max(layers, rank + 1);
  graph.layer_begin.assign(layers + 1, 0);
  for (const uint32_t rank : graph.ranks) ++graph.layer_begin[rank + 1];
  for (size_t i = 0; i < layers; ++i) graph.layer_begin[i + 1] += graph.layer_begin[i];
  graph.order.resize(graph.size());
  graph.place.resize(graph.size());
  order_as_found(graph);
  graph.update_places();
  return graph;
}

}  // namespace weft::viz
