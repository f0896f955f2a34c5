#include "weft/schedule/row_products.h"

#include <algorithm>

#include "weft/graph/tuple.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"
#include "weft/schedule/rounds.h"

namespace weft {
namespace {

// Sums of 64 rows and 2 KB are an eighth of an L2 of 1 MiB, and are there twice: before and after a
// chunk. Runs shorter than kShortestRun are not worth it, nor are sums of more rows. Tiles of few
// registers come back to a chunk's rows, which share sets of L1, so often that packing them is
// better from kPackedRows on (16 registers, 64 x 4096 x 4096: 30 ms instead of 35).
constexpr int64_t kRun = 2048, kShortestRun = 1024, kLongestRun = 8192;  // bytes
constexpr double kMostRows = 64, kPackedRows = 32;
constexpr int kManyRegisters = 32;
// Rows of the matrix that are multiplied at once: 32 take more time for sums, 128 leave L2.
constexpr int64_t kChunk = 64;
// Rounds that keep cores busy, as long as the sums of all parts are little beside the matrix.
constexpr int64_t kRounds = 32, kLittle = 8;
// Without any of this the matrix is packed (pack_operands.cpp), or the sums of all chunks of
// kStreams rows are written (split_folds.cpp).
constexpr double kStreams = 32, kTimesL2 = 3;

struct RowProduct {
  NodeRef sum, product;
  size_t summed, columns;  // axes of the product
  int64_t rows;
};

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

double most_rows(const Target& target) {
  return target.vector_registers >= kManyRegisters || target.canonical ? kMostRows : kPackedRows;
}

/// Whether reading the matrix once is what takes the time, and what else would be done is more.
bool is_large(double bytes, double rows, const Machine& machine) {
  if (rows > kPackedRows) return bytes >= kTimesL2 * static_cast<double>(machine.l2().bytes);
  return rows > 1 && bytes * (1 + rows / kStreams) > static_cast<double>(machine.l3().bytes);
}

bool is_row_product(Graph& g, NodeRef reduce, const Target& target, const ConstantValues& constants,
                    RowProduct& out) {
  NodeRef x = reduce->src(0);
  if (fold_of(reduce) != Fold::Add || !is_product(x->op) || reduce_axes(reduce).size() != 1 ||
      !is_static(x))
    return false;
  const auto summed = static_cast<size_t>(reduce_axes(reduce)[0]);
  if (x->dim(summed)->vmin < 2 * kChunk) return false;
  for (NodeRef operand : {x->src(0), x->src(1)}) {
    const Reading matrix(g, operand);
    const double elements = matrix.elements(), rows = largest_numel(x->shape->span()) / elements;
    // What is computed would be written; constants are packed once.
    if (matrix.of->op != Op::Param || constants.contain(matrix.of) || rows > most_rows(target) ||
        !is_large(elements * bits(operand->dtype) / 8, rows, target.machine) ||
        !walks_down_rows(g, matrix, summed))
      continue;
    for (size_t a = 0; a < x->rank(); ++a) {
      if (a == summed || !matrix.lies_along(g, a)) continue;
      out = {reduce, x, summed, a, static_cast<int64_t>(rows)};
      return true;
    }
  }
  return false;
}

/// Rounds of a Repeat are blocks of columns, in each of `parts` of the sum. In a round there is a
/// Repeat over chunks that carries the sums.
class RowRounds {
 public:
  RowRounds(Graph& g, const RowProduct& p, int64_t width) : g_(g), p_(p), width_(width) {
    const int64_t all = p.product->dim(p.summed)->vmin, chunks = all / kChunk;
    blocks_ = p.product->dim(p.columns)->vmin / width;
    const int64_t little = std::max<int64_t>(1, all / (kLittle * p.rows));
    parts_ = largest_divisor(chunks, std::clamp<int64_t>(kRounds / blocks_, 1, little));
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
    NodeRef blocks = g_.index(blocks_);
    NodeRef before = g_.add(g_.mul(g_.idiv(round, blocks), g_.index(chunks_)), turn);
    NodeRef column = g_.mul(g_.mod(round, blocks), g_.index(width_));
    std::vector<NodeRef> src;
    for (NodeRef operand : p_.product->src()) src.push_back(of_placeholder(operand));
    NodeRef x = g_.with_sources(p_.product, src);
    x = part(g_, x, p_.summed, g_.mul(before, g_.index(kChunk)), g_.index(kChunk));
    x = part(g_, x, p_.columns, column, g_.index(width_));
    return reduce_over(g_, x, Fold::Add, {static_cast<int64_t>(p_.summed)});
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
    x = moved_axis(g_, x, 0, p_.columns - (p_.columns > p_.summed ? 1 : 0));
    return reshaped(g_, x, p_.sum->shape->span());
  }

  NodeRef with_rest(NodeRef sum) {
    const int64_t all = p_.product->dim(p_.summed)->vmin, done = all / kChunk * kChunk;
    if (done == all) return sum;
    NodeRef rest = part(g_, p_.product, p_.summed, done, all - done);
    return g_.add(sum, reduce_over(g_, rest, Fold::Add, {static_cast<int64_t>(p_.summed)}));
  }

  Graph& g_;
  const RowProduct& p_;
  const int64_t width_;
  int64_t blocks_, parts_, chunks_;
  std::vector<NodeRef> inputs_;
};

}  // namespace

NodeRef rows_by_matrix(Graph& g, NodeRef reduce, const Target& target,
                       const ConstantValues& constants) {
  RowProduct p;
  if (!is_row_product(g, reduce, target, constants, p)) return nullptr;
  const int64_t columns = p.product->dim(p.columns)->vmin, item = bits(p.product->dtype) / 8;
  int64_t width = 0;
  for (int64_t run = kRun; run <= kLongestRun && width * item < kShortestRun; run *= 2)
    width = largest_divisor(columns, run / item);
  return width * item < kShortestRun ? nullptr : RowRounds(g, p, width).sum();
}

}  // namespace weft
