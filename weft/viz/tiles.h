// TileIndex: what of a drawing a square of the screen shows, at any zoom, in bounded time and size.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "weft/viz/layout.h"

namespace weft::viz {

constexpr int kTilePixels = 512;
constexpr int kLowestLevel = -2, kHighestLevel = 30;

/// At level k a pixel is 2^k units of the drawing; tile (x, y) begins at 512 x 2^k in both
/// directions.
struct TileId {
  int level = 0;
  int64_t x = 0, y = 0;
};

/// What boxes look like: an index of a colour, and whether anything happened to them.
struct BoxLook {
  uint16_t kind = 0;
  uint8_t mark = 0;
};

struct TileBox {
  uint32_t box;
  double x, y;  ///< its centre
};
/// Boxes too small to be seen one by one.
struct TileCell {
  double left, top, right, bottom;
  uint32_t count;  ///< of boxes
  BoxLook look;    ///< of the first of them, where none is marked; else of the first that is
};
struct TileLine {
  Point from, to;
  bool cut;             ///< the edge goes on, further than it is drawn: it is long, or flat
  uint32_t source = 0;  ///< the box that the edge comes from
};
struct Tile {
  std::vector<TileBox> boxes;
  std::vector<TileCell> cells;  ///< in place of boxes, where those are small
  std::vector<TileLine> lines;
  uint32_t line_share = 1;  ///< lines are those of one box in so many
};

class TileIndex {
 public:
  /// All outlive it. `looks` is empty or has one for each box.
  TileIndex(const Layout& layout, std::span<const BoxSize> boxes, std::span<const Edge> edges,
            std::span<const BoxLook> looks);

  /// At most some thousand of each. Errors: viz.tile where there is no such level.
  Tile tile(TileId id) const;
  /// Before this, tiles have only the lines that are enough where all of a large drawing is seen.
  /// Others may ask for tiles meanwhile.
  void finish_lines();
  /// The lowest level at which all of the drawing fits into a square of so many pixels.
  int level_for(double pixels) const;
  /// The boxes left and right of one in its layer; itself at the ends.
  std::pair<uint32_t, uint32_t> beside(uint32_t box) const;

 private:
  struct Rectangle {
    double left, top, right, bottom;
  };
  struct Segment {
    double left;            // the lesser x of its ends
    uint32_t above, below;  // boxes, or bends behind those
  };
  /// Segments of one box in `share`, by layers they begin in, from left to right.
  struct Lines {
    uint32_t share = 1;
    size_t count = 0;  ///< of segments that there are to be
    std::atomic<bool> ready = false;
    std::vector<size_t> begin;
    std::vector<Segment> segments;
    std::vector<double> reach;  // the greatest x of a segment of the layer up to here
  };

  bool is_cut(const Edge& edge) const;
  void count_lines();
  void make_lines(Lines& lines) const;
  void sort_lines(Lines& lines, const std::vector<std::pair<uint32_t, Segment>>& found) const;
  Point point(uint32_t end) const;
  TileLine line_of(const Segment& segment, size_t layer) const;  // without its source
  uint32_t source_of(const Segment& segment) const;
  double stub_x(uint32_t at, uint32_t towards) const;
  std::pair<size_t, size_t> layers_of(const Rectangle& view) const;
  std::span<const uint32_t> boxes_in(size_t layer, const Rectangle& view) const;
  void add_boxes(const Rectangle& view, Tile& tile) const;
  void add_cells(const Rectangle& view, double side, Tile& tile) const;
  void add_lines(const Rectangle& view, Tile& tile) const;

  const Layout& layout_;
  std::span<const BoxSize> boxes_;
  std::span<const Edge> edges_;
  std::span<const BoxLook> looks_;
  std::vector<double> layer_y_;          // middles
  std::vector<size_t> layer_begin_;      // of order_
  std::vector<uint32_t> order_, place_;  // boxes by layer, from left to right
  float widest_ = 0, highest_ = 0;
  std::deque<Lines> lines_;  // each of fewer boxes than the one before
};

}  // namespace weft::viz
