#include <algorithm>

#include "weft/viz/layers.h"

namespace weft::viz {

namespace {

struct Placed {
  double key;
  uint32_t place, node;
};

void sort_layer(LayeredGraph& graph, size_t rank, std::vector<Placed>& placed) {
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  });
  uint32_t* order = graph.order.data() + graph.layer_begin[rank];
  for (uint32_t i = 0; i < placed.size(); ++i) {
    order[i] = placed[i].node;
    graph.place[placed[i].node] = i;
  }
}

// A layer by the mean places of its nodes' neighbours in `fixed`, the layer above or below.
void sort_by_barycentre(LayeredGraph& graph, size_t rank, const Neighbours& lists, size_t fixed,
                        std::vector<Placed>& placed) {
  placed.clear();
  const auto nodes = graph.layer(rank);
  // A node without neighbours stays about where it is.
  const double scale =
      static_cast<double>(graph.layer(fixed).size()) / static_cast<double>(nodes.size());
  for (const uint32_t node : nodes) {
    const auto others = lists.of(node);
    double sum = 0;
    for (const uint32_t other : others) sum += graph.place[other];
    const double key =
        others.empty() ? graph.place[node] * scale : sum / static_cast<double>(others.size());
    placed.push_back({key, graph.place[node], node});
  }
  sort_layer(graph, rank, placed);
}

void sweep(LayeredGraph& graph, bool down, std::vector<Placed>& placed) {
  const size_t layers = graph.layers();
  for (size_t i = 1; i < layers; ++i) {
    const size_t rank = down ? i : layers - 1 - i;
    sort_by_barycentre(graph, rank, down ? graph.above : graph.below, down ? rank - 1 : rank + 1,
                       placed);
  }
}

// Crossings of the edges from one layer to the next: a tree of sums over places counts those that
// end further right than each.
uint64_t crossings_below(const LayeredGraph& graph, size_t rank, std::vector<uint32_t>& tree) {
  const size_t width = graph.layer(rank + 1).size();
  tree.assign(width + 1, 0);
  uint64_t crossings = 0, before = 0;
  std::vector<uint32_t> places;
  for (const uint32_t node : graph.layer(rank)) {
    places.clear();
    for (const uint32_t user : graph.below.of(node)) places.push_back(graph.place[user]);
    for (const uint32_t place : places) {
      uint64_t not_right = 0;
      for (size_t i = place + 1; i > 0; i -= i & (~i + 1)) not_right += tree[i];
      crossings += before - not_right;
    }
    for (const uint32_t place : places)
      for (size_t i = place + 1; i <= width; i += i & (~i + 1)) ++tree[i];
    before += places.size();
  }
  return crossings;
}

int sweeps_for(size_t nodes) {
  if (nodes <= 20'000) return 12;
  return nodes <= 300'000 ? 6 : 2;
}

constexpr size_t kMostCounted = 300'000;  // nodes of graphs whose crossings are counted

}  // namespace

uint64_t count_crossings(const LayeredGraph& graph) {
  std::vector<uint32_t> tree;
  uint64_t crossings = 0;
  for (size_t rank = 0; rank + 1 < graph.layers(); ++rank)
    crossings += crossings_below(graph, rank, tree);
  return crossings;
}

void order_layers(LayeredGraph& graph) {
  const bool counted = graph.size() <= kMostCounted;
  std::vector<uint32_t> best = graph.order;
  uint64_t fewest = counted ? count_crossings(graph) : UINT64_MAX;
  std::vector<Placed> placed;
  int without_gain = 0;
  for (int i = 0; i < sweeps_for(graph.size()) && fewest > 0 && without_gain < 4; ++i) {
    sweep(graph, i % 2 == 0, placed);
    const uint64_t crossings = counted ? count_crossings(graph) : 0;
    without_gain = crossings < fewest ? 0 : without_gain + 1;
    if (crossings >= fewest && counted) continue;
    if (counted) fewest = crossings;
    best = graph.order;
  }
  graph.order = std::move(best);
  graph.update_places();
}

void order_as_before(LayeredGraph& graph, std::span<const double> before) {
  std::vector<Placed> placed;
  const auto source = [&](uint32_t node) {  // of a virtual node: the box its chain begins at
    if (!graph.is_virtual(node)) return node;
    const auto found = std::upper_bound(graph.chains.begin(), graph.chains.end(),
                                        node - static_cast<uint32_t>(graph.boxes));
    return static_cast<uint32_t>(found - graph.chains.begin() - 1);
  };
  for (size_t rank = 0; rank < graph.layers(); ++rank) {
    placed.clear();
    for (const uint32_t node : graph.layer(rank))
      placed.push_back({before[source(node)], graph.place[node], node});
    sort_layer(graph, rank, placed);
  }
}

}  // namespace weft::viz
