// Gradients of a convolution's weights by a matrix unit's tiles. They are sums over all places of
// all images: rows of a tile are outputs, whose gradients lie along places, and its columns
// channels of the image, which lie side by side in a copy. Words are of two neighbouring places, so
// the copy has the image once for each tap along a row; taps down it are as many rows on.
#include <algorithm>

#include "weft/base/bits.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/convolution.h"
#include "weft/schedule/plan.h"
#include "weft/target/target.h"

namespace weft {
namespace {

class TileGradient {
 public:
  /// Of bf16. `c.weight`: what comes from above, (images, out, planes, rows, columns).
  TileGradient(Graph& g, const Convolution& c, const MatrixUnit& words, int64_t tile)
      : g_(g),
        c_(c),
        words_(words),
        row_(row_of(c, tile)),
        places_(round_up(c.rows * row_, tile)),
        walks_down_(c.down.stride == 1 && places_ == c.rows * row_) {}

  /// In the shape of `like`. Images are summed in parts, each of which stays in this much cache.
  NodeRef sum(NodeRef like, int64_t cache) {
    const int64_t parts = parts_for(static_cast<double>(cache) / 2);
    const int64_t sizes[] = {parts, c_.across.count,   c_.down.count, c_.along.count, c_.out,
                             c_.in, c_.images / parts, c_.planes,     places_};
    NodeRef dot = g_.make(words_.op, words_.sum,
                          {spread(g_, in_parts(above(), parts, 1), {0, 4, 6, 7, 8}, sizes),
                           spread(g_, image(parts), {0, 1, 2, 3, 5, 6, 7, 8}, sizes),
                           g_.constant(Value::of(words_.sum, 0))});
    NodeRef y = g_.make(Op::Contiguous, words_.sum, {reduce_over(g_, dot, Fold::Add, {6, 7, 8})});
    y = permuted(g_, reduce_over(g_, y, Fold::Add, {0}), {3, 4, 0, 1, 2});
    return reshaped(g_, y, like->shape->span());
  }

 private:
  /// Words of a row of the result: with zeros, if few of them make all rows whole tiles.
  static int64_t row_of(const Convolution& c, int64_t tile) {
    const int64_t least = (c.columns + 1) / 2;
    for (int64_t row = least; c.down.count > 1 && 4 * row <= 5 * least; ++row)
      if (c.rows * row % tile == 0) return row;
    return least;
  }

  /// The fewest that the cache holds one by one, as long as what they are parts of is not more than
  /// what is read for them by far.
  int64_t parts_for(double cache) const {
    constexpr double kMostWritten = 4, kWord = 4;
    const double read =
        kWord * double(c_.images * c_.planes * places_) * double(c_.out + c_.in * c_.along.count);
    const double made =
        kWord * double(c_.out * c_.in) * double(c_.across.count * c_.down.count * c_.along.count);
    int64_t parts = 1;
    for (int64_t more = 2; more <= c_.images && read / double(parts) > cache; ++more)
      if (c_.images % more == 0 && double(more) * made <= kMostWritten * read) parts = more;
    return parts;
  }

  /// Words of places, with zeros up to whole tiles.
  NodeRef words_of_places(NodeRef x, size_t axis) {
    const int64_t columns = 2 * row_;
    if (columns != x->dim(axis)->vmin) x = padded(g_, x, axis, 0, columns - x->dim(axis)->vmin);
    return words_along(g_, x, axis, row_, words_.depth);
  }
  NodeRef with_zeros(NodeRef x, size_t axis, int64_t size) {
    const int64_t have = x->dim(axis)->vmin;
    return have == size ? x : padded(g_, x, axis, 0, size - have);
  }

  NodeRef stored(NodeRef x, std::initializer_list<int64_t> order) {
    return g_.make(Op::Contiguous, x->dtype, {permuted(g_, x, order)});
  }

  /// (out, images, planes, places)
  NodeRef above() {
    NodeRef x = words_of_places(c_.weight, 4);
    x = with_zeros(with_axis(g_, x, 3, {c_.rows * row_}, 2), 3, places_);
    return stored(x, {1, 0, 2, 3});
  }

  /// (parts, taps of planes, of rows, of columns, in, images, planes, places)
  NodeRef image(int64_t parts) {
    // (taps of rows, of columns, images, planes, places, in), then taps of planes at the end
    NodeRef x = window(g_, in_parts(taps_of_rows(), parts, 2), 4, c_.across);
    return permuted(g_, x, {0, 7, 1, 2, 6, 3, 4, 5});
  }

  /// (taps of rows, of columns, images, planes, places, in)
  NodeRef taps_of_rows() {
    // Channels side by side, so that words of places are two vectors.
    NodeRef x = permuted(g_, stored(c_.image, {0, 2, 3, 4, 1}), {0, 4, 1, 2, 3});
    x = window(g_, x, 4, c_.along);
    if (!walks_down_) {
      // (images, in, planes, rows, words, taps, taps)
      x = words_of_places(window(g_, x, 3, c_.down), 4);
      x = with_zeros(with_axis(g_, x, 3, {c_.rows * row_}, 2), 3, places_);
      return stored(x, {5, 4, 0, 2, 3, 1});
    }
    x = words_of_places(x, 4);  // (images, in, planes, rows, words, taps)
    x = stored(with_axis(g_, x, 3, {x->dim(3)->vmin * row_}, 2), {4, 0, 2, 3, 1});
    x = window(g_, x, 3, {c_.down.count, 1, c_.down.dilation * row_});
    if (x->dim(3)->vmin != places_) x = part(g_, x, 3, 0, places_);
    return moved_axis(g_, x, 5, 0);
  }

  NodeRef in_parts(NodeRef x, int64_t parts, size_t images) {
    x = with_axis(g_, x, images, {parts, c_.images / parts});
    return moved_axis(g_, x, images, 0);
  }

  Graph& g_;
  const Convolution& c_;
  const MatrixUnit& words_;
  const int64_t row_, places_;  // words
  // All taps down the image read one copy. Not where zeros fill the last tile: what another tap
  // reads is beside them, and might be infinite.
  const bool walks_down_;
};

}  // namespace

NodeRef weight_gradient_by_tiles(Graph& g, const Convolution& given, NodeRef like,
                                 const Target& target) {
  const MatrixUnit* words = unit_of_pairs(target);
  const MatrixUnit* tiles = words ? target.tile_unit(words->op) : nullptr;
  if (!tiles || given.out < tiles->tile || given.in < tiles->tile) return nullptr;
  const std::optional<Convolution> c = of_bf16_planes(g, given);
  return c ? TileGradient(g, *c, *words, tiles->tile).sum(like, target.machine.l2().bytes)
           : nullptr;
}

}  // namespace weft
