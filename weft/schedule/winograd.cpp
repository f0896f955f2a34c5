// Convolutions of 3 x 3 taps, and gradients of their images, in fewer products: of each row of taps
// four results that lie side by side are made of six products instead of twelve. With d six
// neighbours of the image and w three taps they are A (G w * B d), products element by element
// (F(4, 3) of Winograd, "Arithmetic complexity of computations", 1980, along one axis; points
// 0, +-1, +-2 and infinity, as in Lavin and Gray, "Fast algorithms for convolutional neural
// networks", 2016). G w is computed once where weights never change. All of these are short
// products of their own, so all of it is sums of products as kernels have them anyway.
//
// Errors: rows of |A|, |B| and |G| sum to at most 19, 10 and 1, which bounds what rounding can grow
// by. Measured on random numbers, 64 to 512 channels: twice the error of the plain sum in root mean
// square, two to five times at most (6e-6 of the largest result for 512 channels). What is infinite
// or no number spreads to the four results of a tile. Not where results are to be the same
// everywhere (Target::canonical).
#include <algorithm>
#include <array>

#include "weft/schedule/axes.h"
#include "weft/schedule/convolution.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

constexpr int64_t kTaps = 3, kResults = 4, kTile = kTaps + kResults - 1;
constexpr Taps kThree{kTaps, 1, 1};
constexpr double kMove = 1.3;      // cycles for transforming an element (Zen 4)
constexpr double kBeyondL2 = 1.1;  // times as long, where what is transformed leaves L2
// Products in the time, where that, what it is made of and what becomes of it leave L3, four times
// as much (512 images of 64 x 8 x 8 by as many channels: 42, and eight kernels more in a step of 62
// for 0.7 % of its time).
constexpr double kBeyondL3 = 65;

constexpr double kImage[kTile][kTile] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0},
                                         {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0},
                                         {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
constexpr double kWeight[kTile][kTaps] = {{1. / 4, 0, 0},
                                          {-1. / 6, -1. / 6, -1. / 6},
                                          {-1. / 6, 1. / 6, -1. / 6},
                                          {1. / 24, 1. / 12, 1. / 6},
                                          {1. / 24, -1. / 12, 1. / 6},
                                          {0, 0, 1}};
constexpr double kResult[kResults][kTile] = {
    {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

/// Results of a row of one, in tiles.
int64_t tiles(const Convolution& c) { return (c.columns + kResults - 1) / kResults; }

/// In full vectors. Where those are short transforming takes longer, too; where there are none
/// (GPUs) as the default machine, not measured.
double products_in_a_cycle(const Target& target) {
  const Machine& machine = target.machine;
  const int bits = target.vector_bits > 0 ? std::max(target.vector_bits, 256) : 512;
  return machine.vector_ops * bits / 32 / machine.turns(bits);
}

/// In the time of transforming an element, where all of them take so many bytes.
double products_for(double bytes, const Target& target) {
  const double products = kMove * products_in_a_cycle(target);
  if (4 * bytes > static_cast<double>(target.machine.l3().bytes))
    return std::max(kBeyondL3, products);
  return bytes > static_cast<double>(target.machine.l2().bytes) ? kBeyondL2 * products : products;
}

/// Whether products saved are more than what transforming costs, that of weights where it is done
/// in each run.
bool pays(const Convolution& c, bool constant_weights, const Target& target) {
  const auto times = [](std::initializer_list<int64_t> sizes) {
    double product = 1;
    for (const int64_t n : sizes) product *= static_cast<double>(n);
    return product;
  };
  const double before = times({c.columns, kTaps}), after = times({tiles(c), kTile});
  const double saved = (before - after) * times({kTaps, c.images, c.rows, c.in, c.out});
  const double images = times({c.images, c.rows + kTaps - 1, c.in, tiles(c)}),
               sums = times({c.images, c.rows, c.out, tiles(c), kTile});
  const double bytes = std::max(images * kTile, sums) * sizeof(float);
  const double weights = constant_weights ? 0 : times({c.in, c.out, kTaps, kTaps + kTile});
  return saved > products_for(bytes, target) * (images * (kResults + kTile) + sums) +
                     products_for(0, target) * weights;
}

class Winograd {
 public:
  Winograd(Graph& g, const Convolution& c, bool constant_weights)
      : g_(g), c_(c), constant_weights_(constant_weights) {}

  /// The products' sums: (6, images, rows, tiles, out)
  NodeRef products() {
    const NodeRef rows = window(g_, transformed_image(), 2, kThree);
    return multiply(rows, {0, 1, 2, 3, 5, 6}, transformed_weight(), {0, 4, 5, 6},
                    {kTile, c_.images, c_.rows, tiles(c_), c_.out, c_.in, kTaps}, {5, 6});
  }

  /// What they are results of, in the shape of `like`.
  NodeRef results(NodeRef products, NodeRef like) {
    NodeRef y = multiply(moved_axis(g_, products, 0, 4), {0, 1, 2, 4, 5}, matrix(kResult), {3, 5},
                         {c_.images, c_.rows, tiles(c_), kResults, c_.out, kTile}, {5});
    y = with_axis(g_, y, 2, {tiles(c_) * kResults}, 2);
    y = moved_axis(g_, part(g_, y, 2, 0, c_.columns), 3, 1);
    return reshaped(g_, y, like->shape->span());
  }

 private:
  /// (6, images, rows + 2, tiles, in), in this order: of many images layouts would take these for
  /// lanes, and every other product's row for a line of its own.
  NodeRef transformed_image() {
    NodeRef x = stored(moved_axis(g_, padded_to_tiles(), 1, 3));
    return stored(multiply(matrix(kImage), {0, 5}, window(g_, x, 2, {kTile, kResults, 1}),
                           {1, 2, 3, 4, 5},
                           {kTile, c_.images, c_.rows + kTaps - 1, tiles(c_), c_.in, kTile}, {5}));
  }

  /// In memory, in the order of its axes.
  NodeRef stored(NodeRef x) { return g_.make(Op::Contiguous, x->dtype, {x}); }

  /// (6, out, in, 3)
  NodeRef transformed_weight() {
    return multiply(matrix(kWeight), {0, 4}, constant_weights_ ? c_.weight : weight_by_outputs(),
                    {1, 2, 3, 4}, {kTile, c_.out, c_.in, kTaps, kTaps}, {4});
  }

  /// With outputs side by side, as their products want them: a copy goes by transposes in
  /// registers, sums would gather (512 channels: 10 ms).
  NodeRef weight_by_outputs() {
    return moved_axis(g_, stored(moved_axis(g_, c_.weight, 0, 3)), 3, 0);
  }

  /// The image with zeros up to the end of the last tile.
  NodeRef padded_to_tiles() {
    const int64_t more = tiles(c_) * kResults - c_.columns;
    NodeRef x = c_.image;
    if (more == 0) return x;
    if (x->op != Op::Pad) return padded(g_, x, 3, 0, more);
    std::vector<NodeRef> src(x->src().begin(), x->src().end());
    src.back() = g_.add(src.back(), g_.index(more));
    return g_.make({Op::Pad, x->dtype, src, x->ints()});
  }

  /// The sum of a * b along `summed` in loops of these sizes, where each has the axes listed.
  NodeRef multiply(NodeRef a, std::vector<size_t> of_a, NodeRef b, std::vector<size_t> of_b,
                   const std::vector<int64_t>& sizes, std::vector<int64_t> summed) {
    NodeRef product =
        g_.make(Op::Mul, a->dtype, {spread(g_, a, of_a, sizes), spread(g_, b, of_b, sizes)});
    return reduce_over(g_, product, Fold::Add, std::move(summed));
  }

  /// Numbers as a buffer that is written once.
  template <size_t R, size_t C>
  NodeRef matrix(const double (&rows)[R][C]) {
    const NodeRef count[] = {g_.index(int64_t{R * C})};
    const int64_t axis[] = {0};
    NodeRef place = g_.make({Op::Iota, DType::I32, count, axis}), all = nullptr;
    for (size_t i = 0; i < R * C; ++i) {
      NodeRef number = g_.constant(Value::of(DType::F32, rows[i / C][i % C]));
      NodeRef here = g_.constant(Value::of(DType::I32, static_cast<int64_t>(i)));
      all = all ? g_.where(g_.lt(place, here), all, number) : number;
    }
    return stored(with_axis(g_, all, 0, {R, C}));
  }

  Graph& g_;
  const Convolution& c_;
  const bool constant_weights_;
};

}  // namespace

NodeRef by_winograd(Graph& g, const Convolution& c, NodeRef like, const Target& target,
                    const ConstantValues& constants) {
  if (target.vector_bits == 0 || target.canonical || c.down != kThree || c.along != kThree ||
      c.is_spaced || c.has_planes())
    return nullptr;
  const bool constant_weights = constants.contain(c.weight);
  if (!pays(c, constant_weights, target)) return nullptr;
  Winograd made(g, c, constant_weights);
  return made.results(split_large_reduction(g, made.products(), target, constants), like);
}

}  // namespace weft
