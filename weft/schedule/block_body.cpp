// A block sees all its keys at once. Dividing by the sum of exponentials comes after the product,
// where there are fewer elements. Keys that a mask excludes for all rows of a block, as those above
// a causal triangle, are not computed: bounds of the keys are expressions of the block's number.
//
// Tiles multiply words of two bf16. Those of keys and values, which all blocks read, are made once;
// those of the exponentials are the memory that these are rounded into, and added up from.
#include "weft/schedule/block_body.h"

#include <algorithm>
#include <numeric>

#include "weft/base/bits.h"
#include "weft/base/function_ref.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

/// Whether it is bf16 in f32.
bool is_widened(NodeRef n) {
  return n->op == Op::Cast && n->dtype == DType::F32 && n->src(0)->dtype == DType::BF16;
}

/// What one block gives. Its values have an axis for each range of the cone, of size 1 where they
/// do not differ along it.
class BlockBody {
 public:
  BlockBody(Graph& g, const RowCone& cone, const Blocks& blocks, const BlockPlace& place)
      : g_(g), c_(cone), blocks_(blocks), place_(place), symbols_(cone.ranges) {
    place_heads();
    replace(c_.row, range(c_.row, rows()), first_row());
    limit_keys();
    const Quotient q = quotient_of(c_.products[0].weights);
    if (blocks_.tiles && q.rounded && c_.products.size() == 1) stored_in_bf16_ = q.numerator;
  }

  /// Of each product the block's rows, or its part of sums over all rows; none where an index is
  /// not affine.
  std::vector<NodeRef> results() {
    std::vector<NodeRef> out;
    if (!compute()) return out;
    for (const ScoreProduct& p : c_.products) {
      NodeRef x = c_.adds_rows(p) ? sum_of_rows(p) : sum_of_keys(p);
      if (!x) return {};
      if (c_.adds_rows(p)) x = moved_axis(g_, x, c_.key, c_.row);
      std::vector<NodeRef> dims;
      for (size_t r : c_.ranges_of(p)) dims.push_back(r == c_.key ? c_.ranges[r]->src(0) : size(r));
      out.push_back(with_room(reshaped(g_, x, dims), out.size()));
    }
    return out;
  }

 private:
  /// An index as a part that all elements of a block share, and what each range adds to it.
  struct Affine {
    NodeRef base;
    std::vector<std::pair<size_t, int64_t>> steps;
  };
  /// Where each axis of an input is read, and by which range it is walked: none, where it is the
  /// number of all.
  struct Walk {
    std::vector<Affine> at;
    std::vector<size_t> range_of;
    int64_t step(size_t axis) const {
      return at[axis].steps.empty() ? 1 : at[axis].steps[0].second;
    }
  };

  // ---- where a block is

  NodeRef size(size_t r) const {
    return symbols_[r]->op == Op::Range ? symbols_[r]->src(0) : g_.index(1);
  }
  NodeRef range(size_t r, NodeRef size) {
    return symbols_[r] = g_.range(size, static_cast<int64_t>(c_.ranges.size() + r));
  }
  void replace(size_t r, NodeRef symbol, NodeRef begin) {
    if (c_.ranges[r]->op == Op::Range) replaced_.set(c_.ranges[r], g_.add(begin, symbol));
  }

  NodeRef first_row() {
    return g_.add(g_.mul(place_.block, g_.index(blocks_.rows)), blocks_.begin);
  }
  /// None or all, so that tiles fit; what the last block has.
  NodeRef rows() {
    NodeRef all = c_.has_range(c_.row) ? c_.ranges[c_.row]->src(0) : g_.index(1);
    NodeRef most = g_.index(blocks_.rows);
    if (blocks_.is_last()) return g_.mod(all, most);
    if (all->op == Op::Const) return most;
    return g_.where(g_.lt(all, g_.add(first_row(), most)), g_.index(0), most);
  }
  /// Rows that are not there are not written: results have room for all in every round.
  NodeRef with_room(NodeRef x, size_t number) {
    if (size(c_.row)->op == Op::Const) return x;
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    dims[0] = g_.index(blocks_.rows);
    return written_into(dims, x, static_cast<int64_t>(number));
  }
  void place_heads() {
    NodeRef head = place_.head;
    for (size_t r = c_.row; r-- > 0;) {
      if (!c_.has_range(r)) continue;
      symbols_[r] = g_.index(0);
      replace(r, g_.index(0), g_.mod(head, g_.index(c_.size_of(r))));
      head = g_.idiv(head, g_.index(c_.size_of(r)));
    }
  }

  /// The first or the last row whose keys are computed. Products by tiles have as many keys in all
  /// blocks: those of any of them.
  NodeRef outer_row(bool last) {
    if (blocks_.tiles && !blocks_.is_last())
      return g_.add(blocks_.begin, g_.index(last ? blocks_.rows * blocks_.count - 1 : 0));
    return g_.add(first_row(), g_.index(last ? blocks_.rows - 1 : 0));
  }

  /// The keys that some row of the block may see, in whole units, of which rows and keys have a
  /// whole number each.
  void limit_keys() {
    NodeRef all = c_.ranges[c_.key]->src(0);
    const int64_t unit =
        std::gcd(std::gcd(divisor_of(all), blocks_.rows), divisor_of(blocks_.begin));
    NodeRef u = g_.index(unit), units = g_.idiv(all, u), begin = g_.index(0), end = units;
    for (NodeRef condition : c_.conditions) {
      Stride by_key{}, by_row{};
      if (!split_stride(g_, condition, c_.ranges[c_.key], by_key) ||
          !split_stride(g_, by_key.base, c_.ranges[c_.row], by_row))
        continue;
      const int64_t rise = by_row.coefficient;
      NodeRef row = outer_row(rise > 0);
      NodeRef most = g_.add(substitute(g_, by_row.base, replaced_), g_.mul(row, g_.index(rise)));
      if (by_key.coefficient == -1)  // key <= most
        end = g_.alu(Op::Min, {end, g_.idiv(g_.add(most, u), u)});
      else if (by_key.coefficient == 1)  // key >= -most
        begin = g_.alu(Op::Max, {begin, g_.idiv(g_.mul(most, g_.index(-1)), u)});
    }
    // At least one unit, so that no row is without keys.
    end = g_.alu(Op::Max, {end, g_.index(1)});
    begin = g_.alu(Op::Min, {begin, g_.sub(end, g_.index(1))});
    first_key_ = g_.mul(begin, u);
    replace(c_.key, range(c_.key, g_.mul(g_.sub(end, begin), u)), first_key_);
  }

  // ---- values

  bool compute() {
    NodeMap<int> readers;
    for (NodeRef n : c_.computed)
      for (NodeRef s : n->src()) ++readers[s];
    for (NodeRef n : c_.computed)
      if (n->op == Op::Reduce && n->src(0)->op == Op::Mul && readers[n->src(0)] == 1)
        factors_.set(n->src(0), true);
    for (NodeRef n : c_.computed) {
      if (factors_.contains(n) || is_same_here(n)) continue;
      NodeRef made = value(n);
      if (!made) return false;
      made_.set(n, n == stored_in_bf16_ ? stored(made) : made);
    }
    return true;
  }

  /// Weights that are a quotient, perhaps rounded to bf16, whose divisor is the same for all keys.
  struct Quotient {
    NodeRef numerator = nullptr, divisor = nullptr;
    bool rounded = false;
  };
  /// A numerator is rounded as much as the quotient is: bf16 has the range of f32.
  Quotient quotient_of(NodeRef weights) const {
    Quotient q;
    NodeRef n = moved(weights);
    if (is_widened(n) && moved(n->src(0))->op == Op::Cast) {
      q.rounded = true;
      n = moved(moved(n->src(0))->src(0));
    }
    if (n->op != Op::Div || n->dtype != weights->dtype) return {};
    const RowCone::Deps* by = c_.deps.find(n->src(1));
    if (!by || (*by >> c_.key & 1) != 0) return {};
    q.numerator = moved(n->src(0)), q.divisor = n->src(1);
    return q;
  }

  NodeRef rounded(NodeRef x) {
    return g_.make(Op::Cast, DType::F32, {g_.make(Op::Cast, DType::BF16, {x})});
  }
  /// What was rounded into memory, for all that read it.
  NodeRef stored(NodeRef x) {
    x = with_whole_tiles(g_.make(Op::Cast, DType::BF16, {x}), c_.key);
    stored_ = g_.make(Op::Contiguous, DType::BF16, {x});
    x = part(g_, stored_, c_.key, g_.index(0), size(c_.key));
    return g_.make(Op::Cast, DType::F32, {x});
  }

  /// Of weights and values. Dividing comes after the sum, where there are fewer elements.
  NodeRef sum_of_keys(const ScoreProduct& p) {
    const Quotient q = quotient_of(p.weights);
    NodeRef w = source(q.numerator ? q.numerator : p.weights, {c_.key});
    if (!w) return nullptr;
    const bool is_stored = q.numerator && q.numerator == stored_in_bf16_;
    if (q.rounded && !is_stored) w = rounded(w);
    NodeRef columns = is_widened(w) ? column_words(p.values, c_.key) : nullptr;
    NodeRef sum = columns ? sum_of_words(is_stored ? stored_ : w->src(0), columns, c_.key)
                          : sum_of_products(p, w, c_.key);
    if (!sum) return nullptr;
    if (!q.divisor) return sum;
    const NodeRef quotient[] = {sum, alike(source(q.divisor, {}), sum->shape->span())};
    return g_.make({Op::Div, sum->dtype, quotient});
  }

  /// 0 for keys that no row of the block sees.
  NodeRef sum_of_rows(const ScoreProduct& p) {
    NodeRef w = source(p.weights, {c_.row}), sum = w ? sum_of_products(p, w, c_.row) : nullptr;
    if (!sum) return nullptr;
    NodeRef keys = size(c_.key), all = c_.ranges[c_.key]->src(0);
    if (keys == all) return sum;
    sum = g_.make(Op::Contiguous, sum->dtype, {sum});
    return padded(g_, sum, c_.key, first_key_, g_.sub(all, g_.add(first_key_, keys)));
  }

  NodeRef sum_of_products(const ScoreProduct& p, NodeRef weights, size_t over) {
    NodeRef v = source(p.values, {over});
    return v ? closed(elementwise(p.sum->src(0), {weights, v}), Fold::Add, {over}) : nullptr;
  }

  /// Whether axes are all that differs between it and its source: here each value has those of all
  /// ranges.
  bool is_same_here(NodeRef n) const { return !c_.leaves.contains(n) && is_movement(n->op); }

  /// As a sum over `closed` reads it; null where it has none.
  NodeRef source(NodeRef n, const std::vector<size_t>& closed) {
    while (is_same_here(n)) n = n->src(0);
    if (n->op == Op::Const) return n;
    if (const RowCone::Leaf* leaf = c_.leaves.find(n)) return read(*leaf, closed);
    const NodeRef* made = made_.find(n);
    return made ? *made : nullptr;
  }

  NodeRef value(NodeRef n) {
    if (n->op == Op::Iota) return position(n);
    if (n->op != Op::Reduce) return value_of_sources(n, {});
    const std::vector<size_t> axes = closed_ranges(n);
    NodeRef x = n->src(0);
    if (NodeRef sum = factors_.contains(x) && axes.size() == 1 ? sum_of_words(x, axes[0]) : nullptr)
      return sum;
    NodeRef all = factors_.contains(x) ? value_of_sources(x, axes) : source(x, axes);
    return all ? closed(all, fold_of(n), axes) : nullptr;
  }

  NodeRef value_of_sources(NodeRef n, const std::vector<size_t>& closed) {
    std::vector<NodeRef> src;
    for (NodeRef s : n->src()) {
      if (is_index(s->dtype)) continue;  // of a shape
      src.push_back(source(s, closed));
      if (!src.back()) return nullptr;
    }
    return elementwise(n, src);
  }

  std::vector<size_t> closed_ranges(NodeRef reduce) const {
    std::vector<size_t> found;
    const auto& index = c_.index.at(reduce->src(0));
    for (int64_t a : reduce_axes(reduce))
      for (size_t r = 0; r < c_.ranges.size(); ++r)
        if (c_.has_range(r) && c_.ranges[r] == index[static_cast<size_t>(a)]) found.push_back(r);
    return found;
  }

  /// Of values that are broadcast against each other.
  std::vector<NodeRef> common_dims(std::span<const NodeRef> values) {
    std::vector<NodeRef> dims(c_.ranges.size(), g_.index(1));
    for (NodeRef s : values)
      for (size_t a = 0; a < s->rank(); ++a)
        if (!is_int_const(s->dim(a), 1)) dims[a] = s->dim(a);
    return dims;
  }
  std::vector<NodeRef> common_dims(std::initializer_list<NodeRef> values) {
    return common_dims(std::span(values.begin(), values.size()));
  }

  NodeRef elementwise(NodeRef n, std::vector<NodeRef> src) {
    const std::vector<NodeRef> dims = common_dims(src);
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
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    for (size_t r : ranges) dims[r] = size(r);
    return folded(alike(x, dims), fold, ranges);
  }
  NodeRef folded(NodeRef x, Fold fold, const std::vector<size_t>& ranges) {
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    for (size_t r : ranges) dims[r] = g_.index(1);
    return reshaped(g_, reduce_over(g_, x, fold, {ranges.begin(), ranges.end()}), dims);
  }

  // ---- sums of products by tiles

  /// Of two factors, one of which is the same for all rows; null where they are no bf16.
  NodeRef sum_of_words(NodeRef product, size_t closed) {
    for (const size_t side : {0, 1}) {
      NodeRef rows = product->src(1 - side);
      NodeRef columns = is_in_bf16(rows) ? column_words(product->src(side), closed) : nullptr;
      NodeRef wide = columns ? source(rows, {closed}) : nullptr;
      if (wide) return sum_of_words(wide->src(0), columns, closed);
    }
    return nullptr;
  }
  bool is_in_bf16(NodeRef n) const {
    while (is_same_here(n)) n = n->src(0);
    if (const RowCone::Leaf* leaf = c_.leaves.find(n)) return is_widened(leaf->node);
    const NodeRef* made = made_.find(n);
    return made && is_widened(*made);
  }
  NodeRef sum_of_words(NodeRef rows, NodeRef columns, size_t closed) {
    const MatrixUnit& unit = *blocks_.tiles;
    NodeRef a = words_along(g_, with_whole_tiles(rows, closed), closed, columns->dim(closed)->vmin,
                            unit.depth);
    const std::vector<NodeRef> dims = common_dims({a, columns});
    const NodeRef words[] = {alike(a, dims), alike(columns, dims),
                             g_.constant(Value::of(unit.sum, 0))};
    return folded(g_.make({unit.words, unit.sum, words}), Fold::Add, {closed});
  }

  /// Of numbers along a sum; in words of which a tile has as many as columns.
  int64_t in_whole_tiles(int64_t count) const {
    return round_up(count, blocks_.tiles->depth * blocks_.tiles->tile);
  }
  NodeRef with_whole_tiles(NodeRef x, size_t axis) {
    if (x->dim(axis)->op != Op::Const) return x;
    const int64_t have = x->dim(axis)->vmin, whole = in_whole_tiles(have);
    return have == whole ? x : padded(g_, x, axis, 0, whole - have);
  }

  /// Words of neighbours along `closed` in whole tiles, made once for all blocks, which lie beside
  /// each other along an axis that is not; null where the value differs by rows, or is no bf16.
  NodeRef column_words(NodeRef n, size_t closed) {
    while (is_same_here(n)) n = n->src(0);
    const RowCone::Leaf* leaf = c_.leaves.find(n);
    if (!blocks_.tiles || !leaf || !is_widened(leaf->node)) return nullptr;
    NodeRef x = leaf->node->src(0);
    Walk walk;
    if (!is_static(x) || !walk_of({x, leaf->index}, walk)) return nullptr;
    const size_t rank = x->rank(), inner = innermost(walk.range_of, {closed});
    const auto down =
        static_cast<size_t>(std::ranges::find(walk.range_of, closed) - walk.range_of.begin());
    if (down == rank || inner == rank || walk.step(inner) != 1 || !has_words(x, down, walk))
      return nullptr;
    std::vector<size_t> order;
    for (size_t a = 0; a < rank; ++a)
      if (a != down && a != inner) order.push_back(a);
    order.insert(order.end(), {down, inner});
    x = with_whole_tiles(permuted(x, order), rank - 2);
    const int depth = blocks_.tiles->depth;
    x = words_along(g_, x, rank - 2, x->dim(rank - 2)->vmin / depth, depth);
    walk.at[down].base = g_.idiv(walk.at[down].base, g_.index(depth));
    NodeRef words = g_.index(in_whole_tiles(walked(walk, down)->vmin) / depth);
    return read(input(g_.make(Op::Contiguous, DType::U32, {x})), walk, order,
                [&](size_t a) { return a == down ? words : walked(walk, a); });
  }
  /// Whether what is read along this axis begins with a word, and has whole tiles with zeros behind
  /// the last.
  bool has_words(NodeRef x, size_t axis, const Walk& walk) const {
    NodeRef begin = walk.at[axis].base, length = walked(walk, axis);
    return length->op == Op::Const && walk.step(axis) == 1 &&
           divisor_of(begin) % blocks_.tiles->depth == 0 &&
           begin->vmax + in_whole_tiles(length->vmin) <= in_whole_tiles(x->dim(axis)->vmin);
  }

  // ---- what is computed of places

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
    const std::vector<NodeRef> dims = common_dims({a, b});
    const NodeRef src[] = {alike(a, dims), alike(b, dims)};
    return g_.make({op, a->dtype, src});
  }

  // ---- what is read

  bool walk_of(const RowCone::Leaf& leaf, Walk& walk) {
    const size_t rank = leaf.node->rank();
    walk.at.resize(rank);
    walk.range_of.assign(rank, c_.ranges.size());
    for (size_t a = 0; a < rank; ++a) {
      if (!is_affine(leaf.index[a], walk.at[a]) || walk.at[a].steps.size() > 1) return false;
      if (walk.at[a].steps.empty()) continue;
      const auto [range, step] = walk.at[a].steps[0];
      if (step < 1 || contains_range(walk.range_of, range)) return false;
      walk.range_of[a] = range;
    }
    return true;
  }
  /// How much of an axis a block reads.
  NodeRef walked(const Walk& walk, size_t axis) const {
    const size_t r = walk.range_of[axis];
    return r < symbols_.size() ? size(r) : g_.index(1);
  }

  /// A block of an input: its axes in the order of the ranges that they are walked by.
  NodeRef read(const RowCone::Leaf& leaf, const std::vector<size_t>& closed) {
    NodeRef x = leaf.node;
    if (blocks_.tiles && is_widened(x)) {
      NodeRef halves = read({x->src(0), leaf.index}, closed);
      return halves ? g_.make(Op::Cast, DType::F32, {halves}) : nullptr;
    }
    Walk walk;
    if (!walk_of(leaf, walk)) return nullptr;
    std::vector<size_t> order(x->rank());
    std::iota(order.begin(), order.end(), size_t{0});
    const bool lies = blocks_.tiles && x->dtype == DType::BF16;  // words are made in the block
    const size_t inner = lies ? order.size() : innermost(walk.range_of, closed);
    if (inner < order.size()) {
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(inner));
      order.push_back(inner);
    }
    const bool panels = inner < order.size() && fits_panels(x, inner, walk, closed);
    const auto first =
        std::ranges::find_if(order, [&](size_t a) { return !walk.at[a].steps.empty(); });
    NodeRef from = panels ? in_panels(leaf, order, static_cast<size_t>(first - order.begin()))
                          : placeholder(leaf, order);
    return read(from, walk, order, [&](size_t a) { return walked(walk, a); });
  }

  /// A block of `from`, whose axes are those of an input in this order.
  NodeRef read(NodeRef from, const Walk& walk, std::span<const size_t> order,
               FunctionRef<NodeRef(size_t)> size_of) {
    std::vector<NodeRef> src{from};
    std::vector<int64_t> steps;
    for (size_t a : order) src.push_back(walk.at[a].base);
    for (size_t a : order) src.push_back(size_of(a)), steps.push_back(walk.step(a));
    return in_order_of_ranges(g_.make({Op::Shrink, from->dtype, src, steps}), order, walk.range_of);
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
    const NodeRef unordered[] = {x};
    std::vector<NodeRef> dims(c_.ranges.size(), g_.index(1));
    for (size_t i = 0; i < order.size(); ++i)
      if (range_of[order[i]] < dims.size()) dims[range_of[order[i]]] = x->dim(i);
    return reshaped(g_, g_.make({Op::Permute, x->dtype, unordered, axes}), dims);
  }

  /// The axis that vectors of a product run along: one that it does not close; none where the
  /// value differs by rows.
  size_t innermost(std::span<const size_t> range_of, const std::vector<size_t>& closed) const {
    size_t best = range_of.size();
    for (size_t a = 0; a < range_of.size(); ++a) {
      if (range_of[a] == c_.row) return range_of.size();
      if (range_of[a] < c_.ranges.size() && !contains_range(closed, range_of[a])) best = a;
    }
    return best;
  }

  /// Of what is read of a leaf, moved so that its axes have this order: what variables say is read.
  NodeRef existing(const RowCone::Leaf& leaf, NodeRef x, std::span<const size_t> order) {
    NodeRef some = x;
    for (size_t i = 0; i < order.size(); ++i)
      for (size_t r = 0; r < c_.ranges.size(); ++r)
        if (c_.is_symbolic(r) && leaf.index[order[i]] == c_.ranges[r] && x->dim(i)->op == Op::Const)
          some = part(g_, some, i, g_.index(0), c_.ranges[r]->src(0));
    return some;
  }

  /// A copy of it with room for all of a leaf, as far as variables say, so that steps through it
  /// are numbers. `x` tells it from others.
  NodeRef copied(NodeRef x, NodeRef some, std::span<const NodeRef> all) {
    std::vector<NodeRef> room;
    for (NodeRef d : all) room.push_back(g_.index(d->vmax));
    if (std::ranges::equal(some->shape->span(), room))
      return g_.make(Op::Contiguous, x->dtype, {some});
    const auto number = static_cast<int64_t>(x->hash >> 2);  // another value, other memory
    return written_into(room, some, number);
  }

  /// `x` at the begin of memory of this shape, whose rest is not written.
  NodeRef written_into(std::span<const NodeRef> dims, NodeRef x, int64_t number) {
    const int64_t which[] = {-1 - number};
    const NodeRef memory[] = {g_.param(kInnerSlots, x->dtype, dims, x->device)};
    NodeRef whole = g_.intern({Op::Contiguous, x->dtype, memory, which}), there = whole;
    for (size_t a = 0; a < dims.size(); ++a)
      if (dims[a] != x->dim(a)) there = part(g_, there, a, g_.index(0), x->dim(a));
    return g_.make(Op::Assign, x->dtype, {whole, there, x});
  }

  /// Whether a sum walks down rows of which the block reads whole panels.
  bool fits_panels(NodeRef x, size_t inner, const Walk& walk,
                   const std::vector<size_t>& closed) const {
    const auto whole = [&](NodeRef n) { return divisor_of(n) % blocks_.panel == 0; };
    const bool down =
        std::ranges::any_of(closed, [&](size_t r) { return contains_range(walk.range_of, r); });
    return down && is_static(x) && walk.step(inner) == 1 && whole(x->dim(inner)) &&
           whole(walk.at[inner].base) && whole(walked(walk, inner));
  }

  /// A copy in panels of the axis that comes last in this order, [.., n / panel, .., panel] from
  /// axis `first` on, seen as [.., n].
  NodeRef in_panels(const RowCone::Leaf& leaf, std::span<const size_t> order, size_t first) {
    const size_t last = order.size() - 1;
    NodeRef x = permuted(leaf.node, order);
    const int64_t n = x->dim(last)->vmin;
    const auto panels = [&](NodeRef rows) {
      rows = with_axis(g_, rows, last, {n / blocks_.panel, blocks_.panel});
      return moved_axis(g_, rows, last, first);
    };
    NodeRef all = panels(x), some = panels(existing(leaf, x, order));
    x = input(copied(all, some, all->shape->span()));
    return with_axis(g_, moved_axis(g_, x, first, last), last, {n}, 2);
  }

  NodeRef permuted(NodeRef x, std::span<const size_t> order) {
    const std::vector<int64_t> axes(order.begin(), order.end());
    const NodeRef unordered[] = {x};
    return g_.make({Op::Permute, x->dtype, unordered, axes});
  }

  /// An input of the Repeat: the value, or a copy with its axes in this order.
  NodeRef placeholder(const RowCone::Leaf& leaf, std::span<const size_t> order) {
    if (std::ranges::is_sorted(order)) return input(leaf.node);
    NodeRef x = permuted(leaf.node, order);
    return input(copied(x, existing(leaf, x, order), x->shape->span()));
  }
  NodeRef input(NodeRef x) {
    const auto at = std::ranges::find(place_.inputs, x);
    const auto which = at - place_.inputs.begin();
    if (at == place_.inputs.end()) place_.inputs.push_back(x);
    return g_.param(place_.slot + which, x->dtype, x->shape->span(), x->device);
  }

  Graph& g_;
  const RowCone& c_;
  const Blocks blocks_;
  const BlockPlace place_;
  std::vector<NodeRef> symbols_;  // of each range in a block
  NodeRef first_key_ = nullptr;
  NodeMap<NodeRef> replaced_;         // of the cone's ranges: where a block is in them
  NodeMap<bool> factors_;             // products of numbers that only a sum reads
  NodeRef stored_in_bf16_ = nullptr;  // the numerator of weights that tiles multiply
  NodeRef stored_ = nullptr;          // what it is here
  NodeMap<NodeRef> made_;
};

}  // namespace

std::vector<NodeRef> block_results(Graph& g, const RowCone& cone, const Blocks& blocks,
                                   const BlockPlace& place) {
  return BlockBody(g, cone, blocks, place).results();
}

}  // namespace weft
