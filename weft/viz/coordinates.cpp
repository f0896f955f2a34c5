// x of nodes so that edges are straight: Brandes and Koepf, "Fast and Simple Horizontal Coordinate
// Assignment" (Graph Drawing 2001). Nodes are aligned with a median neighbour into blocks, four
// times (from above and below, to the left and the right); blocks are compacted, and each node lies
// between the two middle ones of its four places. Compaction is by longest paths over blocks, as
// their paper's classes are wrong in rare cases (erratum of 2020).
#include <algorithm>
#include <array>

#include "weft/viz/layers.h"

namespace weft::viz {

namespace {

double width_of(const LayeredGraph& graph, std::span<const BoxSize> boxes, uint32_t node) {
  return graph.is_virtual(node) ? 0 : static_cast<double>(boxes[node].width);
}

// Edges that cross one between two virtual nodes, which is to stay straight: a flag for each entry
// of graph.above.
std::vector<bool> find_conflicts(const LayeredGraph& graph) {
  std::vector<bool> conflicts(graph.above.ids.size(), false);
  for (size_t rank = 1; rank < graph.layers(); ++rank) {
    const auto nodes = graph.layer(rank);
    size_t scanned = 0;
    uint32_t left = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto above = graph.above.of(nodes[i]);
      const bool inner = graph.is_virtual(nodes[i]) && graph.is_virtual(above[0]);
      if (!inner && i + 1 < nodes.size()) continue;
      const uint32_t right = inner ? graph.place[above[0]] : UINT32_MAX;
      for (; scanned <= i; ++scanned)
        for (uint32_t e = graph.above.begin[nodes[scanned]];
             e < graph.above.begin[nodes[scanned] + 1]; ++e) {
          const uint32_t place = graph.place[graph.above.ids[e]];
          conflicts[e] = place < left || place > right;
        }
      if (inner) left = right;
    }
  }
  return conflicts;
}

// One of the four ways to look at the graph.
class Alignment {
 public:
  Alignment(const LayeredGraph& graph, std::span<const BoxSize> boxes, double gap, bool from_above,
            bool leftmost)
      : graph_(graph),
        boxes_(boxes),
        gap_(gap),
        lists_(from_above ? graph.above : graph.below),
        from_above_(from_above),
        leftmost_(leftmost),
        root_(graph.size()),
        next_(graph.size()),
        x_(graph.size(), 0) {
    for (uint32_t i = 0; i < root_.size(); ++i) root_[i] = next_[i] = i;
  }

  void align(const std::vector<bool>& conflicts) {
    const size_t layers = graph_.layers();
    for (size_t i = 1; i < layers; ++i) align_layer(from_above_ ? i : layers - 1 - i, conflicts);
  }

  std::vector<double> compact() {
    const std::vector<uint32_t> sorted = push_right();
    for (auto block = sorted.rbegin(); block != sorted.rend(); ++block) close_gap(*block);
    std::vector<double> x(root_.size());
    for (uint32_t i = 0; i < x.size(); ++i) x[i] = leftmost_ ? x_[root_[i]] : -x_[root_[i]];
    return x;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The place of a node counted from the side that this alignment begins at.
  int64_t place(uint32_t node) const {
    return leftmost_ ? int64_t{graph_.place[node]} : -int64_t{graph_.place[node]};
  }
  uint32_t neighbour_behind(uint32_t node) const {
    const auto layer = graph_.layer(graph_.ranks[node]);
    const size_t at = graph_.place[node];
    if (leftmost_) return at + 1 < layer.size() ? layer[at + 1] : kNone;
    return at > 0 ? layer[at - 1] : kNone;
  }
  // Between centres; bends lie closer to each other than boxes.
  double distance(uint32_t a, uint32_t b) const {
    const bool bends = graph_.is_virtual(a) && graph_.is_virtual(b);
    return (width_of(graph_, boxes_, a) + width_of(graph_, boxes_, b)) / 2 +
           (bends ? gap_ / 3 : gap_);
  }

  bool in_conflict(uint32_t node, uint32_t other, size_t entry,
                   const std::vector<bool>& conflicts) const {
    if (from_above_) return conflicts[entry];
    const auto above = graph_.above.of(other);  // in the order of places
    const auto found = std::lower_bound(
        above.begin(), above.end(), node,
        [this](uint32_t a, uint32_t b) { return graph_.place[a] < graph_.place[b]; });
    return conflicts[graph_.above.begin[other] + static_cast<size_t>(found - above.begin())];
  }

  void align_layer(size_t rank, const std::vector<bool>& conflicts) {
    const auto layer = graph_.layer(rank);
    int64_t taken = INT64_MIN;  // the last place that something is aligned with
    for (size_t i = 0; i < layer.size(); ++i) {
      const uint32_t node = layer[leftmost_ ? i : layer.size() - 1 - i];
      const auto others = lists_.of(node);
      if (others.empty()) continue;
      const size_t low = (others.size() - 1) / 2, high = others.size() / 2;
      for (const size_t median : {leftmost_ ? low : high, leftmost_ ? high : low}) {
        const uint32_t other = others[median];
        if (next_[node] != node || place(other) <= taken) continue;
        if (in_conflict(node, other, lists_.begin[node] + median, conflicts)) continue;
        next_[other] = node;
        root_[node] = root_[other];
        next_[node] = root_[node];
        taken = place(other);
      }
    }
  }

  // As far to the front as the blocks before let each; returns blocks, those before first.
  std::vector<uint32_t> push_right() {
    std::vector<uint32_t> missing(root_.size(), 0), sorted;
    for (uint32_t node = 0; node < root_.size(); ++node)
      if (const uint32_t behind = neighbour_behind(node); behind != kNone) ++missing[root_[behind]];
    for (const uint32_t node : graph_.order)
      if (root_[node] == node && missing[node] == 0) sorted.push_back(node);
    for (size_t i = 0; i < sorted.size(); ++i) {
      uint32_t node = sorted[i];
      do {
        if (const uint32_t behind = neighbour_behind(node); behind != kNone) {
          const uint32_t block = root_[behind];
          x_[block] = std::max(x_[block], x_[sorted[i]] + distance(node, behind));
          if (--missing[block] == 0) sorted.push_back(block);
        }
        node = next_[node];
      } while (node != sorted[i]);
    }
    return sorted;
  }

  // A block moves as near to what lies behind as it can.
  void close_gap(uint32_t block) {
    double nearest = x_[block];
    bool found = false;
    uint32_t node = block;
    do {
      if (const uint32_t behind = neighbour_behind(node); behind != kNone) {
        const double x = x_[root_[behind]] - distance(node, behind);
        nearest = found ? std::min(nearest, x) : x;
        found = true;
      }
      node = next_[node];
    } while (node != block);
    x_[block] = std::max(x_[block], nearest);
  }

  const LayeredGraph& graph_;
  std::span<const BoxSize> boxes_;
  double gap_;
  const Neighbours& lists_;
  bool from_above_, leftmost_;
  std::vector<uint32_t> root_, next_;  // of a node its block; the block's next node, in a circle
  std::vector<double> x_;              // of blocks, by their root
};

struct Extent {
  double low, high;
  double width() const { return high - low; }
};

Extent extent_of(const LayeredGraph& graph, std::span<const BoxSize> boxes,
                 const std::vector<double>& x) {
  Extent extent{x[0], x[0]};
  for (uint32_t i = 0; i < x.size(); ++i) {
    const double half = width_of(graph, boxes, i) / 2;
    extent = {std::min(extent.low, x[i] - half), std::max(extent.high, x[i] + half)};
  }
  return extent;
}

}  // namespace

std::vector<double> straight_x(const LayeredGraph& graph, std::span<const BoxSize> boxes,
                               double gap) {
  const std::vector<bool> conflicts = find_conflicts(graph);
  std::array<std::vector<double>, 4> x;
  std::array<Extent, 4> extents;
  size_t narrowest = 0;
  for (size_t i = 0; i < 4; ++i) {
    Alignment alignment(graph, boxes, gap, i < 2, i % 2 == 0);
    alignment.align(conflicts);
    x[i] = alignment.compact();
    extents[i] = extent_of(graph, boxes, x[i]);
    if (extents[i].width() < extents[narrowest].width()) narrowest = i;
  }
  std::array<double, 4> shift;
  for (size_t i = 0; i < 4; ++i)
    shift[i] = i % 2 == 0 ? extents[narrowest].low - extents[i].low
                          : extents[narrowest].high - extents[i].high;
  std::vector<double> middle(graph.size());
  for (size_t node = 0; node < middle.size(); ++node) {
    std::array<double, 4> at;
    for (size_t i = 0; i < 4; ++i) at[i] = x[i][node] + shift[i];
    std::sort(at.begin(), at.end());
    middle[node] = (at[1] + at[2]) / 2;
  }
  return middle;
}

std::vector<double> packed_x(const LayeredGraph& graph, std::span<const BoxSize> boxes,
                             double gap) {
  std::vector<double> x(graph.size());
  for (size_t rank = 0; rank < graph.layers(); ++rank) {
    double end = -gap;
    for (const uint32_t node : graph.layer(rank)) {
      const double width = width_of(graph, boxes, node);
      x[node] = end + gap + width / 2;
      end = x[node] + width / 2;
    }
    for (const uint32_t node : graph.layer(rank)) x[node] -= end / 2;
  }
  return x;
}

}  // namespace weft::viz
