#include "weft/viz/layout.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/viz/layers.h"

namespace weft::viz {

namespace {

constexpr float kMostSize = 1e5F;  // of a box

void check(std::span<const BoxSize> boxes, std::span<const Edge> edges,
           const LayoutOptions& options) {
  if (boxes.size() > kMostLayoutNodes || edges.size() > kMostLayoutEdges)
    fail("viz.limit", "the graph has {} nodes and {} edges; at most {} and {} are drawn",
         boxes.size(), edges.size(), kMostLayoutNodes, kMostLayoutEdges);
  for (size_t i = 0; i < boxes.size(); ++i)
    for (const float side : {boxes[i].width, boxes[i].height})
      if (!(side >= 0 && side <= kMostSize))
        fail("viz.graph", "box {} has a side of {}; it has to be from 0 to {}", i, side, kMostSize);
  for (const Edge& edge : edges)
    if (edge.from >= boxes.size() || edge.to >= boxes.size())
      fail("viz.graph", "an edge goes from node {} to node {}; there are {} nodes", edge.from,
           edge.to, boxes.size());
  if (!options.before.empty() && options.before.size() != boxes.size())
    fail("viz.graph", "there are {} places from before and {} nodes; give one for each",
         options.before.size(), boxes.size());
}

// The middle of each layer, and the end of the last.
std::vector<double> layer_y(const LayeredGraph& graph, std::span<const BoxSize> boxes, double gap) {
  std::vector<double> heights(graph.layers(), 0), y;
  for (size_t i = 0; i < boxes.size(); ++i)
    heights[graph.ranks[i]] =
        std::max(heights[graph.ranks[i]], static_cast<double>(boxes[i].height));
  double top = 0;
  for (const double height : heights) {
    y.push_back(top + height / 2);
    top += height + gap;
  }
  y.push_back(top - gap);
  return y;
}

constexpr double kWorthStraight = 4;      // times the room that packed layers take
constexpr size_t kAlwaysStraight = 2000;  // nodes

double room_of(const std::vector<double>& x) {
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  return *most - *least;
}

// Where nearly all edges cross others, straight ones take more room than they are worth.
std::vector<double> layer_x(LayeredGraph& graph, std::span<const BoxSize> boxes,
                            const LayoutOptions& options) {
  if (options.effort == LayoutEffort::Coarse) return packed_x(graph, boxes, options.gap_x);
  if (!options.before.empty()) order_as_before(graph, options.before);
  order_layers(graph);
  graph.sort_neighbours();
  std::vector<double> straight = straight_x(graph, boxes, options.gap_x);
  if (graph.size() <= kAlwaysStraight) return straight;
  std::vector<double> packed = packed_x(graph, boxes, options.gap_x);
  return room_of(straight) > kWorthStraight * room_of(packed) ? packed : straight;
}

}  // namespace

std::vector<Point> Layout::route(Edge edge) const {
  std::vector<Point> points{centres[edge.from]};
  const uint32_t between = ranks[edge.to] - ranks[edge.from] - 1;
  if (between <= bends_below(edge.from)) {
    const auto first = bends.begin() + chains[edge.from];
    points.insert(points.end(), first, first + between);
  }
  points.push_back(centres[edge.to]);
  return points;
}

Layout layout_graph(std::span<const BoxSize> boxes, std::span<const Edge> edges,
                    const LayoutOptions& options) {
  check(boxes, edges, options);
  Layout layout;
  layout.chains.assign(boxes.size() + 1, 0);
  if (boxes.empty()) return layout;
  layout.ranks = layer_ranks(boxes.size(), edges);
  LayeredGraph graph = layered_graph(edges, layout.ranks);
  const std::vector<double> x = layer_x(graph, boxes, options),
                            y = layer_y(graph, boxes, options.gap_y);
  double left = x[0], right = x[0];
  for (uint32_t i = 0; i < x.size(); ++i) {
    const double half = i < boxes.size() ? static_cast<double>(boxes[i].width) / 2 : 0;
    left = std::min(left, x[i] - half);
    right = std::max(right, x[i] + half);
  }
  layout.centres.reserve(boxes.size());
  layout.bends.reserve(x.size() - boxes.size());
  for (uint32_t i = 0; i < x.size(); ++i)
    (i < boxes.size() ? layout.centres : layout.bends).push_back({x[i] - left, y[graph.ranks[i]]});
  layout.chains = std::move(graph.chains);
  layout.width = right - left;
  layout.height = y.back();
  return layout;
}

}  // namespace weft::viz
