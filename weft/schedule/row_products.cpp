#include "weft/schedule/row_products.h"

#include <algorithm>
#include <bit>

#include "weft/graph/tuple.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"
#include "weft/schedule/rounds.h"

namespace weft {
namespace {

// Sums of 64 rows and a run of columns are an eighth of L2, and are there twice: before and after a
// chunk. Runs shorter than kShortestRun are not worth it, nor are sums of more rows. Tiles of few
// registers come back to a chunk's rows, which share sets of L1, so often that packing them is
// better from kFewStreamed on (16 registers, 64 x 4096 x 4096: 30 ms instead of 35), and so it is
// where L3 is far (64 x 3072 x 5000: 8.3 instead of 10.7).
constexpr int64_t kRunsInL2 = 512, kShortestRun = 1024;  // bytes
constexpr double kStreamed = 64, kFewStreamed = 32;
// Rows of the matrix that are multiplied at once: as many as prefetchers know streams. (64 took up
// to twice as long for 10 to 32 rows by 4096 x 4096 on Granite Rapids, and 1.5 times for 48 rows by
// 8192 x 8192; on Zen a twentieth less for 64.) Without vectors it is a GPU's, to which a launch
// costs more.
constexpr int64_t kChunk = 32, kChunkOfItems = 64;
// Rounds that keep cores busy, as long as the sums of all parts are little beside the matrix.
constexpr int64_t kRounds = 32, kLittle = 8;
// Without any of this the matrix is packed (pack_operands.cpp), or the sums of all chunks of
// kStreams rows are written (split_folds.cpp).
constexpr double kStreams = 32, kTimesL2 = 3;
// An L3 whose slices lie across a die (target/machine.cpp), by its bytes a cycle, is no faster than
// memory: from more rows than kFewRows on sums are carried whatever it holds (16 x 4096 x 4096 4.3
// -> 2.5 ms, 32 x 8192 x 8192 60 -> 22; with less, sums that are written take as long or less).
constexpr double kFewRows = 15, kFarL3 = 12;

// Blocks of kPackedChunk rows that half of L2 holds, packed in each round: all of a matrix, packed
// at once, is written to memory and read again (128 x 8192 x 8192: 92 -> 62 ms). From kMostPacked
// rows on that is little, and from half as many on beside a matrix less than kLarge times L2 (512 x
// 2048 x 2048: 12.2 ms, and 13.7 by blocks). Columns that are no whole number of panels are not
// packed otherwise, so that any number of rows is better off (1024 x 3072 x 5000: 208 -> 101 ms).
constexpr int64_t kPackedChunk = 512, kPackedChunkOfSmallTiles = 1024, kPartOfL2 = 2,
                  kFewestPanels = 4;
constexpr double kMostPacked = 512, kLarge = 32;
constexpr int64_t kPage = 4096;

/// The columns of a panel: a vector of the longest, so that what is summed apart does not depend on
/// the length of vectors.
int64_t panel_of(DType dtype) { return Machine::kLine * 8 / bits(dtype); }

struct RowProduct {
  NodeRef sum, product, matrix;
  size_t summed, columns;  // axes of the product
  int64_t rows;
  std::vector<size_t> others = {};  // axes that the matrix does not have

  int64_t size(size_t axis) const { return product->dim(axis)->vmin; }
  int64_t item() const { return bits(product->dtype) / 8; }
};

/// Rows and columns of the matrix that are multiplied at once, and the columns of a panel where
/// they are packed. None: 0 columns.
struct Cut {
  int64_t chunk = 0, width = 0, panel = 0;
};

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

bool is_far(const Machine& machine) { return machine.l3().bytes_per_cycle < kFarL3; }

/// A GPU's items have none; but one order of sums is one order.
bool has_vectors(const Target& target) { return target.vector_bits > 0 || target.canonical; }

double most_streamed(const Target& target) {
  return makes_large_tiles(target) && !is_far(target.machine) ? kStreamed : kFewStreamed;
}

/// Whether reading the matrix once is what takes the time, and what else would be done is more.
bool is_large(double bytes, double rows, const Machine& machine) {
  if (rows > (is_far(machine) ? kFewRows : kFewStreamed))
    return bytes >= kTimesL2 * static_cast<double>(machine.l2().bytes);
  return rows > 1 && bytes * (1 + rows / kStreams) > static_cast<double>(machine.l3().bytes);
}

/// Columns of a block, of whole panels: of as many as divide them all, or where those are less than
/// `least`, of `most`. What is left over is multiplied apart.
int64_t width_of(const RowProduct& p, int64_t least, int64_t most) {
  const int64_t panel = panel_of(p.product->dtype), panels = p.size(p.columns) / panel;
  const int64_t any = largest_divisor(panels, most / panel);
  // Pairs make tiles of several panels (1024 x 3072 x 5000 by 13 panels 78 ms, by 12 71; Zen 5).
  const int64_t pairs = panels % 2 == 0 ? 2 * largest_divisor(panels / 2, most / panel / 2) : 0;
  const int64_t even = panel * (4 * pairs >= 3 * any ? pairs : any);
  return even >= least ? even : std::min(most / panel, panels) * panel;
}

/// The width is 0 where runs of columns are too short.
Cut streamed_cut(const RowProduct& p, const Target& target) {
  const auto run = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(target.machine.l2().bytes / kRunsInL2)));
  const int64_t least = kShortestRun / p.item(), most = std::max(run / p.item(), least);
  const int64_t width = width_of(p, least, most);
  const int64_t chunk = has_vectors(target) ? kChunk : kChunkOfItems;
  return {chunk, width < least ? 0 : width, 0};
}

/// Whether packing all of the matrix, which must be possible, takes no longer.
bool pays_whole(const RowProduct& p, double bytes, const Machine& machine) {
  const bool large = bytes >= kLarge * static_cast<double>(machine.l2().bytes);
  return p.size(p.columns) % panel_of(p.product->dtype) == 0 &&
         static_cast<double>(p.rows) > (large ? kMostPacked : kMostPacked / 2);
}

/// Whether what the matrix is multiplied by lies along its rows, and these are a page: tiles of it
/// would meet in the caches, and it is put in order where all of the matrix is packed (512 x 4096 x
/// 4096 in f64: 116 ms, and 168 by blocks).
bool is_far_apart(Graph& g, const RowProduct& p) {
  NodeRef other = p.product->src(p.product->src(0) == p.matrix ? 1 : 0);
  return p.rows * p.item() >= kPage && walks_down_rows(g, Reading(g, other), p.summed);
}

/// Of one matrix. The width is 0 where packing all of it, or none, is as good.
Cut packed_cut(Graph& g, const RowProduct& p, const Target& target) {
  const int64_t panel = panel_of(p.product->dtype), least = kFewestPanels * panel;
  const int64_t all = p.size(p.summed);
  const bool words = is_float(p.product->dtype) && bits(p.product->dtype) >= 32;
  if (!has_vectors(target) || !words || p.product->op != Op::Mul ||
      p.others.size() + 2 < p.product->rank() || p.size(p.columns) < least || all < kPackedChunk ||
      is_far_apart(g, p))
    return {};
  const auto bytes = static_cast<double>(all * p.size(p.columns) * p.item());
  const bool cached =
      !is_far(target.machine) && 2 * bytes <= static_cast<double>(target.machine.l3().bytes);
  if (cached || pays_whole(p, bytes, target.machine)) return {};
  const int64_t longest = makes_large_tiles(target) ? kPackedChunk : kPackedChunkOfSmallTiles;
  const int64_t chunk = all / ((all + longest - 1) / longest);
  const int64_t block = target.machine.l2().bytes / kPartOfL2;
  const int64_t most = std::max(least, block / (chunk * p.item()));
  return {chunk, width_of(p, most / 2, most), panel};
}

Cut cut_of(Graph& g, const RowProduct& p, const Target& target) {
  const bool streamed = static_cast<double>(p.rows) <= most_streamed(target);
  return streamed ? streamed_cut(p, target) : packed_cut(g, p, target);
}

bool is_row_product(Graph& g, NodeRef reduce, const Target& target, const ConstantValues& constants,
                    RowProduct& out) {
  NodeRef x = reduce->src(0);
  if (fold_of(reduce) != Fold::Add || !is_product(x->op) || reduce_axes(reduce).size() != 1 ||
      !is_static(x))
    return false;
  // By one number there are no rows to tell apart.
  if (std::ranges::any_of(x->src(), [](NodeRef s) { return s->rank() == 0; })) return false;
  const auto summed = static_cast<size_t>(reduce_axes(reduce)[0]);
  if (x->dim(summed)->vmin < 2 * kChunkOfItems) return false;
  for (NodeRef operand : {x->src(0), x->src(1)}) {
    const Reading matrix(g, operand);
    const double elements = matrix.elements(), rows = largest_numel(x->shape->span()) / elements;
    // What is computed would be written; constants are packed once.
    if (moved(operand)->op != Op::Param || constants.contain(matrix.of) ||
        !is_large(elements * bits(operand->dtype) / 8, rows, target.machine) ||
        !walks_down_rows(g, matrix, summed))
      continue;
    for (size_t a = 0; a < x->rank(); ++a) {
      if (a == summed || !matrix.lies_along(g, a)) continue;
      out = {reduce, x, operand, summed, a, static_cast<int64_t>(rows)};
      for (size_t other = 0; other < x->rank(); ++other)
        if (used_ranges(matrix.at.index, {&matrix.along[other], 1}).empty())
          out.others.push_back(other);
      return true;
    }
  }
  return false;
}

/// Rounds of a Repeat are blocks of columns, in each of `parts` of the sum. In a round there is a
/// Repeat over chunks that carries the sums.
class RowRounds {
 public:
  RowRounds(Graph& g, const RowProduct& p, const Cut& cut) : g_(g), p_(p), cut_(cut) {
    const int64_t all = p.size(p.summed), chunks = all / cut.chunk;
    blocks_ = p.size(p.columns) / cut.width;
    const int64_t little = std::max<int64_t>(1, all / (kLittle * p.rows));
    const int64_t most = std::clamp<int64_t>(kRounds / blocks_, 1, little);
    parts_ = cut.panel > 0 ? 1 : largest_divisor(chunks, most);
    chunks_ = chunks / parts_;
  }

  NodeRef sum() {
    NodeRef more = chunk();
    std::vector<NodeRef> whole, carried{zeros_like(g_, more)};
    const auto slot = kInnerBlocksSlot + std::ssize(inputs_);
    NodeRef next = g_.add(placeholder(g_, more, slot), more);
    for (NodeRef n : inputs_) whole.push_back(placeholder(g_, n, kBlocksSlot + std::ssize(whole)));
    NodeRef part_sum = repeat(g_, chunks_, kInnerBlocksSlot, whole, carried, next);
    return with_rest(arranged(repeat(g_, parts_ * blocks_, kBlocksSlot, inputs_, {}, part_sum)));
  }

 private:
  /// What one chunk adds to the sums of its round.
  NodeRef chunk() {
    NodeRef round = g_.variable(place_name(kBlocksLevel), 0, parts_ * blocks_ - 1);
    NodeRef turn = g_.variable(place_name(kInnerBlocksLevel), 0, chunks_ - 1);
    NodeRef blocks = g_.index(blocks_), rows = g_.index(cut_.chunk), width = g_.index(cut_.width);
    NodeRef before = g_.add(g_.mul(g_.idiv(round, blocks), g_.index(chunks_)), turn);
    NodeRef column = g_.mul(g_.mod(round, blocks), width);
    std::vector<NodeRef> src;
    for (NodeRef operand : p_.product->src()) {
      NodeRef x = part(g_, of_placeholder(operand), p_.summed, g_.mul(before, rows), rows);
      x = part(g_, x, p_.columns, column, width);
      src.push_back(cut_.panel > 0 && operand == p_.matrix ? packed(x) : x);
    }
    return summed(g_.with_sources(p_.product, src));
  }

  NodeRef summed(NodeRef product) {
    return reduce_over(g_, product, Fold::Add, {static_cast<int64_t>(p_.summed)});
  }

  /// A block of the matrix as it lies in memory that has its columns panel by panel. It is written
  /// row by row: chunks of rows are read side by side then.
  NodeRef packed(NodeRef x) {
    const size_t last = x->rank() - 1;
    NodeRef block = x;
    for (size_t a : p_.others) block = part(g_, block, a, int64_t{0}, int64_t{1});
    block = moved_axis(g_, block, p_.columns, last);
    NodeRef panels = with_axis(g_, block, last, {cut_.width / cut_.panel, cut_.panel});
    panels = moved_axis(g_, panels, last, 0);
    const auto as_block = [&](NodeRef n) {
      return with_axis(g_, moved_axis(g_, n, 0, last), last, {cut_.width}, 2);
    };
    const int64_t which[] = {-1};
    const NodeRef memory[] = {g_.param(kInnerSlots, x->dtype, panels->shape->span(), x->device)};
    NodeRef whole = g_.intern({Op::Contiguous, x->dtype, memory, which});
    block = as_block(g_.make(Op::Assign, x->dtype, {whole, as_block(whole), block}));
    return expanded(g_, moved_axis(g_, block, last, p_.columns), x);
  }

  /// What an operand moves is an input of the inner Repeat.
  NodeRef of_placeholder(NodeRef operand) {
    NodeRef leaf = moved(operand);
    const auto at = std::ranges::find(inputs_, leaf);
    const auto which = at - inputs_.begin();
    if (at == inputs_.end()) inputs_.push_back(leaf);
    std::vector<NodeRef> chain;
    for (NodeRef n = operand; n != leaf; n = n->src(0)) chain.push_back(n);
    NodeRef x = placeholder(g_, leaf, kInnerBlocksSlot + which);
    for (size_t i = chain.size(); i-- > 0;) {
      std::vector<NodeRef> src(chain[i]->src().begin(), chain[i]->src().end());
      src[0] = x;
      x = g_.with_sources(chain[i], src);
    }
    return x;
  }

  /// [rounds, .., width, ..] as [.., columns, ..], all parts added up.
  NodeRef arranged(NodeRef x) {
    x = reduce_over(g_, with_axis(g_, x, 0, {parts_, blocks_}), Fold::Add, {0});
    x = moved_axis(g_, x, 0, axis());
    std::vector<NodeRef> dims(p_.sum->shape->span().begin(), p_.sum->shape->span().end());
    dims[axis()] = g_.index(blocks_ * cut_.width);
    return reshaped(g_, x, dims);
  }

  /// What chunks leave of the sum, and then blocks of the columns.
  NodeRef with_rest(NodeRef sum) {
    const int64_t all = p_.size(p_.summed), done = all / cut_.chunk * cut_.chunk;
    const int64_t columns = p_.size(p_.columns), begin = blocks_ * cut_.width;
    if (done < all) {
      NodeRef rest = part(g_, p_.product, p_.summed, done, all - done);
      sum = g_.add(sum, summed(part(g_, rest, p_.columns, int64_t{0}, begin)));
    }
    if (begin == columns) return sum;
    const int64_t along[] = {static_cast<int64_t>(axis())};
    const NodeRef parts[] = {sum, summed(part(g_, p_.product, p_.columns, begin, columns - begin))};
    return g_.make({Op::Cat, sum->dtype, parts, along});
  }

  /// Of the columns, in the sum.
  size_t axis() const { return p_.columns - (p_.columns > p_.summed ? 1 : 0); }

  Graph& g_;
  const RowProduct& p_;
  const Cut cut_;
  int64_t blocks_, parts_, chunks_;
  std::vector<NodeRef> inputs_;
};

}  // namespace

NodeRef rows_by_matrix(Graph& g, NodeRef reduce, const Target& target,
                       const ConstantValues& constants) {
  RowProduct p;
  if (!is_row_product(g, reduce, target, constants, p)) return nullptr;
  const Cut cut = cut_of(g, p, target);
  return cut.width == 0 ? nullptr : RowRounds(g, p, cut).sum();
}

}  // namespace weft
