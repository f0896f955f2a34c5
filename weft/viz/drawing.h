// Drawing: a graph of a session laid out, for whoever shows it piece by piece.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weft/viz/collapse.h"
#include "weft/viz/graph_data.h"
#include "weft/viz/tiles.h"

namespace weft {
class JsonWriter;
}

namespace weft::viz {

enum class GroupBy : uint8_t { None, Line, Layer, Kernel };

struct DrawingOptions {
  GroupBy group = GroupBy::None;
  std::vector<uint32_t> open = {};  ///< groups that are drawn as their nodes
};

/// Const access from several threads is safe, refine() beside it, too.
class Drawing {
 public:
  /// A large graph is drawn coarsely until refine(). `before`: of the same graph with other groups;
  /// boxes stay near where they were. Errors: those of layout_graph.
  Drawing(std::shared_ptr<const GraphData> data, const DrawingOptions& options,
          const Drawing* before = nullptr);

  const std::shared_ptr<const GraphData>& data() const { return data_; }
  bool fine() const;
  void refine();

  /// {"form", "title", "nodes", "boxes", "edges", "width", "height", "level", "fine", "loops",
  /// "back", "kinds": ["add"], "groups": [{"group", "name", "nodes", "open"}]}; level: where all of
  /// it fits 900 pixels; loops: edges that go back, which are no lines of tiles; back: where they
  /// are, of the first of them x, y and half the width of the box they leave and of that they go
  /// to.
  std::string json() const;
  /// Lengths are tenths of the tile's pixels, from its corner. {"boxes": [box, x, y, width, height,
  /// kind, mark, ...], "labels": ["..."], "cells": [left, top, right, bottom, count, kind, mark,
  /// ...], "lines": [x, y, x, y, cut, source, ...], "share"}; x and y are of centres, source is
  /// the box that a line comes from.
  std::string tile_json(TileId id) const;
  /// {"box", "x", "y", "width", "height", "label", "text", "line", "dtype", "shape", "mark",
  /// "kernel", "bytes", "ns", "group", "nodes", "members": [{"node", "label"}],
  /// "sources": [{"box", "label", "route": [x, y, ...]}], "users", "left", "right", "complete"};
  /// route: from box to box over its bends; complete: all of it is there. What lies deep in a large
  /// graph has its texts only after half a second; without_waiting: labels are then of op and
  /// dtype, and shape and text are empty.
  std::string box_json(uint32_t box, bool without_waiting = false) const;
  /// The box that node `node` of the graph is part of. Error: viz.parameter.
  uint32_t box_of(uint64_t node) const;
  /// brief: of op and dtype alone.
  std::string label(uint32_t box, bool brief = false) const;

 private:
  struct Placed;  // what refine() replaces

  void make_groups(const DrawingOptions& options);
  std::vector<Edge> node_edges();
  void write_back_edges(JsonWriter& json, const Layout& layout) const;
  std::vector<double> places_of(const Drawing& before) const;
  void size_boxes();
  std::shared_ptr<Placed> placed() const;
  void write_neighbours(JsonWriter& json, uint32_t box, const Layout& layout, bool brief) const;
  std::string node_label(size_t node, bool brief) const;
  uint32_t node_of(uint32_t box) const { return graph_.members.of(box)[0]; }

  const std::shared_ptr<const GraphData> data_;
  std::vector<std::string> group_names_;
  std::vector<uint32_t> group_nodes_;  // how many each has
  std::vector<bool> group_open_;
  std::vector<uint32_t> groups_;  // of nodes; kNoGroup where it is open
  size_t loops_ = 0;
  std::vector<Edge> back_;  // the first of those, by node
  CollapsedGraph graph_;
  std::vector<BoxSize> boxes_;
  std::vector<BoxLook> looks_;
  std::vector<double> before_;
  mutable std::mutex mutex_;
  std::shared_ptr<Placed> placed_;
};

}  // namespace weft::viz
