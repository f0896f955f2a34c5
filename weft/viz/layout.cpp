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
std::vector<double> layer_y(std::span<const uint32_t> ranks, std::span<const BoxSize> boxes,
                            double gap) {
  std::vector<double> heights, y;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (ranks[i] >= heights.size()) heights.resize(ranks[i] + 1, 0);
    heights[ranks[i]] = std::max(heights[ranks[i]], static_cast<double>(boxes[i].height));
  }
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
  if (!options.before.empty()) order_as_before(graph, options.before);
  order_layers(graph);
  graph.sort_neighbours();
  std::vector<double> straight = straight_x(graph, boxes, options.gap_x);
  if (graph.size() <= kAlwaysStraight) return straight;
  std::vector<double> packed = packed_x(graph, boxes, options.gap_x);
  return room_of(straight) > kWorthStraight * room_of(packed) ? packed : straight;
}

// Layers packed in the order of their boxes, around a common middle.
std::vector<double> coarse_x(std::span<const uint32_t> ranks, std::span<const BoxSize> boxes,
                             double gap) {
  std::vector<double> x(boxes.size()), ends;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (ranks[i] >= ends.size()) ends.resize(ranks[i] + 1, -gap);
    const auto width = static_cast<double>(boxes[i].width);
    x[i] = ends[ranks[i]] + gap + width / 2;
    ends[ranks[i]] = x[i] + width / 2;
  }
  for (size_t i = 0; i < boxes.size(); ++i) x[i] -= ends[ranks[i]] / 2;
  return x;
}

// Moves all to the right of 0, and says how wide it is; x of boxes, then of bends.
void place(Layout& layout, std::span<const BoxSize> boxes, const std::vector<double>& x,
           const std::vector<double>& y, std::span<const uint32_t> ranks) {
  double left = x[0], right = x[0];
  for (uint32_t i = 0; i < x.size(); ++i) {
    const double half = i < boxes.size() ? static_cast<double>(boxes[i].width) / 2 : 0;
    left = std::min(left, x[i] - half);
    right = std::max(right, x[i] + half);
  }
  layout.centres.reserve(boxes.size());
  layout.bends.reserve(x.size() - boxes.size());
  for (uint32_t i = 0; i < x.size(); ++i)
    (i < boxes.size() ? layout.centres : layout.bends).push_back({x[i] - left, y[ranks[i]]});
  layout.width = right - left;
  layout.height = y.back();
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
  const std::vector<double> y = layer_y(layout.ranks, boxes, options.gap_y);
  if (options.effort == LayoutEffort::Coarse) {
    place(layout, boxes, coarse_x(layout.ranks, boxes, options.gap_x), y, layout.ranks);
    return layout;
  }
  LayeredGraph graph = layered_graph(edges, layout.ranks);
  place(layout, boxes, layer_x(graph, boxes, options), y, graph.ranks);
  layout.chains = std::move(graph.chains);
  return layout;
}

}  // namespace weft::viz
