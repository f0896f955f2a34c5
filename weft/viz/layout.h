// Layered drawing of a directed acyclic graph: where boxes and the bends of edges lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::viz {

struct BoxSize {
  float width = 0, height = 0;
};
/// Drawn from above to below; both are indices of boxes.
struct Edge {
  uint32_t from = 0, to = 0;
  bool operator==(const Edge&) const = default;
};
struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

enum class LayoutEffort : uint8_t {
  Coarse,  ///< ranks, layers packed in the order of their boxes, no bends: what to show first
  Full,    ///< few crossings, straight edges
};

struct LayoutOptions {
  LayoutEffort effort = LayoutEffort::Full;
  double gap_x = 24, gap_y = 36;  ///< between boxes of a layer, and between layers
  /// Where boxes lay before, one x for each; empty: nowhere. Boxes keep that order where crossings
  /// let them: what is drawn after a group was expanded looks like what was drawn before.
  std::span<const double> before = {};
};

constexpr size_t kMostLayoutNodes = size_t{4} << 20, kMostLayoutEdges = size_t{16} << 20;

struct Layout {
  std::vector<Point> centres;   ///< of boxes; the leftmost box begins at x = 0, the first at y = 0
  std::vector<uint32_t> ranks;  ///< layers of boxes, from 0 at the top
  std::vector<Point> bends;     ///< of edges over several layers, one in each layer between
  std::vector<uint32_t>
      chains;  ///< the bends below box i begin at chains[i]; all its edges share them
  double width = 0, height = 0;

  /// From centre to centre, with the bends between. An edge that is longer than the bends below
  /// its source goes straight.
  std::vector<Point> route(Edge edge) const;
  uint32_t bends_below(uint32_t node) const { return chains[node + 1] - chains[node]; }
};

/// Ranks by longest paths, edges over several layers as chains of virtual nodes (as many in all as
/// there are boxes, a few times over: longer edges get none), barycentre sweeps (Sugiyama, Tagawa
/// and Toda 1981), x by Brandes and Koepf 2001. The same input gives the same drawing.
///   const Layout drawn = layout_graph(boxes, edges);
/// Errors: viz.graph (an edge to a box that is not there, a cycle, a box without a size),
/// viz.limit.
Layout layout_graph(std::span<const BoxSize> boxes, std::span<const Edge> edges,
                    const LayoutOptions& options = {});

}  // namespace weft::viz
