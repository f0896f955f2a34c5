#include "weft/schedule/decoded_products.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "weft/base/small_vector.h"
#include "weft/graph/index_algebra.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/estimate.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"
#include "weft/schedule/rounds.h"

namespace weft {
namespace {

// Operations on an element that make decoding it once worth while: more than a cast and a shift.
constexpr int kDecodes = 3;
// A captured function would keep what constants this large, times L2, become: of weights of 16 bits
// twice their memory. Any operation is decoding, then.
constexpr double kKept = 8;
// Times: how much smaller what is decoded is than it is afterwards. With less than a bit for a
// number it is no data, but random numbers or positions.
constexpr double kSmaller = 2, kMuchSmaller = 32;
constexpr size_t kLargest = 2000;   // nodes of what decodes
constexpr size_t kMostTerms = 100;  // and of sums that are looked into
// So many rows share what is decoded in the registers of a tile (six of Q4_0, 4096 x 4096: 1.05 ms;
// 0.75 for three, and 2.2 for eight by blocks). More where decoding is casting: 16 matrices of 2048
// x 8192 of F16, 8 and 12 rows 27 and 34 ms, by blocks 50 and 72; with 16 registers likewise. From
// 16 rows on, which fill vectors and tiles of blocks, long rows lose (a step of 16 texts in F16 of
// 1.1 B: 44 tokens/s, and 68 by blocks).
constexpr double kRowsInRegisters = 6, kRowsOfCasts = 15;
constexpr int kCasts = 3;  // from f16 to bf16 and to f32
// Vectors of as many rows need no copy of what was decoded (4096 x 4096 of Q4_0, 64 rows: 6.0 ms,
// and 7.7 with vectors of columns; 128 rows take the same either way).
constexpr double kVectorsOfRows = 128;
// A chunk takes this part of L2, and its copy as much. Chunks begin where blocks of formats do.
// Small tiles of vectors of columns want them long, and of fewer columns (F16 on a Zen 3, 256 rows
// by 2048 x 8192: 54 to 60 ms, and 51 to 60 of 32 columns, 1024 rows: 216 to 231, and 195 to 214;
// of vectors of rows 64 rows take a tenth longer so).
constexpr int64_t kPartOfL2 = 4, kColumns = 64, kColumnsOfSmallTiles = 32, kAligned = 256;

struct DecodedProduct {
  NodeRef sum, product, matrix;
  size_t summed, columns;         // axes of the product
  std::vector<size_t> rows = {};  // axes that the matrix does not have
  std::vector<NodeRef> leaves = {};
  bool permuted = false;  // most of what the matrix is decoded from
};

double bytes(NodeRef n) { return largest_numel(n->shape->span()) * bits(n->dtype) / 8; }

/// What a value is computed from element by element: the values that are as large, and by how many
/// operations on each.
struct Cone {
  std::vector<NodeRef> nodes, leaves;
  int work = 0;
  double bytes = 0;     // of leaves, as far as they are read
  double permuted = 0;  // of these where what lies side by side is not of one row
};

bool is_leaf(NodeRef n) {
  return n->op != Op::Cat && n->op != Op::Const && n->op != Op::Iota && !is_movement(n->op) &&
         !is_alu(n->op);
}

/// False where it is made of much, or of positions that are data. Parts that are read of one value
/// add up.
bool find_cone(NodeRef root, Cone& out) {
  NodeMap<double> read;  // elements
  struct Read {
    NodeRef of;
    double wanted;
    bool permuted = false;  // by movement alone
  };
  std::vector<Read> stack{{root, HUGE_VAL}};
  const double whole = largest_numel(root->shape->span());
  while (!stack.empty()) {
    const auto [n, wanted, permuted] = stack.back();
    stack.pop_back();
    if (is_index(n->dtype)) continue;
    const double elements = largest_numel(n->shape->span());
    double& part = read[n];
    const bool first = part == 0, passes_on = is_movement(n->op) || is_leaf(n);
    const double more = std::min(wanted, elements - part);
    if (!first && (more <= 0 || !passes_on)) continue;
    part += more;
    if (read.size() > kLargest || n->op == Op::ToIndex) return false;
    if (is_leaf(n)) {
      if (first) out.leaves.push_back(n);
      out.bytes += more * bits(n->dtype) / 8;
      if (permuted) out.permuted += more * bits(n->dtype) / 8;
      continue;
    }
    const bool full = first && 2 * elements >= whole;
    if (full) out.nodes.push_back(n);
    out.work += is_alu(n->op) && n->op != Op::Bitcast && full;
    const double next = is_movement(n->op) ? more : HUGE_VAL;
    const bool across = n->op == Op::Permute || (permuted && is_movement(n->op));
    for (size_t i = 0; i < evaluated_sources(n); ++i) stack.push_back({n->src(i), next, across});
  }
  return !out.leaves.empty();
}

/// Whether `n` is large, and computed from much less, by so many operations at least.
bool is_decoded(NodeRef n, const Machine& machine, int operations, Cone& cone) {
  if (!is_alu(n->op) || !is_static(n) || 2 * bytes(n) < static_cast<double>(machine.l2().bytes) ||
      !find_cone(n, cone) || cone.work < operations)
    return false;
  return kSmaller * cone.bytes <= bytes(n) && bytes(n) <= kMuchSmaller * cone.bytes;
}

/// Steps from one element of what is read to the next, in elements; 0 where it is not affine.
int64_t step(Graph& g, const Reading& read, size_t axis) {
  NodeRef place = flatten_index(g, read.at.index, read.of->shape->span());
  Stride s{};
  return split_stride(g, place, read.along[axis], s) ? s.coefficient : 0;
}

/// How many rows share in the registers of a tile what is decoded for their product.
double rows_in_registers(const Cone& cone) {
  return cone.work <= kCasts ? kRowsOfCasts : kRowsInRegisters;
}

/// Its rows lie side by side, each as long as the sum.
bool has_rows(Graph& g, NodeRef other, const Reading& matrix, DecodedProduct& out) {
  const Reading beside(g, other);
  const auto uses = [](const Reading& r, size_t a) {
    return !used_ranges(r.at.index, {&r.along[a], 1}).empty();
  };
  const int64_t row = step(g, matrix, out.summed) * out.product->dim(out.summed)->vmin;
  for (size_t a = 0; a < out.product->rank(); ++a) {
    if (!uses(matrix, a)) out.rows.push_back(a);
    if (a != out.summed && uses(matrix, a) && !uses(beside, a) && step(g, matrix, a) >= row)
      out.columns = a;
  }
  return row > 0 && out.columns != out.summed && out.product->dim(out.columns)->op == Op::Const;
}

bool is_decoded_product(Graph& g, NodeRef reduce, const Target& target,
                        const ConstantValues& constants, DecodedProduct& out) {
  NodeRef x = reduce->src(0);
  if (fold_of(reduce) != Fold::Add || x->op != Op::Mul || reduce_axes(reduce).size() != 1)
    return false;
  const auto summed = static_cast<size_t>(reduce_axes(reduce)[0]);
  if (x->dim(summed)->op != Op::Const) return false;
  for (size_t i = 0; i < 2; ++i) {
    NodeRef of = moved(x->src(i));
    Cone cone;
    const bool kept = bytes(of) >= kKept * static_cast<double>(target.machine.l2().bytes) &&
                      constants.contain(of);
    if (!is_decoded(of, target.machine, kept ? 1 : kDecodes, cone)) continue;
    const Reading matrix(g, x->src(i));
    const double elements = matrix.elements();
    const double few = rows_in_registers(cone);
    const bool permuted = 2 * cone.permuted > cone.bytes;
    out = {reduce, x, x->src(i), summed, summed, {}, std::move(cone.leaves), permuted};
    if (elements == largest_numel(of->shape->span()) &&
        largest_numel(x->shape->span()) > few * elements && has_rows(g, x->src(1 - i), matrix, out))
      return true;
  }
  return false;
}

/// Whether it is the f32 of a bf16.
bool is_rounded(NodeRef operand) {
  NodeRef x = moved(operand);
  return x->op == Op::Cast && x->dtype == DType::F32 && x->src(0)->dtype == DType::BF16;
}

/// What multiplies the operands' pairs of bf16, where they are bf16 and there is such a unit.
const MatrixUnit* unit_of(NodeRef product, size_t summed, const Target& target) {
  if (!is_static(product) || !is_rounded(product->src(0)) || !is_rounded(product->src(1)))
    return nullptr;
  const MatrixUnit* unit = unit_of_pairs(target);
  return unit && product->dim(summed)->vmin % unit->depth == 0 ? unit : nullptr;
}

/// Rounds of a Repeat are blocks of columns, and each of them a Repeat over chunks of the sum.
class ColumnBlocks {
 public:
  ColumnBlocks(Graph& g, const DecodedProduct& p, const Target& target)
      : g_(g),
        p_(p),
        axis_(p.columns - (p.columns > p.summed ? 1 : 0)),
        unit_(unit_of(p.product, p.summed, target)) {
    all_ = p.product->dim(p.columns)->vmin;
    const int64_t sum = p.product->dim(p.summed)->vmin;
    const double rows =
        largest_numel(p.product->shape->span()) / largest_numel(moved(p.matrix)->shape->span());
    along_rows_ = unit_ || (is_static(p.product) && rows <= kVectorsOfRows);
    width_ =
        std::min(along_rows_ || makes_large_tiles(target) ? kColumns : kColumnsOfSmallTiles, all_);
    const int width = unit_ ? 32 / unit_->depth : bits(p.product->dtype);
    const int64_t block = target.machine.l2().bytes / kPartOfL2 * 8 / width;
    chunk_ = largest_divisor(sum, kAligned, block / width_);
    rounds_ = all_ / width_;
    chunks_ = sum / chunk_;
  }

  NodeRef sum() {
    slot_ = chunks_ > 1 ? kInnerBlocksSlot : kBlocksSlot;
    for (NodeRef leaf : p_.leaves) give(leaf);
    NodeRef sums = products();
    if (chunks_ > 1) sums = over_chunks(sums);
    return with_rest(arranged(repeat(g_, rounds_, kBlocksSlot, inputs_, {}, sums)));
  }

 private:
  /// The largest multiple of `unit` up to `most` that divides n; n itself where there is none.
  static int64_t largest_divisor(int64_t n, int64_t unit, int64_t most) {
    for (int64_t d = std::min(n, most) / unit * unit; d > 0; d -= unit)
      if (n % d == 0) return d;
    return n;
  }

  /// A param in its place.
  NodeRef give(NodeRef n) {
    if (const NodeRef* given = given_.find(n)) return *given;
    inputs_.push_back(n);
    return given_.set(n, placeholder(g_, n, slot_ + std::ssize(inputs_) - 1));
  }

  NodeRef over_chunks(NodeRef more) {
    std::vector<NodeRef> whole;
    for (NodeRef n : inputs_) whole.push_back(placeholder(g_, n, kBlocksSlot + std::ssize(whole)));
    const NodeRef carried[] = {zeros_like(g_, more)};
    NodeRef next = g_.add(placeholder(g_, more, slot_ + std::ssize(inputs_)), more);
    return repeat(g_, chunks_, kInnerBlocksSlot, whole, carried, next);
  }

  /// Of one chunk of one round. Along rows its columns come first.
  NodeRef products() {
    NodeRef more = beside(), matrix = decoded();
    NodeRef x = unit_ ? g_.make(unit_->op, unit_->sum, {matrix, more, zero()})
                      : g_.make(Op::Mul, p_.product->dtype, {more, matrix});
    x = reduce_over(g_, x, Fold::Add, {static_cast<int64_t>(p_.summed)});
    return along_rows_ ? moved_axis(g_, x, axis_, 0) : x;
  }

  NodeRef zero() { return g_.constant(Value::of(unit_->sum, 0)); }

  NodeRef block(NodeRef x) {
    NodeRef round = g_.variable(place_name(kBlocksLevel), 0, rounds_ - 1);
    x = part(g_, x, p_.columns, g_.mul(round, g_.index(width_)), g_.index(width_));
    return chunk(x, chunk_);
  }
  /// Of numbers, or words of them.
  NodeRef chunk(NodeRef x, int64_t size) {
    if (chunks_ == 1) return x;
    NodeRef turn = g_.variable(place_name(kInnerBlocksLevel), 0, chunks_ - 1);
    return part(g_, x, p_.summed, g_.mul(turn, g_.index(size)), g_.index(size));
  }

  /// What the matrix is multiplied by. For vectors along rows a copy in which they lie side by
  /// side.
  NodeRef beside() {
    NodeRef x = p_.product->src(p_.product->src(0) == p_.matrix ? 1 : 0);
    if (!along_rows_) {
      if (moved(x)->op != Op::Const) give(moved(x));
      return block(substitute(g_, x, given_));
    }
    x = part(g_, x, p_.columns, int64_t{0}, int64_t{1});
    x = moved_axis(g_, x, p_.summed, 0);
    if (unit_) x = words_along(g_, narrow(x), 0, words_of(x, 0), unit_->depth);
    x = given_in_panels(x);
    x = chunk(moved_axis(g_, x, 0, p_.summed), chunk_ / (unit_ ? unit_->depth : 1));
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    dims[p_.columns] = g_.index(width_);
    return expanded_to(x, dims);
  }

  /// A copy for all rounds, whose rows are vectors that lie one after the other down the sum: what
  /// walks far from each to the next would have a copy like it made in every round.
  NodeRef given_in_panels(NodeRef x) {
    const int64_t panel = Machine::kLine * 8 / bits(x->dtype);
    const auto several = [&](size_t a) { return x->dim(a)->vmax > 1; };
    size_t rows = x->rank() - 1;
    while (rows > 1 && !several(rows)) --rows;
    if (rows == 0 || x->dim(rows)->op != Op::Const || x->dim(rows)->vmin % panel != 0)
      return give(g_.make(Op::Contiguous, x->dtype, {x}));
    const size_t last = x->rank();
    const int64_t size = x->dim(rows)->vmin;
    x = moved_axis(g_, with_axis(g_, x, rows, {size / panel, panel}), rows + 1, last);
    x = moved_axis(g_, x, rows, 0);
    x = moved_axis(g_, give(g_.make(Op::Contiguous, x->dtype, {x})), 0, rows);
    return with_axis(g_, moved_axis(g_, x, last, rows + 1), rows, {size}, 2);
  }

  NodeRef narrow(NodeRef x) { return g_.make(Op::Cast, unit_->left, {x}); }
  int64_t words_of(NodeRef x, size_t axis) const { return x->dim(axis)->vmin / unit_->depth; }

  NodeRef expanded_to(NodeRef x, std::span<const NodeRef> dims) {
    std::vector<NodeRef> src{x};
    src.insert(src.end(), dims.begin(), dims.end());
    return std::ranges::equal(x->shape->span(), dims) ? x : g_.make({Op::Expand, x->dtype, src});
  }

  /// A block of the matrix in memory: columns along the sum, as they are decoded; for vectors of
  /// columns a copy along these.
  NodeRef decoded() {
    NodeRef x = block(substitute(g_, p_.matrix, given_));
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    for (size_t a : p_.rows) x = part(g_, x, a, int64_t{0}, int64_t{1});
    const size_t last = x->rank() - 1;
    x = moved_axis(g_, x, p_.summed, last);
    if (unit_ && p_.permuted) {
      // Lanes are columns from the bytes on.
      x = words_along(g_, narrow(x), last, words_of(x, last), unit_->depth);
      x = g_.make(Op::Contiguous, x->dtype, {moved_axis(g_, x, axis_, last)});
      dims[p_.summed] = x->dim(last - 1);
      x = moved_axis(g_, x, last, axis_);
    } else if (unit_) {
      x = g_.make(Op::Contiguous, unit_->left, {narrow(x)});
      dims[p_.summed] = g_.index(words_of(x, last));
      x = words_along(g_, x, last, words_of(x, last), unit_->depth);
    } else if (along_rows_) {
      x = g_.make(Op::Contiguous, x->dtype, {x});
    } else {
      x = moved_axis(g_, rows_apart(x), axis_, last);
      x = moved_axis(g_, g_.make(Op::Contiguous, x->dtype, {x}), last, axis_);
    }
    return expanded_to(moved_axis(g_, x, last, p_.summed), dims);
  }

  /// In memory, with a line between rows, which are as long as a way of L1 or a part of it.
  NodeRef rows_apart(NodeRef x) {
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    dims.back() = g_.add(dims.back(), g_.index(Machine::kLine * 8 / bits(x->dtype)));
    const int64_t which[] = {-1};
    const NodeRef memory[] = {g_.param(kInnerSlots, x->dtype, dims, x->device)};
    NodeRef whole = g_.intern({Op::Contiguous, x->dtype, memory, which});
    const auto row = [&](NodeRef n) {
      return part(g_, n, n->rank() - 1, g_.index(0), x->dim(x->rank() - 1));
    };
    return row(g_.make(Op::Assign, x->dtype, {whole, row(whole), x}));
  }

  /// [rounds, .., width, ..], or [rounds, width, ..], as [.., columns, ..].
  NodeRef arranged(NodeRef x) {
    if (along_rows_) x = moved_axis(g_, x, 1, axis_ + 1);
    x = moved_axis(g_, x, 0, axis_);
    std::vector<NodeRef> dims(p_.sum->shape->span().begin(), p_.sum->shape->span().end());
    dims[axis_] = g_.index(rounds_ * width_);
    return reshaped(g_, x, dims);
  }

  NodeRef with_rest(NodeRef done) {
    const int64_t begin = rounds_ * width_;
    if (begin == all_) return done;
    NodeRef rest = part(g_, p_.product, p_.columns, begin, all_ - begin);
    const int64_t along[] = {static_cast<int64_t>(axis_)};
    const NodeRef parts[] = {done,
                             reduce_over(g_, rest, Fold::Add, {static_cast<int64_t>(p_.summed)})};
    return g_.make({Op::Cat, done->dtype, parts, along});
  }

  Graph& g_;
  const DecodedProduct& p_;
  const size_t axis_;             // of the columns, in the sum
  const MatrixUnit* const unit_;  // of words; null where numbers are multiplied one by one
  int64_t all_, width_, rounds_, chunk_, chunks_, slot_ = 0;
  bool along_rows_;  // vectors
  std::vector<NodeRef> inputs_;
  NodeMap<NodeRef> given_;
};

// Halves that take as long to widen as another kernel.
constexpr double kLaunched = 1 << 15;

}  // namespace

bool widens_half(NodeRef n) {
  if (n->op != Op::Cast || n->dtype != DType::F32) return false;
  NodeRef from = moved(n->src(0));
  return from->op == Op::Param && is_half(from->dtype);
}

/// Whether a product widens halves one by one: vectors run along an axis that they have not. A
/// vector of them is one instruction, one of them is three.
bool Planner::widens_singly(NodeRef n, const std::vector<Use>& wanted, double total) const {
  constexpr double kAlongSums = 15;  // of fewer columns than a vector, lanes run along the sum
  if (!widens_half(n) || target.vector_bits == 0 || wanted.size() != 1 || !in_reduce(wanted[0]))
    return false;
  const double numel = largest_numel(n->shape->span());
  const auto& ranges = kernels[static_cast<size_t>(wanted[0].kernel)].ranges;
  return total > kAlongSums * numel && numel >= kLaunched && !ranges.empty() &&
         used_ranges(wanted[0].access.index, {&ranges.back(), 1}).empty();
}

/// Whether a product of few rows decodes it, or what it is made of, for all of them at once.
bool Planner::is_decoded_in_registers(NodeRef n, const std::vector<Use>& wanted, double total) {
  if (decoded_.contains(n)) return true;
  const double rows = total / largest_numel(n->shape->span());
  if (target.vector_bits == 0 || wanted.size() != 1 || !in_reduce(wanted[0]) || rows > kRowsOfCasts)
    return false;
  Cone cone;
  if (!is_decoded(n, target.machine, kDecodes, cone) || rows > rows_in_registers(cone))
    return false;
  for (NodeRef part : cone.nodes) decoded_[part] = true;
  return true;
}

/// Whether vectors of a sum would gather halves: none of its axes walks along their rows for half a
/// vector or more, as where windows move by two or rows are of seven. Gathered one by one they
/// take four times as long as words (960 images of 7 x 7, depthwise 3 x 3: 292 us, and 96).
bool Planner::gathers_halves(NodeRef n, const std::vector<Use>& wanted, double total) const {
  constexpr double kReads = 2;  // of each, from which on
  if (!widens_half(n) || n->rank() == 0 || target.vector_bits == 0 || wanted.size() != 1 ||
      !in_reduce(wanted[0]))
    return false;
  const double numel = largest_numel(n->shape->span());
  const auto last = static_cast<int>(n->rank()) - 1;
  return numel >= kLaunched && total >= kReads * numel &&
         std::ranges::none_of(wanted[0].scope, [&](NodeRef r) {
           return r->op == Op::Range && r->src(0)->vmax >= target.lanes(DType::F32) / 2 &&
                  moving_axis(g, wanted[0].access, r) == last;
         });
}

/// Whether a product of few rows reads halves of memory, of which each vector is one instruction.
bool Planner::is_widened(NodeRef n, const std::vector<Use>& wanted, double total) const {
  constexpr double kFewRows = 64;
  return widens_half(n) && target.vector_bits > 0 && wanted.size() == 1 && in_reduce(wanted[0]) &&
         total <= kFewRows * largest_numel(n->shape->span()) && !widens_singly(n, wanted, total);
}

/// Whether `n` are words of codes, computed from packed bytes, of which at most each byte is
/// wanted: by neighbours, which share the word in registers.
bool Planner::is_taken_apart(NodeRef n, double total) const {
  constexpr double kBytesOfWord = 4;
  if (n->dtype != DType::U32 || target.vector_bits == 0 || !is_alu(n->op) ||
      total > kBytesOfWord * largest_numel(n->shape->span()))
    return false;
  Cone cone;
  return find_cone(n, cone) && bytes(n) <= kMuchSmaller * cone.bytes &&
         std::ranges::all_of(cone.leaves, [](NodeRef leaf) { return bits(leaf->dtype) == 8; });
}

namespace {

bool sums_bytes(NodeRef n) {
  return n->op == Op::Dot4 || (n->op == Op::Reduce && moved(n->src(0))->op == Op::Dot4);
}

/// Whether it is such a sum, or that and an offset.
bool is_sum_of_bytes(NodeRef n) {
  if (n->op != Op::Add) return sums_bytes(n);
  return std::ranges::any_of(n->src(), [](NodeRef s) { return sums_bytes(moved(s)); });
}

/// A term of x, or x itself, is a converted sum of bytes times something.
bool scales_bytes(NodeRef x) {
  SmallVector<NodeRef, 16> open{x};
  for (size_t seen = 0; !open.empty() && seen < kMostTerms; ++seen) {
    NodeRef n = moved(open.back());
    open.pop_back();
    if (n->op == Op::Cast && is_sum_of_bytes(moved(n->src(0)))) return true;
    if (n->op == Op::Mul || n->op == Op::MulAcc)
      for (NodeRef s : n->src()) open.push_back(s);
  }
  return false;
}

}  // namespace

bool sums_scaled_bytes(NodeRef reduce) {
  return fold_of(reduce) == Fold::Add && is_float(reduce->dtype) && scales_bytes(reduce->src(0));
}

/// Where `n` is what sums of scaled bytes add up, all that it is made of stays in the kernel: codes
/// and scales of packed weights are never in memory as numbers.
void Planner::note_coded(NodeRef n, const std::vector<Use>& wanted) {
  if (coded_.contains(n) || !is_float(n->dtype) || wanted.size() != 1 ||
      wanted[0].linear_in != static_cast<int>(Fold::Add) || !scales_bytes(n))
    return;
  kernels[static_cast<size_t>(wanted[0].kernel)].sums_bytes = true;
  std::vector<NodeRef> stack{n};
  while (!stack.empty()) {
    NodeRef x = stack.back();
    stack.pop_back();
    if (is_index(x->dtype) || (is_leaf(x) && !sums_bytes(x)) || coded_.contains(x)) continue;
    coded_[x] = true;
    for (size_t i = 0; i < evaluated_sources(x); ++i) stack.push_back(x->src(i));
  }
}

bool is_decoded(NodeRef n, const Machine& machine) {
  Cone cone;
  return is_decoded(n, machine, kDecodes, cone);
}

NodeRef decoded_by_blocks(Graph& g, NodeRef reduce, const Target& target,
                          const ConstantValues& constants) {
  DecodedProduct p;
  if (!is_decoded_product(g, reduce, target, constants, p)) return nullptr;
  return ColumnBlocks(g, p, target).sum();
}

}  // namespace weft
