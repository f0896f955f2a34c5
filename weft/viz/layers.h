// LayeredGraph: a graph whose edges all go from one layer to the next, virtual nodes on longer
// ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/viz/layout.h"

namespace weft::viz {

/// Lists of neighbours, one after the other: those of node i are ids[begin[i]] to ids[begin[i +
/// 1]].
struct Neighbours {
  std::vector<uint32_t> begin, ids;
  std::span<const uint32_t> of(uint32_t node) const {
    return std::span(ids).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

/// Users of every node, in the order of `edges`.
Neighbours users_of(size_t nodes, std::span<const Edge> edges);

/// Longest paths from the nodes without sources; a node with more users than sources then moves
/// down to the first of its users, which makes its edges shorter. Errors: viz.graph for a cycle.
std::vector<uint32_t> layer_ranks(size_t nodes, std::span<const Edge> edges);

struct LayeredGraph {
  size_t boxes = 0;             ///< nodes below are boxes, the others virtual
  std::vector<uint32_t> ranks;  ///< of all nodes
  std::vector<uint32_t>
      chains;               ///< as Layout's; the bends of box i are nodes boxes + chains[i], ...
  Neighbours above, below;  ///< each list in the order of the layer it is about
  std::vector<uint32_t> layer_begin;  ///< of `order`, and one more
  std::vector<uint32_t> order;        ///< nodes, layer by layer from left to right
  std::vector<uint32_t> place;        ///< of a node in its layer

  size_t size() const { return ranks.size(); }
  size_t layers() const { return layer_begin.size() - 1; }
  bool is_virtual(uint32_t node) const { return node >= boxes; }
  std::span<const uint32_t> layer(size_t rank) const {
    return std::span(order).subspan(layer_begin[rank], layer_begin[rank + 1] - layer_begin[rank]);
  }
  /// After `order` has changed.
  void update_places();
  /// Brings the lists of neighbours into the order of their layers.
  void sort_neighbours();
};

/// With layers in the order in which a walk down from the top finds their nodes.
LayeredGraph layered_graph(std::span<const Edge> edges, std::vector<uint32_t> ranks);

/// Barycentre sweeps, down and up in turns, as many as the size allows; keeps the order with the
/// fewest crossings where they can be counted in time.
void order_layers(LayeredGraph& graph);
/// By where boxes lay before.
void order_as_before(LayeredGraph& graph, std::span<const double> before);
/// Pairs of edges that cross (Barth, Mutzel and Juenger 2004).
uint64_t count_crossings(const LayeredGraph& graph);

/// x of the centres of all nodes. `widths` of boxes; virtual nodes have none.
std::vector<double> straight_x(const LayeredGraph& graph, std::span<const BoxSize> boxes,
                               double gap);
/// Each layer packed, around a common middle.
std::vector<double> packed_x(const LayeredGraph& graph, std::span<const BoxSize> boxes, double gap);

}  // namespace weft::viz
