// Boxes that do not overlap, edges that go down, and graphs that have no drawing.
#include "weft/viz/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "tests/io/scratch_dir.h"
#include "weft/base/format.h"
#include "weft/viz/layers.h"

namespace weft::viz {
namespace {

std::vector<BoxSize> boxes_of(size_t count, float width = 80, float height = 24) {
  return std::vector<BoxSize>(count, {width, height});
}

void expect_drawing(std::span<const BoxSize> boxes, std::span<const Edge> edges,
                    const Layout& layout) {
  std::map<uint32_t, std::vector<uint32_t>> layers;
  for (uint32_t i = 0; i < boxes.size(); ++i) layers[layout.ranks[i]].push_back(i);
  for (auto& [rank, nodes] : layers) {
    std::sort(nodes.begin(), nodes.end(),
              [&](uint32_t a, uint32_t b) { return layout.centres[a].x < layout.centres[b].x; });
    for (size_t i = 1; i < nodes.size(); ++i) {
      const double between = layout.centres[nodes[i]].x - layout.centres[nodes[i - 1]].x;
      const double needed = (static_cast<double>(boxes[nodes[i]].width) +
                             static_cast<double>(boxes[nodes[i - 1]].width)) /
                            2;
      ASSERT_GE(between + 1e-6, needed) << "layer " << rank;
    }
  }
  for (const Edge& edge : edges) {
    ASSERT_LT(layout.ranks[edge.from], layout.ranks[edge.to]);
    const std::vector<Point> route = layout.route(edge);
    for (size_t i = 1; i < route.size(); ++i) ASSERT_LT(route[i - 1].y, route[i].y);
  }
  for (uint32_t i = 0; i < boxes.size(); ++i) {
    const double half = static_cast<double>(boxes[i].width) / 2;
    ASSERT_GE(layout.centres[i].x - half, -1e-6);
    ASSERT_LE(layout.centres[i].x + half, layout.width + 1e-6);
  }
}

std::vector<Edge> random_edges(uint32_t nodes, size_t count, uint32_t reach, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Edge> edges;
  for (size_t i = 0; i < count; ++i) {
    const auto to = static_cast<uint32_t>(1 + random() % (nodes - 1));
    edges.push_back({static_cast<uint32_t>(to - 1 - random() % std::min(to, reach)), to});
  }
  return edges;
}

TEST(Layout, AChainIsStraight) {
  const auto boxes = boxes_of(5);
  const std::vector<Edge> edges{{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  const Layout layout = layout_graph(boxes, edges);
  for (const Point& centre : layout.centres) EXPECT_EQ(centre.x, 40);
  EXPECT_EQ(layout.centres[1].y, 12 + 24 + 36);
  EXPECT_EQ(layout.width, 80);
  EXPECT_EQ(layout.height, 5 * 24 + 4 * 36);
}

TEST(Layout, ADiamondIsSymmetric) {
  const auto boxes = boxes_of(4);
  const std::vector<Edge> edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  const Layout layout = layout_graph(boxes, edges);
  expect_drawing(boxes, edges, layout);
  EXPECT_EQ(layout.centres[0].x, layout.centres[3].x);
  EXPECT_EQ(layout.centres[1].x + layout.centres[2].x, 2 * layout.centres[0].x);
}

TEST(Layout, ALongEdgeGoesAroundBoxesAndStraightDown) {
  const auto boxes = boxes_of(4);
  const std::vector<Edge> edges{{0, 1}, {1, 2}, {2, 3}, {0, 3}};
  const Layout layout = layout_graph(boxes, edges);
  const std::vector<Point> route = layout.route({0, 3});
  ASSERT_EQ(route.size(), 4u);
  EXPECT_EQ(route[1].x, route[2].x);
  EXPECT_GE(std::abs(route[1].x - layout.centres[1].x), 40);
}

TEST(Layout, SourcesLieAboveTheirUsers) {
  // 0 -> 1 -> 2 -> 4, 3 -> 4: 3 is a constant of the last.
  const Layout layout =
      layout_graph(boxes_of(5), std::vector<Edge>{{0, 1}, {1, 2}, {2, 4}, {3, 4}});
  EXPECT_EQ(layout.ranks, (std::vector<uint32_t>{0, 1, 2, 2, 3}));
}

TEST(Layout, ATreeAndALadderHaveNoCrossings) {
  std::vector<Edge> tree;
  for (uint32_t i = 1; i < 127; ++i) tree.push_back({(i - 1) / 2, i});
  std::vector<Edge> ladder;
  for (uint32_t i = 0; i + 2 < 200; i += 2) {
    ladder.push_back({i, i + 2});
    ladder.push_back({i + 1, i + 3});
    ladder.push_back({i, i + 3});
  }
  for (const auto& [nodes, edges] :
       {std::pair(size_t{127}, tree), std::pair(size_t{200}, ladder)}) {
    LayeredGraph graph = layered_graph(edges, layer_ranks(nodes, edges));
    order_layers(graph);
    EXPECT_EQ(count_crossings(graph), 0u);
    expect_drawing(boxes_of(nodes), edges, layout_graph(boxes_of(nodes), edges));
  }
}

TEST(Layout, CrossingsAreThoseOfAllPairs) {
  const std::vector<Edge> edges = random_edges(60, 150, 60, 7);
  LayeredGraph graph = layered_graph(edges, layer_ranks(60, edges));
  uint64_t crossings = 0;
  for (size_t rank = 0; rank + 1 < graph.layers(); ++rank) {
    std::vector<std::pair<uint32_t, uint32_t>> ends;
    for (const uint32_t node : graph.layer(rank))
      for (const uint32_t user : graph.below.of(node))
        ends.emplace_back(graph.place[node], graph.place[user]);
    for (const auto& a : ends)
      for (const auto& b : ends) crossings += a.first < b.first && a.second > b.second;
  }
  EXPECT_EQ(count_crossings(graph), crossings);
  order_layers(graph);
  EXPECT_LT(count_crossings(graph), crossings);
}

TEST(Layout, RandomGraphsOfAllShapes) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const uint32_t nodes = 2 + seed * 7;
    const std::vector<Edge> edges = random_edges(nodes, nodes * (1 + seed % 3), 1 + seed * 3, seed);
    std::mt19937 random(seed);
    std::vector<BoxSize> boxes;
    for (uint32_t i = 0; i < nodes; ++i)
      boxes.push_back({static_cast<float>(random() % 200), static_cast<float>(random() % 50)});
    const Layout layout = layout_graph(boxes, edges);
    expect_drawing(boxes, edges, layout);
    expect_drawing(boxes, edges, layout_graph(boxes, edges, {.effort = LayoutEffort::Coarse}));
    EXPECT_EQ(layout.centres, layout_graph(boxes, edges).centres) << "the same again";
  }
}

TEST(Layout, WhatWasDrawnBeforeKeepsItsOrder) {
  // Four trees beside each other, in the opposite order of before.
  std::vector<Edge> edges;
  std::vector<double> before(12);
  for (uint32_t i = 0; i < 4; ++i) {
    edges.push_back({3 * i, 3 * i + 1});
    edges.push_back({3 * i, 3 * i + 2});
    for (uint32_t k = 0; k < 3; ++k) before[3 * i + k] = 1000 - 100.0 * i + k;
  }
  const Layout layout = layout_graph(boxes_of(12), edges, {.before = before});
  for (uint32_t i = 1; i < 4; ++i) EXPECT_LT(layout.centres[3 * i].x, layout.centres[3 * i - 3].x);
}

TEST(Layout, NothingAndOneBox) {
  EXPECT_EQ(layout_graph({}, {}).centres.size(), 0u);
  EXPECT_EQ(layout_graph(boxes_of(1), {}).centres, (std::vector<Point>{{40, 12}}));
}

TEST(Layout, VirtualNodesAreBounded) {
  // A chain of 20000, and from each of its first 1000 nodes an edge to the end.
  std::vector<Edge> edges;
  for (uint32_t i = 1; i < 20000; ++i) edges.push_back({i - 1, i});
  for (uint32_t i = 0; i < 1000; ++i) edges.push_back({i, 19999});
  const Layout layout = layout_graph(boxes_of(20000), edges);
  EXPECT_LE(layout.bends.size(), 64096u);
  EXPECT_EQ(layout.route({0, 19999}).size(), 2u);
  expect_drawing(boxes_of(20000), edges, layout);
}

TEST(LayoutErrors, SayWhatIsWrong) {
  const auto boxes = boxes_of(3);
  const auto error = [&](std::vector<Edge> edges) {
    return error_of([&] { layout_graph(boxes, edges); });
  };
  EXPECT_EQ(error({{0, 1}, {1, 2}, {2, 1}}),
            "viz.graph: the graph has a cycle, through node 1 or above it; only graphs without "
            "cycles have layers");
  EXPECT_EQ(error({{1, 1}}),
            "viz.graph: the graph has a cycle, through node 1 or above it; only graphs without "
            "cycles have layers");
  EXPECT_EQ(error({{0, 3}}), "viz.graph: an edge goes from node 0 to node 3; there are 3 nodes");
  for (const float side :
       {-1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    EXPECT_EQ(error_of([&] { layout_graph(std::vector<BoxSize>{{side, 1}}, {}); }),
              strformat("viz.graph: box 0 has a side of {}; it has to be from 0 to 100000", side));
  EXPECT_EQ(error_of([&] { layout_graph(boxes, {}, {.before = std::vector<double>{1}}); }),
            "viz.graph: there are 1 places from before and 3 nodes; give one for each");
  EXPECT_EQ(error_of([&] { layout_graph(boxes_of(kMostLayoutNodes + 1), {}); }),
            "viz.limit: the graph has 4194305 nodes and 0 edges; at most 4194304 and 16777216 are "
            "drawn");
}

TEST(Layout, SlowAMillionNodes) {
  constexpr uint32_t kNodes = 1'000'000, kSide = 1000;
  std::vector<Edge> chain, grid;
  for (uint32_t i = 1; i < kNodes; ++i) chain.push_back({i - 1, i});
  for (uint32_t i = 0; i < kNodes; ++i) {
    if (i >= kSide) grid.push_back({i - kSide, i});
    if (i >= kSide && i % kSide > 0) grid.push_back({i - kSide - 1, i});
  }
  const auto boxes = boxes_of(kNodes);
  for (const auto& edges : {chain, grid, random_edges(kNodes, 2 * kNodes, 1000, 1)})
    expect_drawing(boxes, edges, layout_graph(boxes, edges));
}

}  // namespace
}  // namespace weft::viz
