#include "weft/viz/tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "weft/base/error.h"

namespace weft::viz {

namespace {

constexpr int kLastLevelOfBoxes = 3;  // above, a box of 80 units has fewer than 10 pixels
constexpr int kCellPixels = 8;
constexpr size_t kMostBoxes = 6000, kMostLines = 4000;
constexpr uint32_t kThinner = 8;  // as many boxes fewer from one set of lines to the next
constexpr size_t kMostSets = 8;   // one box may have more lines than a tile shows
constexpr double kStub = 24;
// An edge that comes from further away than a screen is wide. Many lie one above the other: the
// hundred uses of a constant hid whatever was between them.
constexpr double kFlat = 1500;

uint64_t mixed(uint64_t box) {  // the finaliser of MurmurHash3
  box ^= box >> 33;
  box *= 0xff51afd7ed558ccdULL;
  box ^= box >> 33;
  return box;
}

bool is_flat(Point a, Point b) { return std::abs(a.x - b.x) > kFlat; }

}  // namespace

TileIndex::TileIndex(const Layout& layout, std::span<const BoxSize> boxes,
                     std::span<const Edge> edges, std::span<const BoxLook> looks)
    : layout_(layout), boxes_(boxes), edges_(edges), looks_(looks), place_(boxes.size()) {
  uint32_t layers = 0;
  for (const uint32_t rank : layout.ranks) layers = std::max(layers, rank + 1);
  layer_begin_.assign(layers + 1, 0);
  layer_y_.assign(layers, 0);
  for (size_t i = 0; i < boxes.size(); ++i) {
    ++layer_begin_[layout.ranks[i] + 1];
    layer_y_[layout.ranks[i]] = layout.centres[i].y;
    widest_ = std::max(widest_, boxes[i].width);
    highest_ = std::max(highest_, boxes[i].height);
  }
  for (size_t i = 0; i < layers; ++i) layer_begin_[i + 1] += layer_begin_[i];
  order_.resize(boxes.size());
  std::vector<size_t> next(layer_begin_.begin(), layer_begin_.end() - 1);
  for (uint32_t i = 0; i < boxes.size(); ++i) order_[next[layout.ranks[i]]++] = i;
  for (size_t layer = 0; layer < layers; ++layer) {
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(layer_begin_[layer]);
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(layer_begin_[layer + 1]);
    const auto from_left = [&](uint32_t a, uint32_t b) {
      return layout.centres[a].x != layout.centres[b].x ? layout.centres[a].x < layout.centres[b].x
                                                        : a < b;
    };
    if (!std::is_sorted(begin, end, from_left)) std::sort(begin, end, from_left);
    for (auto at = begin; at != end; ++at) place_[*at] = static_cast<uint32_t>(at - order_.begin());
  }
  count_lines();
  make_lines(lines_.back());
}

// How many segments each set has to have; the last is the first that a tile can show all of.
void TileIndex::count_lines() {
  std::array<size_t, kMostSets> counts{};  // by the last set that a box is in
  const auto boxes = static_cast<uint32_t>(boxes_.size());
  std::vector<uint8_t> last(boxes, 0);
  for (uint32_t box = 0; box < boxes; ++box) {
    for (uint64_t part = mixed(box); part % kThinner == 0 && last[box] + 1U < kMostSets;
         part /= kThinner)
      ++last[box];
    counts[last[box]] += layout_.bends_below(box);
  }
  for (const Edge& e : edges_) counts[last[e.from]] += is_cut(e) ? 2 : 1;
  size_t left = std::accumulate(counts.begin(), counts.end(), size_t{0});
  uint32_t share = 1;
  for (size_t set = 0; set < kMostSets; ++set, share *= kThinner) {
    lines_.emplace_back();
    lines_.back().share = share;
    lines_.back().count = left;
    if (left <= kMostLines) break;
    left -= counts[set];
  }
}

void TileIndex::finish_lines() {
  for (size_t set = lines_.size(); set-- > 0;)
    if (!lines_[set].ready) make_lines(lines_[set]);
}

// An edge that is longer than its bends, or flat, is drawn at its ends alone.
bool TileIndex::is_cut(const Edge& e) const {
  const uint32_t between = layout_.ranks[e.to] - layout_.ranks[e.from] - 1;
  if (between > layout_.bends_below(e.from)) return true;
  const Point last =
      between == 0 ? layout_.centres[e.from] : layout_.bends[layout_.chains[e.from] + between - 1];
  return is_flat(last, layout_.centres[e.to]);
}

Point TileIndex::point(uint32_t end) const {
  return end < boxes_.size() ? layout_.centres[end] : layout_.bends[end - boxes_.size()];
}

double TileIndex::stub_x(uint32_t at, uint32_t towards) const {
  return point(at).x + std::clamp(point(towards).x - point(at).x, -kStub, kStub);
}

void TileIndex::make_lines(Lines& lines) const {
  std::vector<std::pair<uint32_t, Segment>> found;  // and the layer that it begins in
  found.reserve(lines.count);
  const auto add = [&](uint32_t layer, uint32_t above, uint32_t below) {
    found.push_back({layer, {std::min(point(above).x, point(below).x), above, below}});
  };
  const auto boxes = static_cast<uint32_t>(boxes_.size());
  const auto taken = [&](uint32_t box) { return mixed(box) % lines.share == 0; };
  for (uint32_t box = 0; box < boxes; ++box)
    for (uint32_t i = 0; taken(box) && i < layout_.bends_below(box); ++i) {
      const uint32_t bend = boxes + layout_.chains[box] + i;
      add(layout_.ranks[box] + i, i == 0 ? box : bend - 1, bend);
    }
  for (const Edge& e : edges_) {
    if (!taken(e.from)) continue;
    const uint32_t rank = layout_.ranks[e.from], between = layout_.ranks[e.to] - rank - 1;
    if (is_cut(e)) {
      if (between > 0)
        found.push_back({rank, {std::min(point(e.from).x, stub_x(e.from, e.to)), e.from, e.to}});
      found.push_back(
          {rank + between, {std::min(point(e.to).x, stub_x(e.to, e.from)), e.from, e.to}});
    } else {
      add(rank + between, between == 0 ? e.from : boxes + layout_.chains[e.from] + between - 1,
          e.to);
    }
  }
  sort_lines(lines, found);
  lines.ready.store(true, std::memory_order_release);
}

void TileIndex::sort_lines(Lines& lines,
                           const std::vector<std::pair<uint32_t, Segment>>& found) const {
  lines.begin.assign(layer_y_.size() + 1, 0);
  for (const auto& [layer, segment] : found) ++lines.begin[layer + 1];
  for (size_t i = 0; i < layer_y_.size(); ++i) lines.begin[i + 1] += lines.begin[i];
  lines.segments.resize(found.size());
  std::vector<size_t> next(lines.begin.begin(), lines.begin.end() - 1);
  for (const auto& [layer, segment] : found) lines.segments[next[layer]++] = segment;
  lines.reach.resize(found.size());
  for (size_t layer = 0; layer < layer_y_.size(); ++layer) {
    const auto all = lines.segments.begin();
    std::sort(all + static_cast<std::ptrdiff_t>(lines.begin[layer]),
              all + static_cast<std::ptrdiff_t>(lines.begin[layer + 1]),
              [](const Segment& a, const Segment& b) {
                return a.left != b.left ? a.left < b.left
                                        : std::pair(a.above, a.below) < std::pair(b.above, b.below);
              });
    double reach = -INFINITY;
    for (size_t i = lines.begin[layer]; i < lines.begin[layer + 1]; ++i) {
      const TileLine line = line_of(lines.segments[i], layer);
      lines.reach[i] = reach = std::max({reach, line.from.x, line.to.x});
    }
  }
}

TileLine TileIndex::line_of(const Segment& segment, size_t layer) const {
  const Point above = point(segment.above), below = point(segment.below);
  const auto boxes = static_cast<uint32_t>(boxes_.size());
  const bool both = segment.above < boxes && segment.below < boxes;
  const bool is_short = both && layout_.ranks[segment.below] == layout_.ranks[segment.above] + 1;
  if (!both || (is_short && !is_flat(above, below))) return {above, below, false};
  if (!is_short && layer == layout_.ranks[segment.above])
    return {above,
            {stub_x(segment.above, segment.below), (layer_y_[layer] + layer_y_[layer + 1]) / 2},
            true};
  return {{stub_x(segment.below, segment.above), (layer_y_[layer] + layer_y_[layer + 1]) / 2},
          below,
          true};
}

// The box above whose chain of bends it belongs to.
uint32_t TileIndex::source_of(const Segment& segment) const {
  if (segment.above < boxes_.size()) return segment.above;
  const auto bend = static_cast<uint32_t>(segment.above - boxes_.size());
  const auto behind = std::upper_bound(layout_.chains.begin(), layout_.chains.end(), bend);
  return static_cast<uint32_t>(behind - layout_.chains.begin() - 1);
}

// The layers whose boxes may be in view, and how far they go.
std::pair<size_t, size_t> TileIndex::layers_of(const Rectangle& view) const {
  const double half = static_cast<double>(highest_) / 2;
  const auto first = std::lower_bound(layer_y_.begin(), layer_y_.end(), view.top - half);
  const auto last = std::upper_bound(first, layer_y_.end(), view.bottom + half);
  return {first - layer_y_.begin(), last - layer_y_.begin()};
}

std::span<const uint32_t> TileIndex::boxes_in(size_t layer, const Rectangle& view) const {
  const double half = static_cast<double>(widest_) / 2;
  const auto boxes =
      std::span(order_).subspan(layer_begin_[layer], layer_begin_[layer + 1] - layer_begin_[layer]);
  const auto x = [this](uint32_t box) { return layout_.centres[box].x; };
  const auto first = std::lower_bound(boxes.begin(), boxes.end(), view.left - half,
                                      [&](uint32_t box, double at) { return x(box) < at; });
  const auto last = std::upper_bound(first, boxes.end(), view.right + half,
                                     [&](double at, uint32_t box) { return at < x(box); });
  return {first, last};
}

void TileIndex::add_boxes(const Rectangle& view, Tile& tile) const {
  const auto [first, last] = layers_of(view);
  for (size_t layer = first; layer < last; ++layer)
    for (const uint32_t box : boxes_in(layer, view)) {
      if (tile.boxes.size() == kMostBoxes) return;
      tile.boxes.push_back({box, layout_.centres[box].x, layout_.centres[box].y});
    }
}

void TileIndex::add_cells(const Rectangle& view, double side, Tile& tile) const {
  constexpr size_t kAcross = kTilePixels / kCellPixels;
  std::vector<TileCell> cells(kAcross * kAcross, {INFINITY, INFINITY, -INFINITY, -INFINITY, 0, {}});
  const auto [first, last] = layers_of(view);
  for (size_t layer = first; layer < last; ++layer)
    for (const uint32_t box : boxes_in(layer, view)) {
      const Point at = layout_.centres[box];
      if (at.x < view.left || at.x >= view.right || at.y < view.top || at.y >= view.bottom)
        continue;
      const auto column = static_cast<size_t>((at.x - view.left) / side),
                 row = static_cast<size_t>((at.y - view.top) / side);
      TileCell& cell = cells[std::min(row, kAcross - 1) * kAcross + std::min(column, kAcross - 1)];
      const double w = static_cast<double>(boxes_[box].width) / 2,
                   h = static_cast<double>(boxes_[box].height) / 2;
      cell.left = std::min(cell.left, at.x - w);
      cell.right = std::max(cell.right, at.x + w);
      cell.top = std::min(cell.top, at.y - h);
      cell.bottom = std::max(cell.bottom, at.y + h);
      const BoxLook look = looks_.empty() ? BoxLook{} : looks_[box];
      if (cell.count++ == 0 || (cell.look.mark == 0 && look.mark != 0)) cell.look = look;
    }
  for (const TileCell& cell : cells)
    if (cell.count > 0) tile.cells.push_back(cell);
}

void TileIndex::add_lines(const Rectangle& view, Tile& tile) const {
  const double part = std::min(1.0, (view.right - view.left) / std::max(1.0, layout_.width)) *
                      std::min(1.0, (view.bottom - view.top) / std::max(1.0, layout_.height));
  size_t set = 0;
  while (set + 1 < lines_.size() && (!lines_[set].ready.load(std::memory_order_acquire) ||
                                     static_cast<double>(lines_[set].count) * part > kMostLines))
    ++set;
  for (; set < lines_.size(); ++set) {
    const Lines& lines = lines_[set];
    tile.lines.clear();
    tile.line_share = lines.share;
    auto layer = static_cast<size_t>(std::lower_bound(layer_y_.begin(), layer_y_.end(), view.top) -
                                     layer_y_.begin());
    layer = layer > 0 ? layer - 1 : 0;
    for (; layer + 1 < layer_y_.size() && layer_y_[layer] <= view.bottom &&
           tile.lines.size() <= kMostLines;
         ++layer) {
      const auto begin = lines.segments.begin() + static_cast<std::ptrdiff_t>(lines.begin[layer]);
      const auto end = lines.segments.begin() + static_cast<std::ptrdiff_t>(lines.begin[layer + 1]);
      const auto behind = std::upper_bound(begin, end, view.right,
                                           [](double x, const Segment& s) { return x < s.left; });
      for (auto i = static_cast<size_t>(behind - lines.segments.begin());
           i > lines.begin[layer] && lines.reach[i - 1] >= view.left; --i) {
        const Segment& segment = lines.segments[i - 1];
        TileLine line = line_of(segment, layer);
        if (std::max(line.from.x, line.to.x) < view.left) continue;
        line.source = source_of(segment);
        tile.lines.push_back(line);
      }
    }
    if (tile.lines.size() <= kMostLines) return;
  }
  tile.lines.resize(kMostLines);
}

Tile TileIndex::tile(TileId id) const {
  if (id.level < kLowestLevel || id.level > kHighestLevel)
    fail("viz.tile", "there is no level {}; levels are {} to {}", id.level, kLowestLevel,
         kHighestLevel);
  constexpr int64_t kMost = int64_t{1} << 50;
  if (id.x < -kMost || id.x > kMost || id.y < -kMost || id.y > kMost) return {};
  const double unit = std::ldexp(1.0, id.level), side = kTilePixels * unit;
  const Rectangle view{static_cast<double>(id.x) * side, static_cast<double>(id.y) * side,
                       static_cast<double>(id.x + 1) * side, static_cast<double>(id.y + 1) * side};
  Tile tile;
  if (id.level <= kLastLevelOfBoxes)
    add_boxes(view, tile);
  else
    add_cells(view, kCellPixels * unit, tile);
  add_lines(view, tile);
  return tile;
}

int TileIndex::level_for(double pixels) const {
  int level = kLowestLevel;
  while (level < kHighestLevel &&
         std::max(layout_.width, layout_.height) > std::ldexp(pixels, level))
    ++level;
  return level;
}

std::pair<uint32_t, uint32_t> TileIndex::beside(uint32_t box) const {
  const size_t layer = layout_.ranks[box], at = place_[box];
  return {at > layer_begin_[layer] ? order_[at - 1] : box,
          at + 1 < layer_begin_[layer + 1] ? order_[at + 1] : box};
}

}  // namespace weft::viz
