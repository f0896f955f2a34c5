// collapse: groups of a graph's nodes, each drawn as one box.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/viz/layers.h"

namespace weft::viz {

constexpr uint32_t kNoGroup = UINT32_MAX;

struct CollapsedGraph {
  std::vector<uint32_t> box_of;    ///< of a node
  std::vector<uint32_t> group_of;  ///< of a box; kNoGroup: it is a single node
  Neighbours members;              ///< of a box: its nodes, ascending
  std::vector<Edge> edges;         ///< between boxes, each once
  size_t size() const { return group_of.size(); }
};

/// `groups[i]` is node i's, or kNoGroup for a node that stays by itself. A group is one box where
/// no path leaves it and comes back; else it is as many as such paths make of it, so that what is
/// drawn has no cycles where the graph has none. Boxes are in the order of their first nodes.
/// Where nothing is in a group, cycles stay. Error: viz.graph for an edge to a node that is not
/// there, or a cycle that is in the way.
CollapsedGraph collapse(std::span<const Edge> edges, std::span<const uint32_t> groups);

}  // namespace weft::viz
