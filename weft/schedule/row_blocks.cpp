// Attention, softmax(q k') v, and its gradients, one block of rows of one head after the other: the
// scores of a block stay in the cache, and no others are ever there. The rounds of a Repeat whose
// body is made of the graph's own ops; the scheduler treats it like any other graph. Gradients of
// keys and values are sums over all rows: rounds are heads then, and in each there is a Repeat over
// blocks that carries these sums.
#include "weft/schedule/row_blocks.h"

#include <algorithm>

#include "weft/rewrite/driver.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/block_body.h"
#include "weft/schedule/convolution.h"
#include "weft/schedule/decoded_products.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"
#include "weft/schedule/rounds.h"
#include "weft/schedule/row_products.h"

namespace weft {
namespace {

// Scores of a block: a quarter of an L2, so that they, their exponentials and what is multiplied
// stay.
constexpr int64_t kBlockOfL2 = 4;
// Elements of a row that lie together in what products walk down (schedule/pack_operands.cpp).
constexpr int64_t kLeastPanel = 8;
constexpr int64_t kFewestRows = 64, kMostRows = 512;
// From here on, in L2s, the scores are worth it. By tiles, exponentials are rounded once and
// divided by after the product, which few are worth (16 heads of 256 rows: 620 -> 396 us).
constexpr double kManyScores = 2, kManyScoresOfTiles = 0.1;

/// Blocks by tiles have as many keys as the one that has most: where a mask leaves some blocks
/// fewer, groups of blocks do, too.
int64_t groups_of(const RowCone& c, const MatrixUnit* tiles) {
  constexpr int64_t kGroups = 4;  // five eighths of what a causal mask leaves half of
  return tiles && !c.conditions.empty() && !c.is_symbolic(c.row) ? kGroups : 1;
}

/// The products of a cone from blocks of rows. Where none adds up rows, blocks do not depend on
/// each other. Else each head has its own sums, which one of its blocks after the other adds to.
class RowBlocks {
 public:
  RowBlocks(Graph& g, const RowCone& cone, int64_t rows, int64_t panel, const MatrixUnit* tiles)
      : g_(g), c_(cone), all_(cone.size_of(cone.row)), heads_(cone.heads()) {
    const int64_t count = all_ / rows, groups = std::min(count, groups_of(cone, tiles));
    for (int64_t i = 0; i < groups; ++i) {
      const int64_t first = i * count / groups, end = (i + 1) * count / groups;
      blocks_.push_back({g.index(first * rows), rows, end - first, panel, tiles});
    }
    if (cone.is_symbolic(cone.row)) {
      NodeRef n = cone.ranges[cone.row]->src(0), block = g.index(rows);
      blocks_.push_back({g.mul(g.idiv(n, block), block), rows, 1, panel, tiles});
    } else if (all_ % rows != 0) {
      blocks_.push_back({g.index(all_ - all_ % rows), all_ % rows, 1, panel, tiles});
    }
  }

  /// In the place of each product; none where they cannot be.
  std::vector<NodeRef> run() {
    const bool sums =
        std::ranges::any_of(c_.products, [&](const ScoreProduct& p) { return c_.adds_rows(p); });
    return sums ? head_by_head() : side_by_side();
  }

 private:
  std::vector<NodeRef> side_by_side() {
    std::vector<NodeRef> out;
    for (const Blocks& b : blocks_) {
      std::vector<NodeRef> inputs;
      NodeRef place = g_.variable(place_name(kBlocksLevel), 0, heads_ * b.count - 1);
      NodeRef count = g_.index(b.count);
      const BlockPlace at{g_.idiv(place, count), g_.mod(place, count), kBlocksSlot, inputs};
      const std::vector<NodeRef> bodies = block_results(g_, c_, b, at);
      if (bodies.empty()) return {};
      const auto made = repeat(g_, heads_ * b.count, kBlocksSlot, inputs, {}, {}, bodies);
      for (size_t k = 0; k < made.size(); ++k) {
        NodeRef x =
            existing_rows(arranged(made[k], c_.products[k], b.count * b.rows), c_.products[k], b);
        if (out.size() == made.size())
          out[k] = joined(out[k], x, axis_of_rows(c_.products[k]));
        else
          out.push_back(x);
      }
    }
    return out;
  }

  std::vector<NodeRef> head_by_head() {
    std::vector<NodeRef> inputs, outs;
    std::vector<std::vector<NodeRef>> bodies;
    NodeRef head = g_.variable(place_name(kBlocksLevel), 0, heads_ - 1);
    for (const Blocks& b : blocks_) {
      NodeRef block = g_.variable(place_name(kInnerBlocksLevel), 0, b.count - 1);
      bodies.push_back(block_results(g_, c_, b, {head, block, kInnerBlocksSlot, inputs}));
      if (bodies.back().empty()) return {};
    }
    const std::vector<NodeRef> made = blocks_of_head(inputs, bodies);
    const auto all = repeat(g_, heads_, kBlocksSlot, inputs, {}, {}, made);
    for (size_t k = 0; k < all.size(); ++k) outs.push_back(arranged(all[k], c_.products[k], all_));
    return outs;
  }

  /// What one head gives, in the order of the products.
  std::vector<NodeRef> blocks_of_head(std::span<const NodeRef> inputs,
                                      const std::vector<std::vector<NodeRef>>& bodies) {
    std::vector<NodeRef> whole, sums, rows;
    for (NodeRef x : inputs) {
      const auto slot = kBlocksSlot + std::ssize(whole);
      whole.push_back(placeholder(g_, x, slot));
    }
    for (size_t k = 0; k < c_.products.size(); ++k)
      if (c_.adds_rows(c_.products[k])) sums.push_back(zeros_like(g_, bodies[0][k]));
    for (size_t i = 0; i < bodies.size(); ++i) {
      const auto made = blocks_in_turn(blocks_[i].count, whole, sums, bodies[i]);
      for (size_t k = 0; k < made.size(); ++k) {
        if (k < sums.size()) {
          sums[k] = made[k];
          continue;
        }
        NodeRef x = blocks_joined(made[k]);
        const size_t row = k - sums.size();
        if (row == rows.size())
          rows.push_back(x);
        else
          rows[row] = joined(rows[row], x, 0);
      }
    }
    std::vector<NodeRef> out;
    size_t sum = 0, row = 0;
    for (const ScoreProduct& p : c_.products)
      out.push_back(c_.adds_rows(p) ? sums[sum++] : rows[row++]);
    return out;
  }

  /// Sums, then rows of each block.
  std::vector<NodeRef> blocks_in_turn(int64_t count, std::span<const NodeRef> whole,
                                      std::span<const NodeRef> sums,
                                      std::span<const NodeRef> bodies) {
    std::vector<NodeRef> nexts, outs;
    for (size_t k = 0; k < bodies.size(); ++k) {
      NodeRef x = bodies[k];
      if (!c_.adds_rows(c_.products[k])) {
        outs.push_back(x);
        continue;
      }
      const auto slot = kInnerBlocksSlot + std::ssize(whole) + std::ssize(nexts);
      nexts.push_back(g_.add(placeholder(g_, x, slot), x));
    }
    return repeat(g_, count, kInnerBlocksSlot, whole, sums, nexts, outs);
  }

  /// [blocks, rows, ...] as [blocks * rows, ...].
  NodeRef blocks_joined(NodeRef x) {
    std::vector<NodeRef> dims{g_.mul(x->dim(0), x->dim(1))};
    for (size_t a = 2; a < x->rank(); ++a) dims.push_back(x->dim(a));
    return reshaped(g_, x, dims);
  }

  NodeRef joined(NodeRef a, NodeRef b, size_t axis) {
    const int64_t along[] = {static_cast<int64_t>(axis)};
    const NodeRef parts[] = {a, b};
    return g_.make({Op::Cat, a->dtype, parts, along});
  }
  /// Of rows with room for all blocks, those that there are.
  NodeRef existing_rows(NodeRef x, const ScoreProduct& p, const Blocks& b) {
    if (!c_.is_symbolic(c_.row)) return x;
    NodeRef begin = blocks_.back().begin, all = c_.ranges[c_.row]->src(0);
    return part(g_, x, axis_of_rows(p), g_.index(0), b.is_last() ? g_.sub(all, begin) : begin);
  }
  size_t axis_of_rows(const ScoreProduct& p) const {
    const auto at = std::ranges::find(p.index, c_.ranges[c_.row]);
    return static_cast<size_t>(at - p.index.begin());
  }

  /// [rounds, ...] with an axis for each range within a head, in the shape of the product.
  NodeRef arranged(NodeRef x, const ScoreProduct& p, int64_t rows) {
    std::vector<NodeRef> dims, shape;
    std::vector<size_t> ranges = c_.ranges_of(p);
    for (size_t r = c_.row; r-- > 0;)
      if (c_.has_range(r)) ranges.insert(ranges.begin(), r);
    for (size_t r : ranges) dims.push_back(g_.index(r == c_.row ? rows : c_.size_of(r)));
    x = reshaped(g_, x, dims);
    std::vector<int64_t> order;
    for (size_t a = 0; a < p.index.size(); ++a) {
      const auto at =
          std::ranges::find_if(ranges, [&](size_t r) { return c_.ranges[r] == p.index[a]; });
      if (at != ranges.end()) order.push_back(at - ranges.begin());
      shape.push_back(at == ranges.end() ? g_.index(1) : dims[static_cast<size_t>(order.back())]);
    }
    const NodeRef moved[] = {x};
    return reshaped(g_, g_.make({Op::Permute, x->dtype, moved, order}), shape);
  }

  Graph& g_;
  const RowCone& c_;
  const int64_t all_, heads_;
  std::vector<Blocks> blocks_;
};

/// As many rows as may be at once; all where that is one block.
int64_t rows_at_once(const RowCone& c, const Machine& machine, const MatrixUnit* tiles) {
  const int64_t rows = c.size_of(c.row), keys = c.size_of(c.key);
  const int64_t fit = machine.l2().bytes / kBlockOfL2 / (keys * 4);
  const int64_t most =
      std::clamp(std::min(fit, rows / groups_of(c, tiles)), kFewestRows, kMostRows);
  const int64_t blocks = (rows + most - 1) / most;
  return (rows + blocks - 1) / blocks;
}

/// There are rows enough, and sums over them, which go by once for each block, are less than the
/// scores.
bool is_worth_it(const RowCone& c) {
  const int64_t rows = c.size_of(c.row);
  const bool narrow = std::ranges::all_of(c.products, [&](const ScoreProduct& p) {
    int64_t width = 1;
    for (size_t r : c.ranges_of(p))
      if (r != c.key) width *= c.size_of(r);
    return !c.adds_rows(p) || 2 * width <= rows;
  });
  return narrow && rows >= kFewestRows / 2;
}

/// Where products come from instead, and for which of them, by its hash, each new node is made.
struct Replacements {
  NodeMap<NodeRef> made;
  NodeMap<uint64_t> origins;

  void add(NodeRef product, NodeRef value, const GraphUses& uses) {
    made.set(product, value);
    std::vector<NodeRef> left{value};
    while (!left.empty()) {
      NodeRef n = left.back();
      left.pop_back();
      if (uses.count.contains(n) || origins.contains(n)) continue;
      origins.set(n, product->hash);
      for (size_t i = 0; i < evaluated_sources(n); ++i) left.push_back(n->src(i));
    }
  }
};

/// The target's tiles, if they multiply what it reads.
const MatrixUnit* tiles_of(const RowCone& c, const Target& target) {
  const auto is_widened = [](const ScoreProduct& p) {
    NodeRef x = moved(p.values);
    return x->op == Op::Cast && x->dtype == DType::F32 && x->src(0)->dtype == DType::BF16;
  };
  return std::ranges::any_of(c.products, is_widened) ? target.tile_unit(Op::Dot2) : nullptr;
}

/// As many scores as so many L2s hold.
double many_scores(const Target& target, double l2s) {
  return l2s * static_cast<double>(target.machine.l2().bytes) / 4;
}

void add_blocks(Graph& g, const GraphUses& uses, const RowCone& c, const Target& target,
                Replacements& out) {
  const MatrixUnit* tiles = tiles_of(c, target);
  if (!is_worth_it(c) ||
      (!tiles && largest_numel(c.exponential->shape->span()) <= many_scores(target, kManyScores)))
    return;
  const int64_t panel = std::max<int64_t>(kLeastPanel, target.lanes(c.products[0].values->dtype));
  const auto made = RowBlocks(g, c, rows_at_once(c, target.machine, tiles), panel, tiles).run();
  for (size_t k = 0; k < made.size(); ++k) out.add(c.products[k].sum, made[k], uses);
}

/// A graph in which some values are made in another way.
class Rewritten {
 public:
  Rewritten(Graph& g, const Replacements& made, NodeMap<uint64_t>& origins)
      : g_(g), made_(made), origins_(origins) {}

  NodeRef of(NodeRef root) {
    std::vector<NodeRef> stack{root};
    while (!stack.empty()) {
      NodeRef n = stack.back();
      const bool done = images_.contains(n) || !push_sources(n, stack);
      if (!done) continue;
      stack.pop_back();
      if (!images_.contains(n)) add(n);
    }
    return images_.at(root);
  }

 private:
  /// False where all have images.
  bool push_sources(NodeRef n, std::vector<NodeRef>& stack) const {
    const size_t before = stack.size();
    const auto need = [&](NodeRef s) {
      if (!images_.contains(s)) stack.push_back(s);
    };
    if (const NodeRef* other = made_.made.find(n))
      need(*other);
    else
      for (size_t i = 0; i < evaluated_sources(n); ++i) need(n->src(i));
    return stack.size() != before;
  }

  void add(NodeRef n) {
    const NodeRef* other = made_.made.find(n);
    const uint64_t* origin = made_.origins.find(n);
    NodeRef image = other ? images_.at(*other) : rebuilt(n);
    images_.set(n, image);
    if (other || (!origin && image != n)) origins_[image] = n->hash;
    if (origin && !origins_.contains(image)) origins_[image] = *origin;
  }
  NodeRef rebuilt(NodeRef n) {
    std::vector<NodeRef> src(n->src().begin(), n->src().end());
    for (size_t i = 0; i < evaluated_sources(n); ++i) src[i] = images_.at(src[i]);
    return std::ranges::equal(src, n->src()) ? n : g_.with_sources(n, src);
  }
  Graph& g_;
  const Replacements& made_;
  NodeMap<uint64_t>& origins_;
  NodeMap<NodeRef> images_;
};

}  // namespace

std::vector<NodeRef> by_row_blocks(Graph& g, std::span<const NodeRef> roots, const Target& target,
                                   const ScheduleOptions& options, NodeMap<uint64_t>& origins) {
  std::vector<NodeRef> out(roots.begin(), roots.end());
  // Without vectors it is a GPU's; but one order of sums is one order.
  if (target.vector_bits == 0 && !target.canonical) return out;
  const Toposort order = Toposort::evaluated(roots);
  GraphUses uses{order.nodes(), {}};
  for (NodeRef n : order)
    for (size_t i = 0; i < evaluated_sources(n); ++i) ++uses.count[n->src(i)];
  for (NodeRef n : roots) ++uses.count[n];
  Replacements made;
  const double scores =
      many_scores(target, target.tile_unit(Op::Dot2) ? kManyScoresOfTiles : kManyScores);
  for (const RowCone& cone : find_row_cones(g, uses, scores))
    add_blocks(g, uses, cone, target, made);
  const ConstantValues constants(options.constants);
  const NodeMap<bool> spread = spread_sums(order);
  for (NodeRef n : order)
    if (n->op == Op::Reduce && !options.in_rounds && !made.made.contains(n) &&
        !spread.contains(n)) {
      NodeRef sum = rows_by_matrix(g, n, target, constants);
      if (!sum) sum = decoded_by_blocks(g, n, target, constants);
      if (sum) made.add(n, sum, uses);
    }
  if (made.made.size() == 0) return out;
  Rewritten images(g, made, origins);
  for (NodeRef& n : out) n = images.of(n);
  return out;
}

}  // namespace weft
