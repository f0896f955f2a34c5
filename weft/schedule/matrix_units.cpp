// Sums of products of narrow numbers by the machine's dot products (Target::matrix_units): operands
// are copied into words that hold as many neighbours along the sum as one operation multiplies, and
// the sum is over words. That is for products that read each element often enough to be worth the
// copy.
//
// Bytes are widened where the unit takes numbers of 16 bits (vpmaddwd).
//
// One operand of vpdpbusd is unsigned and the other signed. Where both are alike the sign bit of
// one is flipped, which moves its values by 128: sum (a + 128) b - 128 sum b = sum a b.
#include "weft/graph/words.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/decoded_products.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

// Reads of an element from which on its copy is worth while: one of up to kNear times what L2
// holds, up to kFar times, and others; not by the cores, so that no number of threads changes a
// bit. On Zen 4 words made 8 rows of 1024 x 1024 bfloats 1.3 times as fast, 32 of 1440 x 1440 1.7
// times, 48 of 4096 x 4096 1.9 times, and 16 of those half as fast.
constexpr double kReuseNear = 8, kReuseFar = 24, kReuse = 48;
constexpr double kNear = 2, kFar = 6;
// What is left without a unit are products of i32, which take eight times as long as those of
// words.
constexpr double kReuseOfIntegers = 12;
// Of tiles' operands, where the product has fewer rows or columns than a tile.
constexpr double kReuseOfRemainders = 48;
// By tiles, which multiply sixteen times as many numbers as vectors do in the same time: on Granite
// Rapids they made 64 rows of 1024 x 1024 bfloats 5 times as fast, and 10000 x 128 by 16 columns 8
// times.
constexpr double kReuseByTiles = 8;
constexpr int64_t kShortest = 4;  // words of a sum

struct Factor {
  NodeRef full;              // as it is multiplied
  NodeRef narrow = nullptr;  // before it is converted, broadcast axes of size 1
};

double numel(NodeRef n) { return largest_numel(n->shape->span()); }

class DotProducts {
 public:
  DotProducts(Graph& g, NodeRef sum, const Target& target, const ConstantValues& constants)
      : g_(g),
        sum_(sum),
        target_(target),
        constants_(constants),
        axis_(static_cast<size_t>(reduce_axes(sum)[0])) {
    NodeRef x = sum->src(0);
    count_ = x->dim(axis_)->vmin;
    left_ = {x->src(0), narrow_values(g, x->src(0))};
    right_ = {x->src(1), narrow_values(g, x->src(1))};
  }

  /// The sum by a unit's operation; null where there is none, or it does not pay.
  NodeRef run() {
    if (!is_narrow(left_) || !is_narrow(right_)) return nullptr;
    const MatrixUnit* unit = choose_unit();
    if (!unit || count_ < kShortest * unit->depth) return nullptr;
    if (!worth_packing(left_, *unit, unit->left) || !worth_packing(right_, *unit, unit->right))
      return nullptr;
    const bool flips_left = flips(left_, unit->left), flips_right = flips(right_, unit->right);
    NodeRef a = words(left_, *unit, unit->left), b = words(right_, *unit, unit->right);
    NodeRef dot = g_.make(unit->op, unit->sum, {a, b, g_.constant(Value::of(unit->sum, 0))});
    NodeRef made =
        split_large_reduction(g_, reduce_over(g_, dot, Fold::Add, {axis()}), target_, constants_);
    if (flips_left) made = g_.add(made, moved_by(-128, right_));
    if (flips_right) made = g_.add(made, moved_by(128, left_));
    return made;
  }

 private:
  int64_t axis() const { return static_cast<int64_t>(axis_); }

  /// Not of one number for all products, which has no axes.
  bool is_narrow(const Factor& f) const {
    return f.narrow && f.narrow->rank() > axis_ && f.narrow->dim(axis_)->vmin == count_;
  }

  bool worth_packing(const Factor& f, const MatrixUnit& unit, DType as) {
    if (is_constant(f) || lies_in_words(f, unit, as)) return true;
    const MatrixUnit* tiles = target_.tile_unit(unit.op);
    const double reuse = is_int(f.narrow->dtype) ? kReuseOfIntegers
                         : !tiles                ? reuse_of_floats(f)
                         : fills(*tiles)         ? kReuseByTiles
                                                 : kReuseOfRemainders;
    return numel(sum_->src(0)) >= reuse * numel(f.narrow);
  }

  /// Whether the result has rows and columns for a tile.
  bool fills(const MatrixUnit& tiles) const {
    NodeRef x = sum_->src(0), columns = (is_rows(left_) ? right_ : left_).narrow;
    const auto large = [&](size_t a) { return x->dim(a)->vmin >= tiles.tile; };
    for (size_t a = 0; a < x->rank(); ++a)
      if (a != axis_ && large(a) && is_int_const(columns->dim(a), 1)) return large(last());
    return false;
  }

  /// Rows of words that need no copy. (Tiles of few columns were not measured.)
  bool lies_in_words(const Factor& f, const MatrixUnit& unit, DType as) {
    const bool tiles = target_.tile_unit(unit.op) != nullptr;
    if (!target_.machine_code || tiles || flips(f, as) || !is_rows(f)) return false;
    NodeRef word = words(f, unit, as);
    while (is_movement(word->op) && word->op != Op::Gather) word = word->src(0);
    const Element first = word_in_memory(g_, word);
    return first.memory && is_aligned(first, DType::U32);
  }

  double reuse_of_floats(const Factor& f) const {
    const double bytes = numel(f.narrow) * bits(f.narrow->dtype) / 8;
    const auto cache = static_cast<double>(target_.machine.l2().bytes);
    return bytes <= kNear * cache ? kReuseNear : bytes <= kFar * cache ? kReuseFar : kReuse;
  }

  /// Its words are made once for many runs. Of what is decoded they would be memory that there is
  /// none for.
  bool is_constant(const Factor& f) const {
    return constants_.contain(f.narrow) && !is_decoded(moved(f.full), target_.machine);
  }

  static bool flips(const Factor& f, DType wanted) {
    return f.narrow->dtype != wanted && bits(wanted) == 8;
  }

  /// The unit for these operands, in this order or the other, or with signs flipped.
  const MatrixUnit* choose_unit() {
    const bool widens = !target_.native(Op::Dot4, DType::I32);
    const auto alike = [widens](DType have, DType wanted, bool flipped) {
      if (have == wanted || !is_int(have) || bits(have) > 8) return have == wanted;
      return bits(wanted) == 8 ? flipped : widens && wanted == DType::I16;
    };
    // Tiles read rows where they lie, unless their signs are flipped.
    const auto keeps_rows = [&](const MatrixUnit& u) {
      return !target_.tile_unit(u.op) ||
             (is_rows(left_) ? left_.narrow->dtype == u.left : right_.narrow->dtype == u.right);
    };
    for (const auto& [flipped, any] : {std::pair{false, true}, {true, false}, {true, true}})
      for (int order = 0; order < 2; ++order) {
        for (const MatrixUnit& u : target_.matrix_units)
          if (u.tile == 0 && u.sum == sum_->dtype && alike(left_.narrow->dtype, u.left, flipped) &&
              alike(right_.narrow->dtype, u.right, flipped) && (any || keeps_rows(u)))
            return &u;
        std::swap(left_, right_);
      }
    return nullptr;
  }

  /// The axis that vectors of the result run along.
  size_t last() const {
    const size_t rank = sum_->src(0)->rank();
    return axis_ + 1 == rank ? axis_ - 1 : rank - 1;
  }
  /// Not along that axis.
  bool is_rows(const Factor& f) const { return is_int_const(f.narrow->dim(last()), 1); }

  /// Words of `depth` neighbours each, the first in the lowest bits, in the shape of the factor.
  NodeRef words(const Factor& f, const MatrixUnit& unit, DType as) {
    int64_t length = (count_ + unit.depth - 1) / unit.depth;
    if (const MatrixUnit* tiles = target_.tile_unit(unit.op))
      length = (length + tiles->tile - 1) / tiles->tile * tiles->tile;
    const size_t last = this->last();
    // The factor that has it lies along it.
    NodeRef narrow = f.narrow;
    if (bits(narrow->dtype) < bits(as)) narrow = g_.make(Op::Cast, as, {narrow});
    NodeRef x = moved_axis(g_, narrow, last, f.full->rank() - 1);
    const size_t along = axis_ - (last < axis_ ? 1 : 0);
    if (length * unit.depth != count_) {
      x = padded(g_, x, along, 0, length * unit.depth - count_);
      // Rows are copied as they lie: words of theirs would be in any order (65536 x 50 by 17: 1500
      // us, and 530).
      if (is_rows(f) && target_.tile_unit(unit.op)) x = g_.make(Op::Contiguous, x->dtype, {x});
    }
    NodeRef word = words_along(g_, x, along, length, unit.depth);
    if (flips(f, as)) {  // the sign bit of each
      NodeRef signs = g_.constant(Value::of(DType::U32, int64_t{0x80808080}));
      word = g_.make(Op::Xor, DType::U32, {word, signs});
    }
    if (is_constant(f)) word = g_.make(Op::Contiguous, DType::U32, {word});
    word = moved_axis(g_, word, word->rank() - 1, last);
    std::vector<NodeRef> src{word};
    for (size_t a = 0; a < f.full->rank(); ++a)
      src.push_back(a == axis_ ? g_.index(length) : f.full->dim(a));
    return f.full->op == Op::Expand ? g_.make({Op::Expand, DType::U32, src}) : word;
  }

  /// factor * the sum of what was not moved, in the result's shape.
  NodeRef moved_by(int64_t factor, const Factor& f) {
    NodeRef wide = g_.make(Op::Cast, sum_->dtype, {f.narrow});
    NodeRef total = reduce_over(g_, wide, Fold::Add, {axis()});
    NodeRef scaled =
        g_.make(Op::Mul, sum_->dtype, {total, g_.constant(Value::of(sum_->dtype, factor))});
    return expanded(g_, g_.make(Op::Contiguous, sum_->dtype, {scaled}), sum_);
  }

  Graph& g_;
  NodeRef sum_;
  const Target& target_;
  const ConstantValues& constants_;
  size_t axis_;
  int64_t count_ = 0;
  Factor left_, right_;
};

/// A product of two matrices, or of a batch of them, that tiles would copy more of than they need
/// to, or that has fewer rows or columns than one of them.
class FitForTiles {
 public:
  FitForTiles(Graph& g, NodeRef sum, const MatrixUnit& tiles, const Target& target,
              const ConstantValues& constants)
      : g_(g),
        sum_(sum),
        tiles_(tiles),
        target_(target),
        constants_(constants),
        axis_(static_cast<size_t>(reduce_axes(sum)[0])) {}

  /// The sum of the product as tiles want it; null where they want it as it is, or it is none.
  NodeRef run() {
    NodeRef x = sum_->src(0);
    NodeRef left = narrow_factor(0), right = narrow_factor(1);
    if (!left || !right) return nullptr;
    for (size_t a = 0; a < x->rank(); ++a)
      if (a != axis_ && !is_int_const(left->dim(a), 1) && !is_int_const(right->dim(a), 1))
        batch_.push_back(a);
    Side rows = side(left), columns = side(right);
    if (rows.axes.empty() || columns.axes.empty()) return nullptr;
    const size_t rank = x->rank(), last = axis_ + 1 == rank ? axis_ - 1 : rank - 1;
    if (rows.has(last)) std::swap(rows, columns);
    const bool turned = pays_turning(rows, columns);
    if (!turned && rows.count >= tiles_.tile && columns.count >= tiles_.tile) return nullptr;
    const int64_t height = (turned ? columns : rows).count, width = (turned ? rows : columns).count;
    if (std::min(height, width) < kFewest) return nullptr;
    const size_t first = batch_.size();
    if (first > 0 && height < kTilesOfBatch * tiles_.tile) return nullptr;
    NodeRef made = turned ? product(columns, rows) : product(rows, columns);
    if (!made) return nullptr;
    NodeRef result = g_.make(Op::Contiguous, sum_->dtype, {made});
    result = part(g_, part(g_, result, first, 0, height), first + 1, 0, width);
    return in_place(turned ? moved_axis(g_, result, first, first + 1) : result, rows, columns);
  }

 private:
  // Rows, or columns, from which on a tile that has more is faster than vectors without it.
  static constexpr int64_t kFewest = 5;
  // Of rows, from which on so small matrices of a batch are worth copies: 128 of 32 x 512 by 8
  // columns gain 4 times, 256 of 16 x 200 lose 1.5.
  static constexpr int64_t kTilesOfBatch = 2;
  // Elements from which on zeros are put around rows first, which are transposed into words then
  // by vectors: one by one under a mask, 256 of 8 x 200 took 520 us.
  static constexpr double kLaunched = 1 << 15;

  struct Side {
    NodeRef narrow = nullptr;
    SmallVector<size_t, 4> axes;  // that it has alone
    int64_t count = 1;            // of elements along them
    bool has(size_t axis) const { return std::ranges::find(axes, axis) != axes.end(); }
  };

  bool is_batch(size_t axis) const { return std::ranges::find(batch_, axis) != batch_.end(); }

  /// A factor before it is converted, with the sum's axis and all of the product's; null where it
  /// has not.
  NodeRef narrow_factor(size_t i) {
    NodeRef x = sum_->src(0), narrow = narrow_values(g_, x->src(i));
    const bool whole = narrow && narrow->rank() == x->rank() && narrow->dim(axis_) == x->dim(axis_);
    return whole ? narrow : nullptr;
  }

  Side side(NodeRef narrow) const {
    Side s{narrow, {}, 1};
    for (size_t a = 0; a < narrow->rank(); ++a)
      if (a != axis_ && !is_int_const(narrow->dim(a), 1) && !is_batch(a))
        s.axes.push_back(a), s.count *= narrow->dim(a)->vmin;
    return s;
  }

  /// Tiles read rows along the sum where they lie, and copy columns: the smaller operand should be
  /// those, if the result in the other order costs less than is saved.
  bool pays_turning(const Side& rows, const Side& columns) {
    constexpr double kOfResult = 4;  // elements to copy that take as long as one of the result
    const double result = static_cast<double>(rows.count) * static_cast<double>(columns.count);
    return numel(columns.narrow) > numel(rows.narrow) + kOfResult * result &&
           !constants_.contain(columns.narrow) && Reading(g_, columns.narrow).lies_along(g_, axis_);
  }

  /// (batch.., count, sum), with zeros for rows that fill a tile.
  NodeRef matrix(const Side& s) {
    std::vector<int64_t> order(batch_.begin(), batch_.end());
    order.insert(order.end(), s.axes.begin(), s.axes.end());
    for (size_t a = 0; a < s.narrow->rank(); ++a)
      if (a != axis_ && !s.has(a) && !is_batch(a)) order.push_back(static_cast<int64_t>(a));
    order.push_back(static_cast<int64_t>(axis_));
    const NodeRef src[] = {s.narrow};
    NodeRef x = g_.make({Op::Permute, s.narrow->dtype, src, order});
    std::vector<NodeRef> dims = batch_dims();
    dims.insert(dims.end(), {g_.index(s.count), x->dim(x->rank() - 1)});
    x = reshaped(g_, x, dims);
    const int64_t run = tiles_.tile * tiles_.depth, count = x->dim(x->rank() - 1)->vmin;
    const int64_t rows = std::max<int64_t>(0, tiles_.tile - s.count),
                  rest = (run - count % run) % run;
    if (rows == 0 && rest == 0) return x;
    x = padded(g_, padded(g_, x, batch_.size(), 0, rows), batch_.size() + 1, 0, rest);
    const bool first = numel(x) >= kLaunched && Reading(g_, s.narrow).lies_along(g_, axis_);
    return first ? g_.make(Op::Contiguous, x->dtype, {x}) : x;
  }

  std::vector<NodeRef> batch_dims() const {
    std::vector<NodeRef> dims;
    for (size_t a : batch_) dims.push_back(sum_->src(0)->dim(a));
    return dims;
  }

  NodeRef product(const Side& rows, const Side& columns) {
    const DType run = sum_->src(0)->dtype;
    const size_t first = batch_.size();
    NodeRef a = g_.make(Op::Cast, run, {matrix(rows)});
    NodeRef b = moved_axis(g_, g_.make(Op::Cast, run, {matrix(columns)}), first + 1, first);
    NodeRef one = g_.index(1), height = a->dim(first), sum = a->dim(first + 1),
            width = b->dim(first + 1);
    const auto behind_batch = [&](std::initializer_list<NodeRef> dims) {
      std::vector<NodeRef> all = batch_dims();
      all.insert(all.end(), dims);
      return all;
    };
    const auto spread = [&](NodeRef x, std::initializer_list<NodeRef> dims) {
      std::vector<NodeRef> src = behind_batch({height, sum, width});
      src.insert(src.begin(), reshaped(g_, x, behind_batch(dims)));
      return g_.make({Op::Expand, run, src});
    };
    NodeRef factors =
        g_.make(Op::Mul, run, {spread(a, {height, sum, one}), spread(b, {one, sum, width})});
    const auto axis = static_cast<int64_t>(first) + 1;
    return DotProducts(g_, reduce_over(g_, factors, Fold::Add, {axis}), target_, constants_).run();
  }

  /// (batch.., rows, columns) in the order of the sum's axes.
  NodeRef in_place(NodeRef result, const Side& rows, const Side& columns) {
    NodeRef x = sum_->src(0);
    std::vector<size_t> axes(batch_.begin(), batch_.end());
    axes.insert(axes.end(), rows.axes.begin(), rows.axes.end());
    axes.insert(axes.end(), columns.axes.begin(), columns.axes.end());
    for (size_t a = 0; a < x->rank(); ++a)
      if (a != axis_ && !is_batch(a) && !rows.has(a) && !columns.has(a)) axes.push_back(a);
    std::vector<NodeRef> dims;
    std::vector<int64_t> order(sum_->rank());
    for (size_t i = 0; i < axes.size(); ++i) {
      dims.push_back(x->dim(axes[i]));
      order[axes[i] - (axes[i] > axis_ ? 1 : 0)] = static_cast<int64_t>(i);
    }
    const NodeRef src[] = {reshaped(g_, result, dims)};
    return g_.make({Op::Permute, sum_->dtype, src, order});
  }

  Graph& g_;
  NodeRef sum_;
  const MatrixUnit& tiles_;
  const Target& target_;
  const ConstantValues& constants_;
  size_t axis_;
  SmallVector<size_t, 4> batch_;  // axes that both factors have
};

/// A factor of a sum with these neighbouring axes as one; null where it lacks one of them.
NodeRef with_one_axis(Graph& g, NodeRef factor, size_t first, size_t count) {
  NodeRef x = factor->op == Op::Expand ? factor->src(0) : factor;
  if (x->rank() != factor->rank() || x->rank() < first + count) return nullptr;  // a number
  int64_t size = 1;
  for (size_t a = first; a < first + count; ++a) {
    if (x->dim(a) != factor->dim(a)) return nullptr;
    size *= x->dim(a)->vmin;
  }
  x = with_axis(g, x, first, {size}, count);
  if (factor->op != Op::Expand) return x;
  std::vector<NodeRef> src{x};
  for (size_t a = 0; a < factor->rank(); ++a)
    if (a <= first || a >= first + count)
      src.push_back(a == first ? g.index(size) : factor->dim(a));
  return g.make({Op::Expand, x->dtype, src});
}

/// A sum of products along neighbouring axes, as a weight's gradient is one along sequences and
/// their places, along one axis; null where it is another.
NodeRef along_one_axis(Graph& g, NodeRef sum) {
  const auto axes = reduce_axes(sum);
  if (axes.size() == 1) return sum;
  for (size_t i = 1; i < axes.size(); ++i)
    if (axes[i] != axes[0] + static_cast<int64_t>(i)) return nullptr;
  const auto first = static_cast<size_t>(axes[0]);
  NodeRef x = sum->src(0), a = with_one_axis(g, x->src(0), first, axes.size()),
          b = with_one_axis(g, x->src(1), first, axes.size());
  if (!a || !b) return nullptr;
  return reduce_over(g, g.make(Op::Mul, x->dtype, {a, b}), Fold::Add, {axes[0]});
}

}  // namespace

Element word_in_memory(Graph& g, NodeRef n) {
  std::vector<NodeRef> index;
  for (size_t a = 0; a < n->rank(); ++a)
    index.push_back(g.range(n->dim(a), static_cast<int64_t>(a)));
  return first_of_word(g, n, [&](NodeRef x) {
    Access at{index, g.boolean(true)};
    for (; is_movement(x->op) && x->op != Op::Gather; x = x->src(0)) at = map_access(g, x, at);
    const bool plain = (x->op == Op::Param || x->op == Op::Contiguous) && is_int_const(at.valid, 1);
    return plain ? Element{x, flatten_index(g, at.index, x->shape->span())} : Element{};
  });
}

bool is_column_of_tiles(const Planner& plan, NodeRef words, const Use& use) {
  const auto& ranges = plan.kernels[static_cast<size_t>(use.kernel)].ranges;
  const bool tiles =
      std::ranges::any_of(plan.target.matrix_units, [](const MatrixUnit& u) { return u.tile > 0; });
  return tiles && !ranges.empty() &&
         iterations(use.scope) >= kReuseByTiles * largest_numel(words->shape->span()) &&
         !used_ranges(use.access.index, {&ranges.back(), 1}).empty();
}

const MatrixUnit* unit_of_pairs(const Target& target) {
  const auto found = std::ranges::find_if(target.matrix_units, [](const MatrixUnit& u) {
    return u.tile == 0 && u.left == DType::BF16 && u.right == DType::BF16 && u.sum == DType::F32;
  });
  return found == target.matrix_units.end() ? nullptr : found;
}

NodeRef by_matrix_unit(Graph& g, NodeRef given, const Target& target,
                       const ConstantValues& constants) {
  NodeRef x = given->src(0);
  if (target.matrix_units.empty() || fold_of(given) != Fold::Add || given->rank() == 0 ||
      x->op != Op::Mul || !is_static(x))
    return nullptr;
  NodeRef sum = along_one_axis(g, given);
  if (!sum) return nullptr;
  for (const MatrixUnit& u : target.matrix_units)
    if (u.tile > 0 && u.sum == sum->dtype)
      if (NodeRef made = FitForTiles(g, sum, u, target, constants).run()) return made;
  return DotProducts(g, sum, target, constants).run();
}

}  // namespace weft
