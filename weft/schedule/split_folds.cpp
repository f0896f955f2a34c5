// Reductions in two steps, the first over fixed chunks that become an outer loop:
// - of very many elements to very few, which would have no parallel outer loop;
// - of products whose operands are read again for every tile of the result and do not fit a cache:
//   weight gradients, whose chunks of the batch do;
// - of products of few rows with a large matrix, which is walked down: the rows of a chunk are read
//   side by side;
// - sums of floats so long that one accumulator would lose what it adds. Running sums likewise.
// And products of large matrices over a long axis, one block of it after the other.
// The chunks depend on sizes alone, so the result does not depend on the number of threads.
//
// With chunks of at most c elements a sum of n is off by at most (c + n / c) half ulps of the sum
// of absolute values, whatever the target does inside of a chunk (Higham, "The accuracy of floating
// point summation", SIAM J. Sci. Comput. 14, 1993).
#include <algorithm>
#include <cmath>

#include "weft/schedule/axes.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

constexpr double kFewOutputs =
    32;  // as many outputs as this keep every core busy without splitting
constexpr double kManyElements =
    131072;  // per kernel; below it the second kernel costs more than it brings
constexpr int64_t kMaxChunks = 256;
// Products of numbers below 1 pass through subnormal numbers on their way to 0, each of which costs
// a processor some 150 cycles: in f32 soon, once for each accumulator, and so for each chunk.
constexpr int64_t kChunksOfProduct = 32;

constexpr int64_t kLongestChunk = 1 << 14;  // elements of a chunk of a long sum
// From here on running sums have blocks: along the innermost axis, where blocks also run side by
// side, and along others.
constexpr int64_t kLongRun = 1 << 15, kLongOuterRun = 1 << 18;
constexpr double kRowsForCores = 8;

constexpr double kL2Share = 0.75;   // of L2, for the operands of a chunk
constexpr double kStaysOfL2 = 0.7;  // of that, for an operand that stays while the other comes by
constexpr double kReuse = 64;       // multiplications per element that make reading again the cost
// The same for results of at most so many elements, a few tiles, and how many chunks those have at
// least: there would be as few items as tiles otherwise.
constexpr double kFewTiles = 4096, kReuseByFew = 8, kChunksOfFew = 16;

// A block of a long axis has this part of L2 in every row: what a tile of 14 x 32 to 5 x 80 sums
// from then takes a sixth to a third of it. Rows of two blocks still go well in one.
constexpr int64_t kBlockOfL2 = 256, kMostBlocks = 16;
// Small tiles wait for the sums so far as long as a seventh of the products of 512 elements takes,
// or a quarter of those of 256 (Zen 3, three turns, blocks of 512, 1024, 2048 in f32: 4096 x 4096 x
// 4096 837 to 939, 772 to 825, 784 to 848 ms, 2048 117, 102, 100; of 256, 512, 1024 in f64: 2048
// 291 to 320, 251 to 266, 210 to 217 ms).
constexpr int64_t kBlockOfSmallTiles = 1024;
// Columns in tiles fill half of L2 (optimize/cost.cpp): with blocks of this part of it there are
// 256 of them, for each of which a row that comes from L3 is multiplied.
constexpr int64_t kTileBlockOfL2 = 512;
constexpr double kReuseAlong = 300;  // kReuse, where operands lie along the sum

// A vector of the next row of a matrix is in another page, and nothing fetches ahead; so many rows
// are fetched side by side, each from one end to the other (prefetchers know 32 streams; 16 and 64
// rows were up to twice as slow). The sums of all chunks come to 1 / 32 of the matrix for each row
// that it is multiplied by: up to kStreamedRows of them. More pay for panels (pack_operands.cpp).
// Matrices that L2 holds come soon enough.
constexpr int64_t kStreams = 32;
constexpr double kStreamedRows = 32, kStreamedPartOfL2 = 1.0 / 2;

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

/// A reduced axis as chunks of one length; what is left over comes after them.
struct Split {
  size_t axis = 0;
  int64_t chunks = 1, length = 1;
};

/// The reduced axis that splits evenly into most chunks: an inner one into twice as many, since
/// chunks of the outermost are one run of memory, as they are with a rest (101 images: 17.5 ms by
/// rows, 12.6 so). Or, where `any` and none comes near `most`, the longest axis with a rest.
Split best_split(NodeRef reduce, int64_t most, bool any) {
  Split best, longest;
  const auto axes = reduce_axes(reduce);
  if (axes.empty()) return best;
  for (int64_t a : axes) {
    const auto axis = static_cast<size_t>(a);
    const int64_t n = reduce->src(0)->dim(axis)->vmin, chunks = largest_divisor(n, most);
    if (chunks > (best.chunks > 1 ? 2 : 1) * best.chunks) best = {axis, chunks, n / chunks};
    if (n > longest.length) longest = {axis, 1, n};
  }
  const auto outermost = static_cast<size_t>(axes[0]);
  const int64_t outer = reduce->src(0)->dim(outermost)->vmin;
  if (!any && best.chunks > 1 && best.axis != outermost && outer >= 2 * most) {
    const int64_t length = (outer + most - 1) / most;
    return {outermost, outer / length, length};
  }
  if (!any || 2 * best.chunks >= std::min(most, longest.length)) return best;
  constexpr int64_t kWhole = 64;  // lanes of the longest vectors, four times
  int64_t length = (longest.length + most - 1) / most;
  if (length > kWhole) length = (length + kWhole - 1) / kWhole * kWhole;
  return {longest.axis, longest.length / length, length};
}

double bytes(NodeRef n) { return largest_numel(n->shape->span()) * bits(n->dtype) / 8; }

/// As many chunks as it takes for the operands of one to stay in a cache; 1 where they do anyway
/// or reading them is not what takes the time.
int64_t chunks_for_cache(NodeRef reduce, const Machine& machine) {
  const double cached = kL2Share * static_cast<double>(machine.l2().bytes);
  NodeRef x = moved(reduce->src(0));
  if (fold_of(reduce) != Fold::Add || !is_product(x->op)) return 1;
  NodeRef a = moved(x->src(0)), b = moved(x->src(1));
  const double operands = bytes(a) + bytes(b);
  const double products = largest_numel(x->shape->span());
  const bool few = largest_numel(reduce->shape->span()) < kFewTiles;
  // Past an operand that stays there, the other one comes by once.
  if (operands <= 2 * cached || std::min(bytes(a), bytes(b)) <= kStaysOfL2 * cached ||
      products * bits(x->dtype) / 8 < (few ? kReuseByFew : kReuse) * operands)
    return 1;
  const double chunks = std::max(few ? kChunksOfFew : 1, std::ceil(operands / cached));
  // The sums of all chunks are written and read once; that has to be little beside the operands.
  if (bytes(reduce) * chunks > operands / 2) return 1;
  return static_cast<int64_t>(chunks);
}

/// As many chunks as it takes for the rows of a large matrix to be read side by side, where a
/// product of few others with it walks down them; 1 where none does.
int64_t chunks_for_streams(Graph& g, NodeRef reduce, const Target& target,
                           const ConstantValues& constants) {
  NodeRef x = moved(reduce->src(0));
  const bool lanes = target.vector_bits > 0 || target.canonical;  // others fetch by many items
  if (!lanes || fold_of(reduce) != Fold::Add || !is_product(x->op) || x != reduce->src(0) ||
      reduce_axes(reduce).size() != 1 || target.tile_unit(x->op))  // a tile has rows of its own
    return 1;
  const auto axis = static_cast<size_t>(reduce_axes(reduce)[0]);
  const double products = largest_numel(x->shape->span());
  for (NodeRef operand : {x->src(0), x->src(1)}) {
    const Reading read(g, operand);
    const double elements = read.elements(), rows = products / elements;
    const bool packed_once = rows > 1 && constants.contain(read.of);
    const bool large = elements * bits(operand->dtype) / 8 >=
                       kStreamedPartOfL2 * static_cast<double>(target.machine.l2().bytes);
    if (rows <= kStreamedRows && !packed_once && large && walks_down_rows(g, read, axis))
      return x->dim(axis)->vmin / kStreams;
  }
  return 1;
}

/// The blocks that a product of large matrices is summed in, where the elements that one tile of
/// the result needs would not stay in L2. What is done so far is written and read again for each.
Split blocks_for_cache(Graph& g, NodeRef reduce, const Target& target) {
  NodeRef x = moved(reduce->src(0));
  if (fold_of(reduce) != Fold::Add || !is_product(x->op) || reduce_axes(reduce).size() != 1)
    return {};
  const auto axis = static_cast<size_t>(reduce_axes(reduce)[0]);
  const int64_t all = reduce->src(0)->dim(axis)->vmin;
  constexpr int64_t kWhole = 16;  // lanes, so that blocks begin where vectors may
  const bool tiles = target.tile_unit(x->op) != nullptr;
  const int64_t least = std::max(
      makes_large_tiles(target) ? kWhole : kBlockOfSmallTiles,
      target.machine.l2().bytes / (tiles ? kTileBlockOfL2 : kBlockOfL2) * 8 / bits(x->dtype));
  // Without vectors it is a GPU's, which has caches of its own; but one order of sums is one order.
  if ((target.vector_bits == 0 && !target.canonical) || all <= (tiles ? 1 : 2) * least) return {};
  const double operands = bytes(moved(x->src(0))) + bytes(moved(x->src(1)));
  const double products = largest_numel(x->shape->span()) * bits(x->dtype) / 8;
  if (products < kReuse * operands) return {};
  // Vectors along the sum read neither operand in long steps, and each block would end with a sum
  // across them.
  if (products < kReuseAlong * operands && Reading(g, x->src(0)).lies_along(g, axis) &&
      Reading(g, x->src(1)).lies_along(g, axis))
    return {};
  const int64_t blocks = std::min((all + least - 1) / least, kMostBlocks);
  const int64_t length = ((all + blocks - 1) / blocks + kWhole - 1) / kWhole * kWhole;
  return {axis, (all + length - 1) / length, length};
}

/// What a reduction reads.
double operand_bytes(NodeRef x) {
  NodeRef of = moved(x);
  return is_product(of->op) ? bytes(moved(of->src(0))) + bytes(moved(of->src(1))) : bytes(x);
}

/// So many that none is longer than kLongestChunk, as long as the sums of all chunks are little
/// beside what they are sums of.
int64_t chunks_for_precision(NodeRef reduce) {
  if (fold_of(reduce) != Fold::Add || !is_float(reduce->dtype)) return 1;
  const double outputs = largest_numel(reduce->shape->span());
  const double each = largest_numel(reduce->src(0)->shape->span()) / std::max(outputs, 1.0);
  if (each < kLongSum) return 1;
  const double little = operand_bytes(reduce->src(0)) / 2 / std::max(bytes(reduce), 1.0);
  return static_cast<int64_t>(std::min(std::ceil(each / kLongestChunk), std::max(little, 1.0)));
}

int64_t chunks_for_cores(NodeRef reduce) {
  const bool few = largest_numel(reduce->shape->span()) < kFewOutputs;
  if (!few || largest_numel(reduce->src(0)->shape->span()) < kManyElements) return 1;
  const bool may_vanish = fold_of(reduce) == Fold::Mul && reduce->dtype == DType::F32;
  return may_vanish ? kChunksOfProduct : kMaxChunks;
}

/// Whether it runs along what lies side by side, of a product in the larger operand.
bool sums_neighbours(Graph& g, NodeRef reduce) {
  NodeRef of = reduce->src(0);
  if (is_product(of->op)) of = of->src(bytes(moved(of->src(0))) < bytes(moved(of->src(1))));
  const Reading read(g, of);
  return std::ranges::any_of(reduce_axes(reduce), [&](int64_t axis) {
    return read.lies_along(g, static_cast<size_t>(axis));
  });
}

/// Whether all of it but few numbers comes from memory, element by element: what another kernel
/// makes lies as its readers wish.
bool comes_from_memory(NodeRef n, double few) {
  constexpr size_t kLargestCone = 32;  // nodes looked at
  SmallVector<NodeRef, kLargestCone> cone{n};
  for (size_t i = 0; i < cone.size(); ++i) {
    if (cone.size() > kLargestCone) return false;
    NodeRef at = cone[i];
    if (at->op == Op::Param || at->op == Op::Const || largest_numel(at->shape->span()) <= few)
      continue;
    if (!is_alu(at->op) && (!is_movement(at->op) || at->op == Op::Gather)) return false;
    for (NodeRef s : at->src())
      if (!is_index(s->dtype) && std::ranges::find(cone, s) == cone.end()) cone.push_back(s);
  }
  return true;
}

/// Of rows that are summed to a short one: an item has whole rows then, which lie one behind the
/// other, and not some columns of all (65536 x 64 in f32: 620 -> 280 us, times 65536 numbers 1720
/// -> 290; 8192 x 1024: 1540 -> 700, but times 8192 numbers 540 -> 670).
int64_t chunks_of_rows(Graph& g, NodeRef reduce) {
  constexpr double kShortRow = 4096, kShortOfProducts = 256;  // results
  constexpr int64_t kLeast = 128, kFewest = 8, kMost = 64;    // rows of a chunk, chunks
  const double outputs = largest_numel(reduce->shape->span());
  const double elements = largest_numel(reduce->src(0)->shape->span());
  NodeRef x = reduce->src(0);
  const bool products = is_product(x->op);
  if (outputs < kFewOutputs || outputs > (products ? kShortOfProducts : kShortRow) ||
      elements < kManyElements || fold_of(reduce) == Fold::Mul || !comes_from_memory(x, outputs))
    return 1;
  if (sums_neighbours(g, reduce)) return 1;
  const int64_t chunks = static_cast<int64_t>(elements / outputs) / kLeast;
  return chunks < kFewest ? 1 : std::min(chunks, kMost);
}

/// Chunks for a machine that wants many items, where neighbours of the sum are no neighbours in
/// memory: those are folded by the items of a group.
int64_t chunks_for_items(Graph& g, NodeRef reduce, const Target& target) {
  constexpr double kPart = 1.0 / 64;  // as in optimize/tiling.cpp
  constexpr double kLeast = 64;       // elements of a chunk, of which one is written and read again
  const double outputs = std::max(largest_numel(reduce->shape->span()), 1.0);
  const double elements = largest_numel(reduce->src(0)->shape->span());
  const double wanted = std::min(kPart * static_cast<double>(target.enough_items) / outputs,
                                 elements / outputs / kLeast);
  if (target.canonical || wanted < 2 || elements < kManyElements) return 1;
  return sums_neighbours(g, reduce) ? 1 : std::min(static_cast<int64_t>(wanted), kMaxChunks);
}

NodeRef scan_along(Graph& g, NodeRef x, int64_t axis) {
  return g.make(Op::Scan, x->dtype, {x}, {static_cast<int64_t>(Fold::Add), axis});
}

/// The sum over the first block, then that plus the sum over the second one, and so on: one after
/// the other, and the whole never in more memory than two results.
NodeRef sum_block_by_block(Graph& g, NodeRef n, const Split& blocks) {
  NodeRef x = n->src(0), sum = nullptr;
  const int64_t all = x->dim(blocks.axis)->vmin;
  const auto axes = reduce_axes(n);
  for (int64_t begin = 0; begin < all; begin += blocks.length) {
    NodeRef block = part(g, x, blocks.axis, begin, std::min(blocks.length, all - begin));
    NodeRef more = reduce_over(g, block, Fold::Add, {axes.begin(), axes.end()});
    sum = sum ? g.add(g.make(Op::Contiguous, n->dtype, {sum}), more) : more;
  }
  return sum;
}

}  // namespace

NodeRef split_large_reduction(Graph& g, NodeRef n, const Target& target,
                              const ConstantValues& constants) {
  NodeRef x = n->src(0);
  if (!is_static(x)) return n;
  const int64_t wanted =
      std::max({chunks_for_cores(n), chunks_of_rows(g, n), chunks_for_precision(n),
                chunks_for_items(g, n, target), chunks_for_streams(g, n, target, constants)});
  const Split split =
      best_split(n, std::max(wanted, chunks_for_cache(n, target.machine)), wanted > 1);
  if (split.chunks < 2) {
    const Split blocks = blocks_for_cache(g, n, target);
    return blocks.chunks < 2 ? n : sum_block_by_block(g, n, blocks);
  }
  const int64_t even = split.chunks * split.length, all = x->dim(split.axis)->vmin;
  // The chosen axis becomes (chunks, length), and the chunks the first axis: the first reduction
  // keeps them.
  NodeRef main = even == all ? x : part(g, x, split.axis, 0, even);
  std::vector<NodeRef> shape{main};
  std::vector<int64_t> order, first;
  for (size_t a = 0; a < x->rank(); ++a) {
    if (a == split.axis) {
      order.insert(order.begin(), static_cast<int64_t>(shape.size()) - 1);
      shape.push_back(g.index(split.chunks));
      shape.push_back(g.index(split.length));
    } else {
      shape.push_back(x->dim(a));
    }
    order.push_back(static_cast<int64_t>(shape.size()) - 2);
  }
  for (int64_t a : reduce_axes(n)) first.push_back(a + 1);
  const NodeRef chunked[] = {g.make({Op::Reshape, x->dtype, shape})};
  NodeRef outermost = g.make({Op::Permute, x->dtype, chunked, order});
  NodeRef partial =
      g.make(Op::Contiguous, x->dtype, {reduce_over(g, outermost, fold_of(n), first)});
  NodeRef whole = reduce_over(g, partial, fold_of(n), {0});
  if (even == all) return whole;
  const auto axes = reduce_axes(n);
  NodeRef rest = reduce_over(g, part(g, x, split.axis, even, all - even), fold_of(n),
                             {axes.begin(), axes.end()});
  return g.alu(fold_op(fold_of(n)), {whole, rest});
}

/// (.., n, ..) as (.., blocks, length, ..): running sums within blocks, plus the running sums of
/// the blocks before.
NodeRef split_long_scan(Graph& g, NodeRef n) {
  NodeRef x = n->src(0);
  const auto axis = static_cast<size_t>(n->int_arg(1));
  if (fold_of(n) != Fold::Add || is_bool(n->dtype) || !is_static(x)) return n;
  const int64_t count = x->dim(axis)->vmin;
  // Integers are exact in any case: blocks are for cores that have no row of their own.
  if (!is_float(n->dtype) &&
      largest_numel(x->shape->span()) >= kRowsForCores * static_cast<double>(count))
    return n;
  const bool innermost =
      std::all_of(x->shape->span().begin() + n->int_arg(1) + 1, x->shape->span().end(),
                  [](NodeRef d) { return is_int_const(d, 1); });
  if (count < (innermost ? kLongRun : kLongOuterRun)) return n;
  int64_t length = int64_t{1} << 7;
  while (length * length < count) length *= 2;
  const int64_t divisor = largest_divisor(count, length);
  if (2 * divisor >= length) length = divisor;
  const int64_t blocks = (count + length - 1) / length, whole = blocks * length;
  const auto along = static_cast<int64_t>(axis);
  NodeRef blocked = x;
  if (whole != count)  // a copy: masks in the scan itself would cost more
    blocked = g.make(Op::Contiguous, x->dtype, {padded(g, x, axis, 0, whole - count)});
  blocked = with_axis(g, blocked, axis, {blocks, length});
  NodeRef sums =
      g.make(Op::Contiguous, x->dtype, {reduce_over(g, blocked, Fold::Add, {along + 1})});
  NodeRef running = scan_along(g, sums, along);
  NodeRef before = part(g, padded(g, running, axis, 1, 0), axis, 0, blocks);
  before = with_axis(g, g.make(Op::Contiguous, x->dtype, {before}), axis, {blocks, 1});
  NodeRef inside = scan_along(g, blocked, along + 1);
  NodeRef result = g.add(inside, expanded(g, before, inside));
  result = with_axis(g, g.make(Op::Contiguous, x->dtype, {result}), axis, {whole}, 2);
  return whole == count ? result : part(g, result, axis, 0, count);
}

}  // namespace weft
