// Convolutions of bf16 by a matrix unit's tiles. Of each window the words of neighbouring channels
// are multiplied: rows of a tile are outputs, whose weights lie along channels, and its columns
// neighbouring places of a row, which lie side by side in a copy of the image whose words are of
// two channels. Taps are summed like channels: each of them reads the same copy, a few places on.
#include <algorithm>

#include "weft/base/bits.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/convolution.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

// Of what tiles multiply, the part that is no zero, at least: they are about six times as fast as
// vectors of f32.
constexpr double kLeastUsed = 0.4;
// Of rows that are cut into tiles one by one.
constexpr double kLeastOfRows = 0.6;
// Products with each element of the image's copy, at least.
constexpr double kReuse = 16;

/// The part of `n` numbers in as many as fill tiles.
double used(int64_t n, int64_t unit) {
  return static_cast<double>(n) / static_cast<double>(round_up(n, unit));
}

/// The same with the taps along a row, an even number of them, as channels of an image of its own,
/// which is written for them: few channels are more so.
Convolution with_taps_as_channels(Graph& g, const Convolution& c) {
  Convolution made = c;
  const int64_t taps = round_up(c.along.count, 2);
  NodeRef x = padded(g, window(g, c.image, 3, c.along), 4, 0, taps - c.along.count);
  NodeRef w = padded(g, c.weight, 3, 0, taps - c.along.count);
  made.in = c.in * taps, made.along = {};
  made.image = with_axis(g, moved_axis(g, x, 4, 2), 1, {made.in}, 2);
  made.weight = with_axis(g, with_axis(g, moved_axis(g, w, 3, 2), 1, {made.in}, 2), 3, {1}, 0);
  return made;
}

class TileConvolution {
 public:
  /// Of bf16.
  TileConvolution(Graph& g, const Convolution& c, const MatrixUnit& words, int64_t tile)
      : g_(g),
        c_(c),
        words_(words),
        channels_(round_up(c.in, words.depth * tile)),
        in_one_row_(c.down.stride == 1 && c.along.stride == 1 &&
                    used(c.columns, tile) < kLeastOfRows && c.rows * c.image->dim(3)->vmin >= tile),
        rows_(in_one_row_ ? 1 : c.rows),
        columns_(in_one_row_        ? c.rows * c.image->dim(3)->vmin
                 : c.columns < tile ? round_up(c.columns, tile)
                                    : c.columns) {}

  /// (images, 1, out, rows, columns)
  NodeRef sum(NodeRef like) {
    const int64_t count = channels_ / words_.depth;
    const int64_t sizes[] = {c_.images, c_.out,        rows_,         columns_,
                             count,     c_.down.count, c_.along.count};
    // The image is (images, words, rows, columns, taps, taps), the weight (out, words, taps, taps).
    NodeRef x = spread(g_, moved_axis(g_, windows(), 1, 3), {0, 2, 3, 4, 5, 6}, sizes),
            w = spread(g_, stored(words_of_channels(c_.weight), 1, 3), {1, 4, 5, 6}, sizes);
    NodeRef dot = g_.make(words_.op, words_.sum, {w, x, g_.constant(Value::of(words_.sum, 0))});
    NodeRef y = reduce_over(g_, dot, Fold::Add, {4, 5, 6});
    if (columns_ != c_.columns) y = g_.make(Op::Contiguous, y->dtype, {y});
    if (in_one_row_) y = with_axis(g_, y, 2, {c_.rows, columns_ / c_.rows}, 2);
    return reshaped(g_, part(g_, y, 3, 0, c_.columns), like->shape->span());
  }

 private:
  NodeRef words_of_channels(NodeRef x) {
    if (channels_ != c_.in) x = padded(g_, x, 1, 0, channels_ - c_.in);
    return words_along(g_, x, 1, channels_ / words_.depth, words_.depth);
  }

  /// In memory in the order that moving an axis makes, and as it was.
  NodeRef stored(NodeRef x, size_t from, size_t to) {
    x = g_.make(Op::Contiguous, x->dtype, {moved_axis(g_, x, from, to)});
    return moved_axis(g_, x, to, from);
  }

  /// (images, words, rows, columns, taps, taps)
  NodeRef windows() {
    NodeRef image = c_.image;
    Taps down = c_.down;
    if (in_one_row_) {  // the next row is as many places on as a row has
      down.dilation *= image->dim(3)->vmin;
      image = with_axis(g_, image, 2, {1, image->dim(2)->vmin * image->dim(3)->vmin}, 2);
    }
    const int64_t last = (columns_ - 1) * c_.along.stride + c_.along.reach(),
                  wanted = last + 1 + (in_one_row_ ? down.reach() : 0), have = image->dim(3)->vmin;
    if (wanted > have) image = padded(g_, image, 3, 0, wanted - have);
    NodeRef x = stored_words(image);
    if (in_one_row_) return cut(window(g_, window(g_, x, 3, down), 3, c_.along));
    x = cut(window(g_, x, 3, c_.along));
    if (c_.along.stride > 1) x = side_by_side(x);
    return moved_axis(g_, window(g_, x, 2, down), 5, 4);
  }

  /// Words of a row one after the other.
  NodeRef stored_words(NodeRef image) {
    if (!c_.is_spaced || image->op != Op::Pad) return stored(words_of_channels(image), 1, 2);
    // Zeros come between words, not between what these are put together from.
    std::vector<NodeRef> src(image->src().begin(), image->src().end());
    src[0] = stored(words_of_channels(image->src(0)), 1, 2);
    return stored(g_.make({Op::Pad, DType::U32, src, image->ints()}), 1, 2);
  }

  NodeRef cut(NodeRef x) { return x->dim(3)->vmin == columns_ ? x : part(g_, x, 3, 0, columns_); }

  /// (images, words, rows, columns, taps): what is a step apart is copied once more, for each tap.
  NodeRef side_by_side(NodeRef x) {
    const int64_t order[] = {0, 2, 4, 1, 3}, back[] = {0, 3, 1, 4, 2};
    const NodeRef view[] = {x};
    const NodeRef memory[] = {
        g_.make(Op::Contiguous, x->dtype, {g_.make({Op::Permute, x->dtype, view, order})})};
    return g_.make({Op::Permute, x->dtype, memory, back});
  }

  Graph& g_;
  const Convolution& c_;
  const MatrixUnit& words_;
  const int64_t channels_;  // with the zeros that fill tiles, as columns_
  const bool in_one_row_;   // places of all rows, of which those around the image are left out
  const int64_t rows_, columns_;
};

}  // namespace

bool narrow_to_bf16(Graph& g, Convolution& c) {
  constexpr double kMostZeros = 16;  // around a small image, or between steps of four
  c.image = narrow_values(g, c.image, kMostZeros), c.weight = narrow_values(g, c.weight);
  const auto is_bf16 = [](NodeRef n) { return n && n->dtype == DType::BF16; };
  return is_bf16(c.image) && is_bf16(c.weight);
}

NodeRef by_tiles(Graph& g, const Convolution& given, NodeRef like, const Target& target) {
  const MatrixUnit* words = unit_of_pairs(target);
  const MatrixUnit* tiles = words ? target.tile_unit(words->op) : nullptr;
  if (!tiles || given.out < tiles->tile) return nullptr;
  Convolution c = given;
  if (!narrow_to_bf16(g, c)) return nullptr;
  const int64_t channels = tiles->tile * words->depth;
  if (used(c.in, channels) < kLeastUsed) c = with_taps_as_channels(g, c);
  const double products = double(c.out * c.down.count * c.along.count) / double(c.down.stride);
  if (used(c.in, channels) < kLeastUsed || products < kReuse) return nullptr;
  return TileConvolution(g, c, *words, tiles->tile).sum(like);
}

}  // namespace weft
