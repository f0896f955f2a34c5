// Convolutions of bf16 by a matrix unit's tiles. Of each window the words of neighbouring channels
// are multiplied: rows of a tile are outputs, whose weights lie along channels, and its columns
// neighbouring places of a row, which lie side by side in a copy of the image whose words are of
// two channels. Taps are summed like channels: each of them reads the same copy, a few places on.
#include <algorithm>

#include "weft/schedule/axes.h"
#include "weft/schedule/convolution.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

// Of what tiles multiply, the part that is no zero, at least: they are about six times as fast as
// vectors of f32.
constexpr double kLeastUsed = 0.4;
// Products with each element of the image's copy, at least.
constexpr double kReuse = 16;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

class TileConvolution {
 public:
  TileConvolution(Graph& g, const Convolution& c, const MatrixUnit& words, const MatrixUnit& tiles)
      : g_(g),
        c_(c),
        words_(words),
        channels_(round_up(c.in, words.depth * tiles.tile)),
        columns_(c.columns < 2 * tiles.tile ? round_up(c.columns, tiles.tile) : c.columns),
        tile_(tiles.tile) {}

  bool pays() const {
    const auto share = [](int64_t some, int64_t all) { return double(some) / double(all); };
    const double used = share(c_.in, channels_) * share(c_.columns, round_up(c_.columns, tile_));
    const double taps = double(c_.down.count * c_.along.count),
                 steps = double(c_.down.stride * c_.along.stride);
    return c_.out >= tile_ && used >= kLeastUsed && double(c_.out) * taps / steps >= kReuse;
  }

  /// (images, 1, out, rows, columns)
  NodeRef sum(NodeRef image, NodeRef weight, NodeRef like) {
    const int64_t count = channels_ / words_.depth;
    NodeRef x = windows(copied_image(image)), w = copied_weight(weight);
    const int64_t sizes[] = {c_.images, c_.out,        c_.rows,       columns_,
                             count,     c_.down.count, c_.along.count};
    // The image is (images, words, rows, columns, taps, taps), the weight (out, words, taps, taps).
    NodeRef dot = g_.make(
        words_.op, words_.sum,
        {spread(w, {1, 4, 5, 6}, sizes), spread(moved_axis(g_, x, 1, 3), {0, 2, 3, 4, 5, 6}, sizes),
         g_.constant(Value::of(words_.sum, 0))});
    NodeRef y = reduce_over(g_, dot, Fold::Add, {4, 5, 6});
    if (columns_ != c_.columns)
      y = part(g_, g_.make(Op::Contiguous, y->dtype, {y}), 3, 0, c_.columns);
    return reshaped(g_, y, like->shape->span());
  }

 private:
  NodeRef words_of_channels(NodeRef x) {
    if (channels_ != c_.in) x = padded(g_, x, 1, 0, channels_ - c_.in);
    return words_along(g_, x, 1, channels_ / words_.depth, words_.depth);
  }

  /// In this order in memory, and moved back.
  NodeRef stored(NodeRef x, size_t from, size_t to) {
    x = g_.make(Op::Contiguous, x->dtype, {moved_axis(g_, x, from, to)});
    return moved_axis(g_, x, to, from);
  }

  /// Each row has its words one after the other.
  NodeRef copied_image(NodeRef image) {
    const Taps& t = c_.along;
    const int64_t wanted = (columns_ - 1) * t.stride + (t.count - 1) * t.dilation + 1,
                  have = image->dim(3)->vmin;
    if (wanted > have) image = padded(g_, image, 3, 0, wanted - have);
    return stored(words_of_channels(image), 1, 2);
  }

  NodeRef copied_weight(NodeRef weight) { return stored(words_of_channels(weight), 1, 3); }

  NodeRef window(NodeRef x, int64_t axis, const Taps& t) {
    return g_.make(Op::Window, x->dtype, {x}, {axis, t.count, t.stride, t.dilation});
  }

  NodeRef windows(NodeRef x) {
    x = window(window(x, 2, c_.down), 3, c_.along);
    return x->dim(3)->vmin == columns_ ? x : part(g_, x, 3, 0, columns_);
  }

  NodeRef spread(NodeRef x, std::initializer_list<size_t> axes, std::span<const int64_t> sizes) {
    std::vector<NodeRef> own, all{nullptr};
    for (size_t a = 0; a < sizes.size(); ++a) {
      all.push_back(g_.index(sizes[a]));
      own.push_back(g_.index(std::ranges::find(axes, a) == axes.end() ? 1 : sizes[a]));
    }
    all[0] = reshaped(g_, x, own);
    return g_.make({Op::Expand, x->dtype, all});
  }

  Graph& g_;
  const Convolution& c_;
  const MatrixUnit& words_;
  const int64_t channels_, columns_, tile_;  // with the zeros that fill tiles
};

const MatrixUnit* unit_of_pairs(const Target& target) {
  const auto found = std::ranges::find_if(target.matrix_units, [](const MatrixUnit& u) {
    return u.tile == 0 && u.left == DType::BF16 && u.right == DType::BF16 && u.sum == DType::F32;
  });
  return found == target.matrix_units.end() ? nullptr : found;
}

}  // namespace

NodeRef convolution_by_tiles(Graph& g, NodeRef sum, const Target& target) {
  const MatrixUnit* words = unit_of_pairs(target);
  const MatrixUnit* tiles = words ? target.tile_unit(words->op) : nullptr;
  Convolution c;
  if (!tiles || !find_convolution(g, sum, c)) return nullptr;
  NodeRef image = narrow_values(g, c.image), weight = narrow_values(g, c.weight);
  if (!image || !weight || image->dtype != DType::BF16 || weight->dtype != DType::BF16)
    return nullptr;
  TileConvolution made(g, c, *words, *tiles);
  return made.pays() ? made.sum(image, weight, sum) : nullptr;
}

}  // namespace weft
