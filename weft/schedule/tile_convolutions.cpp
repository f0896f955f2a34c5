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
  NodeRef x = padded(g, window(g, c.image, 4, c.along), 5, 0, taps - c.along.count);
  NodeRef w = padded(g, c.weight, 4, 0, taps - c.along.count);
  made.in = c.in * taps, made.along = {};
  made.image = with_axis(g, moved_axis(g, x, 5, 2), 1, {made.in}, 2);
  made.weight = with_axis(g, with_axis(g, moved_axis(g, w, 4, 2), 1, {made.in}, 2), 4, {1}, 0);
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
                    used(c.columns, tile) < kLeastOfRows && c.rows * c.image->dim(4)->vmin >= tile),
        rows_(in_one_row_ ? 1 : c.rows),
        columns_(in_one_row_        ? c.rows * c.image->dim(4)->vmin
                 : c.columns < tile ? round_up(c.columns, tile)
                                    : c.columns) {}

  /// In the shape of `like`.
  NodeRef sum(NodeRef like) {
    const int64_t count = channels_ / words_.depth;
    const int64_t sizes[] = {c_.images, c_.out,          c_.planes,     rows_,         columns_,
                             count,     c_.across.count, c_.down.count, c_.along.count};
    NodeRef x = spread(g_, windows(), {0, 2, 3, 4, 5, 6, 7, 8}, sizes),
            w = spread(g_, stored(words_of_channels(c_.weight), 1, 4), {1, 5, 6, 7, 8}, sizes);
    NodeRef dot = g_.make(words_.op, words_.sum, {w, x, g_.constant(Value::of(words_.sum, 0))});
    NodeRef y = reduce_over(g_, dot, Fold::Add, {5, 6, 7, 8});
    if (columns_ != c_.columns) y = g_.make(Op::Contiguous, y->dtype, {y});
    if (in_one_row_) y = with_axis(g_, y, 3, {c_.rows, columns_ / c_.rows}, 2);
    return reshaped(g_, part(g_, y, 4, 0, c_.columns), like->shape->span());
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

  /// (images, planes, rows, columns, words, taps of planes, of rows, of columns)
  NodeRef windows() {
    NodeRef image = c_.image;
    Taps down = c_.down;
    if (in_one_row_) {  // the next row is as many places on as a row has
      down.dilation *= image->dim(4)->vmin;
      image = with_axis(g_, image, 3, {1, image->dim(3)->vmin * image->dim(4)->vmin}, 2);
    }
    const int64_t last = (columns_ - 1) * c_.along.stride + c_.along.reach(),
                  wanted = last + 1 + (in_one_row_ ? down.reach() : 0), have = image->dim(4)->vmin;
    if (wanted > have) image = padded(g_, image, 4, 0, wanted - have);
    NodeRef x = window(g_, stored_words(image), 4, c_.along);
    if (in_one_row_) {
      x = cut(window(g_, x, 4, down));
    } else {
      x = cut(x);
      if (c_.along.stride > 1) x = side_by_side(x);
      x = window(g_, x, 3, down);
    }
    return permuted(g_, window(g_, x, 2, c_.across), {0, 2, 3, 4, 1, 7, 6, 5});
  }

  /// Words of a row one after the other.
  NodeRef stored_words(NodeRef image) {
    if (!c_.is_spaced || image->op != Op::Pad) return stored(words_of_channels(image), 1, 3);
    // Zeros come between words, not between what these are put together from.
    std::vector<NodeRef> src(image->src().begin(), image->src().end());
    src[0] = stored(words_of_channels(image->src(0)), 1, 3);
    return stored(g_.make({Op::Pad, DType::U32, src, image->ints()}), 1, 3);
  }

  NodeRef cut(NodeRef x) { return x->dim(4)->vmin == columns_ ? x : part(g_, x, 4, 0, columns_); }

  /// (images, words, planes, rows, columns, taps): what is a step apart is copied once more, for
  /// each tap.
  NodeRef side_by_side(NodeRef x) {
    NodeRef memory = g_.make(Op::Contiguous, x->dtype, {permuted(g_, x, {0, 2, 3, 5, 1, 4})});
    return permuted(g_, memory, {0, 4, 1, 2, 5, 3});
  }

  Graph& g_;
  const Convolution& c_;
  const MatrixUnit& words_;
  const int64_t channels_;  // with the zeros that fill tiles, as columns_
  const bool in_one_row_;   // places of all rows, of which those around the image are left out
  const int64_t rows_, columns_;
};

}  // namespace

namespace {

/// With an axis of one plane in front of rows; zeros stay the last thing that is done to it.
NodeRef with_plane(Graph& g, NodeRef x) {
  if (x->op != Op::Pad) return with_axis(g, x, 2, {1}, 0);
  const size_t rank = x->rank();
  std::vector<NodeRef> src(x->src().begin(), x->src().end());
  std::vector<int64_t> between(x->ints().begin(), x->ints().end());
  src[0] = with_axis(g, src[0], 2, {1}, 0);
  src.insert(src.begin() + 1 + rank + 2, g.index(0));  // behind it
  src.insert(src.begin() + 1 + 2, g.index(0));         // and before
  if (!between.empty()) between.insert(between.begin() + 2, 0);
  return g.make({Op::Pad, x->dtype, src, between});
}

}  // namespace

std::optional<Convolution> of_bf16_planes(Graph& g, const Convolution& given) {
  constexpr double kMostZeros = 16;  // around a small image, or between steps of four
  Convolution c = given;
  c.image = narrow_values(g, c.image, kMostZeros), c.weight = narrow_values(g, c.weight);
  const auto is_bf16 = [](NodeRef n) { return n && n->dtype == DType::BF16; };
  if (!is_bf16(c.image) || !is_bf16(c.weight)) return std::nullopt;
  if (!c.has_planes())
    c.image = with_plane(g, c.image), c.weight = with_axis(g, c.weight, 2, {1}, 0);
  return c;
}

NodeRef by_tiles(Graph& g, const Convolution& given, NodeRef like, const Target& target) {
  const MatrixUnit* words = unit_of_pairs(target);
  const MatrixUnit* tiles = words ? target.tile_unit(words->op) : nullptr;
  if (!tiles || given.out < tiles->tile) return nullptr;
  std::optional<Convolution> c = of_bf16_planes(g, given);
  if (!c) return nullptr;
  const int64_t channels = tiles->tile * words->depth;
  if (used(c->in, channels) < kLeastUsed) c = with_taps_as_channels(g, *c);
  const double products = double(c->out * c->across.count * c->down.count * c->along.count) /
                          double(c->across.stride * c->down.stride);
  if (used(c->in, channels) < kLeastUsed || products < kReuse) return nullptr;
  return TileConvolution(g, *c, *words, tiles->tile).sum(like);
}

}  // namespace weft
