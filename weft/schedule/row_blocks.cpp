// Attention, softmax(q k') v, one block of rows of one head after the other: the scores of a block
// stay in the cache, and no others are ever there. The rounds of a Repeat whose body is made of the
// graph's own ops; the scheduler treats it like any other graph.
//
// A block sees all its keys at once. Dividing by the sum of exponentials comes after the product,
// where there are fewer elements. Keys that a mask excludes for all rows of a block, as those above
// a causal triangle, are not computed: bounds of the keys are expressions of the block's number.
#include "weft/schedule/row_blocks.h"

#include <algorithm>
#include <numeric>

#include "weft/graph/index_algebra.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

// Scores of a block: a quarter of an L2, so that they, their exponentials and what is multiplied
// stay.
constexpr int64_t kBlockOfL2 = 4;
constexpr int64_t kFewestRows = 64, kMostRows = 512;
// From here on, in L2s, the scores are worth it.
constexpr double kManyScores = 2;

/// Rows that are computed alike: `count` blocks of each head; how many keys their values are summed
/// over at once.
struct Blocks {
  int64_t begin, rows, count, keys;
};

/// The body of a Repeat over blocks. Its values have an axis for each range of the cone, of size 1
/// where they do not differ along it.
class BlockBody {
 public:
  BlockBody(Graph& g, const RowCone& cone, const Blocks& blocks)
      : g_(g), c_(cone), blocks_(blocks), symbols_(cone.ranges) {
    int64_t heads = 1;
    for (size_t r = 0; r < c_.row; ++r) heads *= size_of(r);
    count_ = heads * blocks.count;
    place_heads();
    replace(c_.row, range(c_.row, g_.index(blocks_.rows)), first_row());
    limit_keys();
  }

  /// The rows of all heads, in the shape of the product; null where an index is not affine.
  NodeRef repeat() {
    NodeRef out = body();
    if (!out) return nullptr;
    std::vector<NodeRef> shape{out};
    for (size_t a = c_.row; a < c_.product->rank(); ++a) shape.push_back(size(a));
    NodeRef rows = g_.make({Op::Reshape, out->dtype, shape});
    std::vector<NodeRef> src = inputs_;
    src.push_back(rows);
    const int64_t ints[] = {count_, 0, 0, static_cast<int64_t>(inputs_.size()), 0, kBlocksSlot};
    NodeRef all = get_result(g_, g_.make({Op::Repeat, rows->dtype, src, ints}), 0);
    std::vector<NodeRef> dims{all};
    for (size_t a = 0; a < c_.product->rank(); ++a)
      dims.push_back(a == c_.row ? g_.index(blocks_.count * blocks_.rows) : c_.product->dim(a));
    return g_.make({Op::Reshape, all->dtype, dims});
  }

 private:
  // ---- where a block is

  int64_t size_of(size_t r) const {
    return c_.ranges[r]->op == Op::Range ? c_.ranges[r]->src(0)->vmin : 1;
  }
  NodeRef size(size_t r) const {
    return symbols_[r]->op == Op::Range ? symbols_[r]->src(0) : g_.index(1);
  }
  NodeRef range(size_t r, NodeRef size) {
    return symbols_[r] = g_.range(size, static_cast<int64_t>(c_.ranges.size() + r));
  }
  void replace(size_t r, NodeRef symbol, NodeRef begin) {
    if (c_.ranges[r]->op == Op::Range) replaced_.set(c_.ranges[r], g_.add(begin, symbol));
  }

  NodeRef place() { return g_.variable(place_name(kBlocksLevel), 0, count_ - 1); }
  NodeRef first_row() {
    NodeRef block = g_.mod(place(), g_.index(blocks_.count));
    return g_.add(g_.mul(block, g_.index(blocks_.rows)), g_.index(blocks_.begin));
  }
  void place_heads() {
    NodeRef head = g_.idiv(place(), g_.index(blocks_.count));
    for (size_t r = c_.row; r-- > 0;) {
      if (c_.ranges[r]->op != Op::Range) continue;
      symbols_[r] = g_.index(0);
      replace(r, g_.index(0), g_.mod(head, g_.index(size_of(r))));
      head = g_.idiv(head, g_.index(size_of(r)));
    }
  }

  /// The keys that some row of the block may see, in whole units, of which rows and keys have a
  /// whole number each.
  void limit_keys() {
    NodeRef all = c_.ranges[c_.key]->src(0);
    const int64_t unit = std::gcd(std::gcd(all->vmin, blocks_.rows), blocks_.begin);
    NodeRef u = g_.index(unit), units = g_.idiv(all, u), begin = g_.index(0), end = units;
    for (NodeRef condition : c_.conditions) {
      Stride by_key{}, by_row{};
      if (!split_stride(g_, condition, c_.ranges[c_.key], by_key) ||
          !split_stride(g_, by_key.base, c_.ranges[c_.row], by_row))
        continue;
      const int64_t rise = by_row.coefficient;
      NodeRef row = g_.add(first_row(), g_.index(rise > 0 ? blocks_.rows - 1 : 0));
      NodeRef most = g_.add(substitute(g_, by_row.base, replaced_), g_.mul(row, g_.index(rise)));
      if (by_key.coefficient == -1)  // key <= most
        end = g_.alu(Op::Min, {end, g_.idiv(g_.add(most, u), u)});
      else if (by_key.coefficient == 1)  // key >= -most
        begin = g_.alu(Op::Max, {begin, g_.idiv(g_.mul(most, g_.index(-1)), u)});
    }
    // At least one unit, so that no row is without keys.
    end = g_.alu(Op::Max, {end, g_.index(1)});
    begin = g_.alu(Op::Min, {begin, g_.sub(end, g_.index(1))});
    replace(c_.key, range(c_.key, g_.mul(g_.sub(end, begin), u)), g_.mul(begin, u));
  }

  // ---- values

  NodeRef body() {
    for (NodeRef n : c_.computed)
      if (NodeRef made = value(n))
        made_.set(n, made);
      else
        return nullptr;
    NodeRef weights = c_.weights, divisor = nullptr;
    while (is_movement(weights->op)) weights = weights->src(0);
    if (weights->op == Op::Div && is_int_const(source(weights->src(1))->dim(c_.key), 1)) {
      divisor = source(weights->src(1));
      weights = weights->src(0);
    }
    NodeRef w = source(weights), v = source(c_.values);
    if (!w || !v) return nullptr;
    NodeRef sum = sum_of(w, v);
    if (!divisor) return sum;
    const NodeRef quotient[] = {sum, alike(divisor, sum->shape->span())};
    return g_.make({Op::Div, sum->dtype, quotient});
  }

  /// Of weights and values; where these are long, one part of the keys after the other, which all
  /// rows of a block have in the cache.
  NodeRef sum_of(NodeRef w, NodeRef v) {
    const auto products = [&](NodeRef a, NodeRef b) {
      return closed(elementwise(c_.product->src(0), {a, b}), Fold::Add, {c_.key});
    };
    NodeRef keys = size(c_.key);
    if (keys->op != Op::Const) return products(w, v);
    NodeRef sum = nullptr;
    for (int64_t begin = 0; begin < keys->vmin; begin += blocks_.keys) {
      const int64_t length = std::min(blocks_.keys, keys->vmin - begin);
      range(c_.key, g_.index(length));
      NodeRef more =
          products(part(g_, w, c_.key, begin, length), part(g_, v, c_.key, begin, length));
      sum = sum ? g_.add(g_.make(Op::Contiguous, sum->dtype, {sum}), more) : more;
    }
    return sum;
  }

  /// Null where it has none.
  NodeRef source(NodeRef n) {
    if (n->op == Op::Const) return n;
    if (const RowCone::Leaf* leaf = c_.leaves.find(n)) return read(*leaf);
    const NodeRef* made = made_.find(n);
    return made ? *made : nullptr;
  }

  NodeRef value(NodeRef n) {
    if (n->op == Op::Iota) return position(n);
    std::vector<NodeRef> src;
    for (NodeRef s : n->src()) {
      if (is_index(s->dtype)) continue;  // of a shape
      src.push_back(source(s));
      if (!src.back()) return nullptr;
    }
    if (is_movement(n->op) || n->op == Op::Detach) return src[0];
    if (n->op != Op::Reduce) return elementwise(n, src);
    std::vector<size_t> axes;
    const auto& index = c_.index.at(n->src(0));
    for (int64_t a : reduce_axes(n))
      for (size_t r = 0; r < c_.ranges.size(); ++r)
        if (c_.ranges[r]->op == Op::Range && c_.ranges[r] == index[static_cast<size_t>(a)])
          axes.push_back(r);
    return closed(src[0], fold_of(n), axes);
  }

  NodeRef elementwise(NodeRef n, std::vector<NodeRef> src) {
    std::vector<NodeRef> dims(c_.ranges.size(), g_.index(1));
    for (NodeRef s : src)
      for (size_t a = 0; a < s->rank(); ++a)
        if (!is_int_const(s->dim(a), 1)) dims[a] = s->dim(a);
    for (NodeRef& s : src) s = alike(s, dims);
    return g_.make({n->op, n->dtype, src, n->ints()});
  }

  NodeRef alike(NodeRef x, std::span<const NodeRef> dims) {
    if (x->rank() == 0 || std::ranges::equal(x->shape->span(), dims)) return x;
    std::vector<NodeRef> src{x};
    src.insert(src.end(), dims.begin(), dims.end());
    return g_.make({Op::Expand, x->dtype, src});
  }

  /// A fold over these ranges, whose axes stay, with size 1.
  NodeRef closed(NodeRef x, Fold fold, const std::vector<size_t>& ranges) {
    if (ranges.empty()) return x;
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end()), shape{nullptr};
    for (size_t r : ranges) dims[r] = size(r);
    std::vector<int64_t> axes(ranges.begin(), ranges.end());
    shape[0] = reduce_over(g_, alike(x, dims), fold, axes);
    for (size_t r : ranges) dims[r] = g_.index(1);
    shape.insert(shape.end(), dims.begin(), dims.end());
    return g_.make({Op::Reshape, x->dtype, shape});
  }

  // ---- what is computed of places

  /// An index as a part that all elements of a block share, and what each range adds to it.
  struct Affine {
    NodeRef base;
    std::vector<std::pair<size_t, int64_t>> steps;
  };
  bool is_affine(NodeRef index, Affine& out) {
    out = {substitute(g_, index, replaced_), {}};
    for (size_t r = 0; r < symbols_.size(); ++r) {
      Stride stride{};
      if (symbols_[r]->op != Op::Range) continue;
      if (!split_stride(g_, out.base, symbols_[r], stride)) return false;
      if (stride.coefficient != 0) out.steps.emplace_back(r, stride.coefficient);
      out.base = stride.base;
    }
    return true;
  }

  NodeRef position(NodeRef iota) {
    Affine at;
    if (!is_affine(c_.index.at(iota)[static_cast<size_t>(iota->int_arg(0))], at)) return nullptr;
    NodeRef sum = g_.cast(at.base, iota->dtype);
    for (const auto& [r, step] : at.steps) {
      std::vector<NodeRef> dims(c_.ranges.size(), g_.index(1));
      dims[r] = size(r);
      const int64_t axis[] = {static_cast<int64_t>(r)};
      NodeRef along = g_.make({Op::Iota, iota->dtype, dims, axis});
      NodeRef scaled = elementwise_of(Op::Mul, along, g_.constant(Value::of(iota->dtype, step)));
      sum = elementwise_of(Op::Add, scaled, sum);
    }
    return sum;
  }
  NodeRef elementwise_of(Op op, NodeRef a, NodeRef b) {
    std::vector<NodeRef> dims(c_.ranges.size(), g_.index(1));
    for (NodeRef s : {a, b})
      for (size_t i = 0; i < s->rank(); ++i)
        if (!is_int_const(s->dim(i), 1)) dims[i] = s->dim(i);
    const NodeRef src[] = {alike(a, dims), alike(b, dims)};
    return g_.make({op, a->dtype, src});
  }

  // ---- what is read

  /// A block of an input: its axes in the order of the ranges that they are walked by.
  NodeRef read(const RowCone::Leaf& leaf) {
    NodeRef x = leaf.node;
    std::vector<size_t> order(x->rank()), range_of(x->rank(), c_.ranges.size());
    std::vector<Affine> at(x->rank());
    for (size_t a = 0; a < x->rank(); ++a) {
      if (!is_affine(leaf.index[a], at[a]) || at[a].steps.size() > 1) return nullptr;
      if (at[a].steps.empty()) continue;
      if (at[a].steps[0].second < 1 || contains_range(range_of, at[a].steps[0].first))
        return nullptr;
      range_of[a] = at[a].steps[0].first;
    }
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t inner = innermost(range_of);
    if (inner < order.size()) {
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(inner));
      order.push_back(inner);
    }
    NodeRef input = placeholder(x, order);
    std::vector<NodeRef> src{input}, sizes;
    std::vector<int64_t> steps;
    for (size_t a : order) src.push_back(at[a].base);
    for (size_t a : order) {
      const bool walked = !at[a].steps.empty();
      src.push_back(walked ? size(range_of[a]) : g_.index(1));
      steps.push_back(walked ? at[a].steps[0].second : 1);
    }
    return in_order_of_ranges(g_.make({Op::Shrink, x->dtype, src, steps}), order, range_of);
  }
  static bool contains_range(std::span<const size_t> list, size_t r) {
    return std::ranges::find(list, r) != list.end();
  }

  NodeRef in_order_of_ranges(NodeRef x, std::span<const size_t> order,
                             std::span<const size_t> range_of) {
    std::vector<int64_t> axes(order.size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
    std::ranges::sort(axes, [&](int64_t a, int64_t b) {
      const size_t i = order[static_cast<size_t>(a)], j = order[static_cast<size_t>(b)];
      return range_of[i] != range_of[j] ? range_of[i] < range_of[j] : a < b;
    });
    const NodeRef moved[] = {x};
    std::vector<NodeRef> shape{g_.make({Op::Permute, x->dtype, moved, axes})};
    for (size_t r = 0; r < c_.ranges.size(); ++r)
      shape.push_back(contains_range(range_of, r) ? size(r) : g_.index(1));
    return g_.make({Op::Reshape, x->dtype, shape});
  }

  /// The axis that vectors of a product run along: that of the result which is not the rows'.
  size_t innermost(std::span<const size_t> range_of) const {
    size_t best = range_of.size();
    for (size_t a = 0; a < range_of.size(); ++a) {
      const size_t r = range_of[a];
      if (r == c_.row) return range_of.size();
      if (r < c_.key && r > c_.row) return a;
      if (r == c_.key) best = a;
    }
    return best;
  }

  /// An input of the Repeat: the value, or a copy with its axes in this order.
  NodeRef placeholder(NodeRef x, std::span<const size_t> order) {
    if (!std::ranges::is_sorted(order)) {
      const std::vector<int64_t> axes(order.begin(), order.end());
      const NodeRef moved[] = {x};
      x = g_.make(Op::Contiguous, x->dtype, {g_.make({Op::Permute, x->dtype, moved, axes})});
    }
    const auto at = std::ranges::find(inputs_, x);
    const auto which = at - inputs_.begin();
    if (at == inputs_.end()) inputs_.push_back(x);
    return g_.param(kBlocksSlot + which, x->dtype, x->shape->span(), x->device);
  }

  Graph& g_;
  const RowCone& c_;
  const Blocks blocks_;
  int64_t count_ = 1;
  std::vector<NodeRef> symbols_;  // of each range in a block
  NodeMap<NodeRef> replaced_;     // of the cone's ranges: where a block is in them
  NodeMap<NodeRef> made_;
  std::vector<NodeRef> inputs_;
};

/// As many rows as may be at once; all where that is one block.
int64_t rows_at_once(const RowCone& c, const Machine& machine) {
  const int64_t rows = c.ranges[c.row]->src(0)->vmin, keys = c.ranges[c.key]->src(0)->vmin;
  const int64_t fit = machine.l2().bytes / kBlockOfL2 / (keys * 4);
  const int64_t most = std::clamp(fit, kFewestRows, kMostRows);
  const int64_t blocks = (rows + most - 1) / most;
  return rows / blocks;
}

/// All, where the values of a head leave room in L2; else as many as a quarter of it has room for.
int64_t keys_at_once(const RowCone& c, const Machine& machine) {
  const int64_t keys = c.ranges[c.key]->src(0)->vmin;
  int64_t row = bits(c.values->dtype) / 8;
  for (size_t r = c.row + 1; r < c.product->rank(); ++r) row *= c.product->dim(r)->vmin;
  if (keys * row <= machine.l2().bytes / 2) return keys;
  constexpr int64_t kWhole = 16;  // lanes
  return std::max(kWhole, machine.l2().bytes / 4 / row / kWhole * kWhole);
}

bool is_worth_it(const RowCone& c, const Target& target) {
  double scores = 4;
  for (size_t r = 0; r <= c.row; ++r)
    if (c.ranges[r]->op == Op::Range) scores *= static_cast<double>(c.ranges[r]->src(0)->vmin);
  scores *= static_cast<double>(c.ranges[c.key]->src(0)->vmin);
  return scores > kManyScores * static_cast<double>(target.machine.l2().bytes) &&
         c.ranges[c.row]->src(0)->vmin >= kFewestRows / 2;
}

/// Null where it is not attention, or too small.
NodeRef in_blocks(Graph& g, const GraphUses& uses, size_t position, const Target& target) {
  const std::optional<RowCone> cone = find_row_cone(g, uses, position);
  if (!cone || !is_worth_it(*cone, target)) return nullptr;
  const int64_t all = cone->ranges[cone->row]->src(0)->vmin;
  const int64_t rows = rows_at_once(*cone, target.machine), rest = all % rows;
  const int64_t keys = keys_at_once(*cone, target.machine);
  NodeRef most = BlockBody(g, *cone, {0, rows, all / rows, keys}).repeat();
  if (!most || rest == 0) return most;
  NodeRef last = BlockBody(g, *cone, {all - rest, rest, 1, keys}).repeat();
  const int64_t axis[] = {static_cast<int64_t>(cone->row)};
  const NodeRef parts[] = {most, last};
  return g.make({Op::Cat, most->dtype, parts, axis});
}

/// A graph in which some values are made in another way.
class Rewritten {
 public:
  Rewritten(Graph& g, NodeMap<uint64_t>& origins) : g_(g), origins_(origins) {}

  /// In the order of the graph; `other`, of nodes before it, in the place of `n`, or null.
  void add(NodeRef n, NodeRef other) {
    changed_ |= other != nullptr;
    NodeRef image = !changed_ ? n : other ? substitute(g_, other, images_) : rebuilt(n);
    images_.set(n, image);
    if (other) note_origin(image, n->hash);
    if (image != n) origins_[image] = n->hash;
  }
  NodeRef of(NodeRef n) const { return images_.at(n); }

 private:
  NodeRef rebuilt(NodeRef n) {
    std::vector<NodeRef> src(n->src().begin(), n->src().end());
    for (size_t i = 0; i < evaluated_sources(n); ++i) src[i] = images_.at(src[i]);
    return std::ranges::equal(src, n->src()) ? n : g_.with_sources(n, src);
  }
  /// Copies of operands, too, are for the sake of the product.
  void note_origin(NodeRef made, uint64_t origin) {
    for (NodeRef n : Toposort::evaluated({&made, 1}))
      if (!images_.contains(n) && !origins_.contains(n)) origins_[n] = origin;
  }

  Graph& g_;
  NodeMap<uint64_t>& origins_;
  NodeMap<NodeRef> images_;
  bool changed_ = false;
};

}  // namespace

std::vector<NodeRef> by_row_blocks(Graph& g, std::span<const NodeRef> roots, const Target& target,
                                   NodeMap<uint64_t>& origins) {
  std::vector<NodeRef> out(roots.begin(), roots.end());
  // Without vectors it is a GPU's; but one order of sums is one order.
  if (target.vector_bits == 0 && !target.canonical) return out;
  const Toposort order = Toposort::evaluated(roots);
  GraphUses uses{order.nodes(), {}};
  for (NodeRef n : order)
    for (size_t i = 0; i < evaluated_sources(n); ++i) ++uses.count[n->src(i)];
  for (NodeRef n : roots) ++uses.count[n];
  Rewritten images(g, origins);
  for (size_t i = 0; i < order.size(); ++i)
    images.add(uses.order[i], in_blocks(g, uses, i, target));
  for (NodeRef& n : out) n = images.of(n);
  return out;
}

}  // namespace weft
