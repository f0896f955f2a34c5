// What a square of a drawing shows: everything when near, little when far.
#include "weft/viz/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/io/scratch_dir.h"
#include "weft/viz/collapse.h"

namespace weft::viz {
namespace {

struct Drawn {
  Drawn(size_t nodes, std::vector<Edge> all)
      : boxes(nodes, {80, 24}),
        edges(std::move(all)),
        layout(layout_graph(boxes, edges)),
        index(layout, boxes, edges, {}) {
    index.finish_lines();
  }
  std::vector<BoxSize> boxes;
  std::vector<Edge> edges;
  Layout layout;
  TileIndex index;
};

std::vector<Edge> grid_edges(uint32_t side) {
  std::vector<Edge> edges;
  for (uint32_t i = side; i < side * side; ++i) {
    edges.push_back({i - side, i});
    if (i % side > 0) edges.push_back({i - side - 1, i});
  }
  return edges;
}

// The tiles of a level that a drawing has a part in.
std::vector<Tile> all_tiles(const Drawn& drawn, int level) {
  std::vector<Tile> tiles;
  const double side = std::ldexp(kTilePixels, level);
  for (int64_t y = 0; static_cast<double>(y) * side < drawn.layout.height; ++y)
    for (int64_t x = 0; static_cast<double>(x) * side < drawn.layout.width; ++x)
      tiles.push_back(drawn.index.tile({level, x, y}));
  return tiles;
}

TEST(Tiles, NearTilesHaveEveryBoxAndEveryLine) {
  const Drawn drawn(400, grid_edges(20));
  for (const int level : {-1, 0, 2}) {
    std::set<uint32_t> boxes;
    std::set<std::pair<std::pair<double, double>, std::pair<double, double>>> lines;
    for (const Tile& tile : all_tiles(drawn, level)) {
      EXPECT_TRUE(tile.cells.empty());
      for (const TileBox& box : tile.boxes) boxes.insert(box.box);
      for (const TileLine& line : tile.lines)
        lines.insert({{line.from.x, line.from.y}, {line.to.x, line.to.y}});
    }
    EXPECT_EQ(boxes.size(), 400u);
    EXPECT_EQ(lines.size(), drawn.edges.size());
  }
}

/// Bends are shared by all edges of the box above them.
TEST(Tiles, LinesKnowTheBoxTheyComeFrom) {
  std::vector<Edge> edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}, {1, 4}};
  const Drawn drawn(5, edges);
  ASSERT_FALSE(drawn.layout.bends.empty());
  size_t found = 0;
  for (const Edge& e : edges) {
    const std::vector<Point> route = drawn.layout.route(e);
    for (size_t i = 1; i < route.size(); ++i)
      for (const Tile& tile : all_tiles(drawn, 1))
        for (const TileLine& line : tile.lines)
          if (line.from == route[i - 1] && line.to == route[i]) {
            EXPECT_EQ(line.source, e.from);
            ++found;
          }
  }
  EXPECT_GE(found, edges.size() + 3);
}

/// Lines to users that lie far to the side cover each other and whatever is between.
TEST(Tiles, FlatLinesAreDrawnAtTheirEndsAlone) {
  constexpr uint32_t kUsers = 200;
  std::vector<Edge> edges;
  for (uint32_t i = 1; i <= kUsers; ++i) edges.push_back({0, i});
  const Drawn drawn(kUsers + 1, edges);
  ASSERT_GT(drawn.layout.width, 10'000);
  std::set<double> whole, stubs;
  for (const Tile& tile : all_tiles(drawn, 0))
    for (const TileLine& line : tile.lines) {
      EXPECT_LE(std::abs(line.from.x - line.to.x), 1500);
      (line.cut ? stubs : whole).insert(line.to.x);
    }
  EXPECT_GT(whole.size(), 10u);
  EXPECT_GT(stubs.size(), 100u);
  EXPECT_EQ(whole.size() + stubs.size(), kUsers) << "each user is drawn with what it reads";
}

/// Lines are thinned out by the box that they begin at: all of these begin at one.
TEST(Tiles, OneBoxMayHaveMoreLinesThanATileShows) {
  constexpr uint32_t kUsers = 9000;
  std::vector<Edge> edges;
  for (uint32_t i = 1; i <= kUsers; ++i) edges.push_back({0, i});
  const Drawn drawn(kUsers + 1, edges);
  for (const Tile& tile : all_tiles(drawn, drawn.index.level_for(900))) {
    EXPECT_LE(tile.lines.size(), 4000u);
    EXPECT_FALSE(tile.lines.empty());
  }
}

TEST(Tiles, FarTilesCountEveryBoxOnce) {
  const Drawn drawn(10000, grid_edges(100));
  const int level = drawn.index.level_for(900);
  for (const int l : {4, level, level + 3}) {
    size_t boxes = 0;
    for (const Tile& tile : all_tiles(drawn, l)) {
      EXPECT_LE(tile.cells.size(), 4096u);
      EXPECT_LE(tile.lines.size(), 4001u);
      for (const TileCell& cell : tile.cells) boxes += cell.count;
    }
    EXPECT_EQ(boxes, 10000u) << l;
  }
}

TEST(Tiles, ALineCrossesTilesThatNoneOfItsEndsIsIn) {
  // One source, 100 users side by side: the line to the last of them goes over many tiles.
  std::vector<Edge> edges;
  for (uint32_t i = 1; i <= 100; ++i) edges.push_back({0, i});
  const Drawn drawn(101, edges);
  for (int64_t x = 0; static_cast<double>(x) * kTilePixels < drawn.layout.width; ++x)
    EXPECT_GT(drawn.index.tile({0, x, 0}).lines.size(), 0u) << x;
}

TEST(Tiles, MarkedBoxesAreSeenFromFar) {
  const std::vector<Edge> edges = grid_edges(60);
  const std::vector<BoxSize> boxes(3600, {80, 24});
  std::vector<BoxLook> looks(3600);
  looks[1800] = {3, 2};
  const Layout layout = layout_graph(boxes, edges);
  const TileIndex index(layout, boxes, edges, looks);
  const Tile tile = index.tile({index.level_for(kTilePixels), 0, 0});
  EXPECT_EQ(std::count_if(tile.cells.begin(), tile.cells.end(),
                          [](const TileCell& c) { return c.look.mark == 2; }),
            1);
}

TEST(Tiles, EmptyDrawingsAndPlacesOutside) {
  const Drawn nothing(0, {});
  EXPECT_TRUE(nothing.index.tile({0, 0, 0}).boxes.empty());
  const Drawn drawn(4, {{0, 1}, {1, 2}, {2, 3}});
  for (const int64_t far : {INT64_MAX, INT64_MIN}) {
    const Tile tile = drawn.index.tile({kHighestLevel, far, far});
    EXPECT_TRUE(tile.boxes.empty() && tile.cells.empty() && tile.lines.empty());
  }
  EXPECT_ERROR(drawn.index.tile({31, 0, 0}), "viz.tile: there is no level 31; levels are -2 to 30");
}

TEST(Tiles, NeighboursInTheLayer) {
  const Drawn drawn(4, {{0, 1}, {0, 2}, {0, 3}});
  std::vector<uint32_t> layer{1, 2, 3};
  std::sort(layer.begin(), layer.end(), [&](uint32_t a, uint32_t b) {
    return drawn.layout.centres[a].x < drawn.layout.centres[b].x;
  });
  EXPECT_EQ(drawn.index.beside(layer[1]), std::pair(layer[0], layer[2]));
  EXPECT_EQ(drawn.index.beside(layer[0]), std::pair(layer[0], layer[1]));
  EXPECT_EQ(drawn.index.beside(0), std::pair(0u, 0u));
}

TEST(Collapse, AGroupIsOneBox) {
  // 0 -> 1 -> 2 -> 3, 1 and 2 in a group.
  const CollapsedGraph graph = collapse(std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}, {1, 3}},
                                        std::vector<uint32_t>{kNoGroup, 5, 5, kNoGroup});
  EXPECT_EQ(graph.box_of, (std::vector<uint32_t>{0, 1, 1, 2}));
  EXPECT_EQ(graph.group_of, (std::vector<uint32_t>{kNoGroup, 5, kNoGroup}));
  EXPECT_EQ(graph.edges, (std::vector<Edge>{{0, 1}, {1, 2}}));
  EXPECT_EQ(graph.members.of(1).size(), 2u);
}

TEST(Collapse, APathThatComesBackMakesTwoOfAGroup) {
  // 0 and 2 in one group, 1 between them.
  const CollapsedGraph graph =
      collapse(std::vector<Edge>{{0, 1}, {1, 2}}, std::vector<uint32_t>{7, kNoGroup, 7});
  EXPECT_EQ(graph.size(), 3u);
  EXPECT_EQ(graph.group_of, (std::vector<uint32_t>{7, kNoGroup, 7}));
}

TEST(Collapse, WhatIsDrawnNeverHasCycles) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const uint32_t nodes = 2 + seed;
    std::vector<Edge> edges;
    for (uint32_t to = 1; to < nodes; ++to)
      for (int i = 0; i < 2; ++i) edges.push_back({static_cast<uint32_t>(random() % to), to});
    std::vector<uint32_t> groups;
    for (uint32_t i = 0; i < nodes; ++i)
      groups.push_back(random() % 3 == 0 ? kNoGroup : static_cast<uint32_t>(i / 7 % 5));
    const CollapsedGraph graph = collapse(edges, groups);
    EXPECT_EQ(layer_ranks(graph.size(), graph.edges).size(), graph.size());
    for (uint32_t i = 0; i < nodes; ++i) {
      const auto members = graph.members.of(graph.box_of[i]);
      EXPECT_NE(std::find(members.begin(), members.end(), i), members.end());
    }
  }
}

TEST(Collapse, Errors) {
  EXPECT_ERROR(collapse(std::vector<Edge>{{0, 2}, {2, 3}, {3, 2}},
                        std::vector<uint32_t>{3, 3, kNoGroup, kNoGroup}),
               "viz.graph: the graph has a cycle");
  EXPECT_ERROR(collapse(std::vector<Edge>{{0, 2}}, std::vector<uint32_t>{kNoGroup, kNoGroup}),
               "there are 2 nodes");
}

TEST(Tiles, SlowAMillionNodes) {
  std::vector<Edge> chain;
  for (uint32_t i = 1; i < 1'000'000; ++i) chain.push_back({i - 1, i});
  for (const auto& edges : {grid_edges(1000), chain}) {
    const Drawn drawn(1'000'000, edges);
    for (int level = kLowestLevel; level <= drawn.index.level_for(900); ++level) {
      const double side = std::ldexp(kTilePixels, level);
      const Tile tile =
          drawn.index.tile({level, static_cast<int64_t>(drawn.layout.width / 2 / side),
                            static_cast<int64_t>(drawn.layout.height / 2 / side)});
      EXPECT_GT(tile.boxes.size() + tile.cells.size(), 0u);
      EXPECT_LE(tile.boxes.size(), 6000u);
      EXPECT_LE(tile.lines.size(), 4001u);
    }
  }
}

}  // namespace
}  // namespace weft::viz
