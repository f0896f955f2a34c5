// Convolutions of bf16, and their gradients, by a matrix unit's tiles.
#include "tests/schedule/schedule_test.h"
#include "tests/schedule/tiles.h"

namespace weft {
namespace {

struct ConvCase {
  int64_t images = 1, in = 32, out = 16, planes = 2, rows = 3, columns = 16, taps = 3, stride = 1,
          dilation = 1, padding = 1;
  DType dtype = DType::BF16;

  int64_t reach() const { return (taps - 1) * dilation; }
  /// Of an axis of the image, of which the result has so many places.
  int64_t padded(int64_t size) const { return (size - 1) * stride + reach() + 1; }
};

class TileConvolutions : public ScheduleTest {
 protected:
  NodeRef param(int slot, GraphBuilder::Ints dims, DType dtype) {
    return g_.cast(b_.param(slot, std::move(dims), dtype), DType::F32);
  }

  GraphBuilder::Ints all(const ConvCase& c) const {
    return {c.images, 1, c.out, c.in, c.rows, c.columns, c.taps, c.taps};
  }

  NodeRef windows(const ConvCase& c) {
    const int64_t p = c.padding, high = c.padded(c.rows), wide = c.padded(c.columns);
    NodeRef x = param(0, {c.images, c.in, high - 2 * p, wide - 2 * p}, c.dtype);
    if (p > 0) x = b_.pad(x, {0, 0, p, p}, {0, 0, p, p});
    x = b_.window(b_.window(x, 2, c.taps, c.stride, c.dilation), 3, c.taps, c.stride, c.dilation);
    return b_.broadcast(x, {c.images, 1, 1, c.in, c.rows, c.columns, c.taps, c.taps}, all(c));
  }
  NodeRef weights(const ConvCase& c) {
    return b_.broadcast(param(1, {c.out, c.in, c.taps, c.taps}, c.dtype),
                        {1, 1, c.out, c.in, 1, 1, c.taps, c.taps}, all(c));
  }
  NodeRef above(const ConvCase& c, int slot) {
    return b_.broadcast(param(slot, {c.images, c.out, c.rows, c.columns}, c.dtype),
                        {c.images, 1, c.out, 1, c.rows, c.columns, 1, 1}, all(c));
  }

  NodeRef convolution(const ConvCase& c) {
    return b_.reduce(g_.mul(windows(c), weights(c)), Fold::Add, {3, 6, 7});
  }
  NodeRef gradient_of_weights(const ConvCase& c) {
    return b_.reduce(g_.mul(windows(c), above(c, 1)), Fold::Add, {0, 4, 5});
  }
  NodeRef gradient_of_image(const ConvCase& c) {
    const int64_t p = c.padding, high = c.padded(c.rows), wide = c.padded(c.columns);
    NodeRef x = b_.reduce(g_.mul(above(c, 0), weights(c)), Fold::Add, {2});
    x = b_.reshape(x, {c.images, c.in, c.rows, c.columns, c.taps, c.taps});
    x = b_.reduce(b_.unwindow(x, wide, 3, c.taps, c.stride, c.dilation), Fold::Add, {5});
    x = b_.reduce(b_.unwindow(x, high, 2, c.taps, c.stride, c.dilation), Fold::Add, {4});
    return p == 0 ? x : b_.shrink(x, {0, 0, p, p}, {c.images, c.in, high - 2 * p, wide - 2 * p});
  }

  // ---- of one axis, as conv2d multiplies those

  GraphBuilder::Ints all_along(const ConvCase& c) const {
    return {c.images, 1, c.out, c.in, c.columns, c.taps};
  }
  NodeRef windows_along(const ConvCase& c) {
    const int64_t p = c.padding;
    NodeRef x = param(0, {c.images, c.in, c.padded(c.columns) - 2 * p}, c.dtype);
    if (p > 0) x = b_.pad(x, {0, 0, p}, {0, 0, p});
    x = b_.window(x, 2, c.taps, c.stride, c.dilation);
    return b_.broadcast(x, {c.images, 1, 1, c.in, c.columns, c.taps}, all_along(c));
  }
  NodeRef weights_along(const ConvCase& c) {
    return b_.broadcast(param(1, {c.out, c.in, c.taps}, c.dtype), {1, 1, c.out, c.in, 1, c.taps},
                        all_along(c));
  }
  NodeRef above_along(const ConvCase& c, int slot) {
    return b_.broadcast(param(slot, {c.images, c.out, c.columns}, c.dtype),
                        {c.images, 1, c.out, 1, c.columns, 1}, all_along(c));
  }
  NodeRef gradient_along(const ConvCase& c) {
    const int64_t p = c.padding, wide = c.padded(c.columns);
    NodeRef x = b_.reduce(g_.mul(above_along(c, 0), weights_along(c)), Fold::Add, {2});
    x = b_.reshape(x, {c.images, c.in, c.columns, c.taps});
    x = b_.reduce(b_.unwindow(x, wide, 2, c.taps, c.stride, c.dilation), Fold::Add, {3});
    return p == 0 ? x : b_.shrink(x, {0, 0, p}, {c.images, c.in, wide - 2 * p});
  }

  // ---- of three axes: `planes` of the result, with the same taps

  GraphBuilder::Ints all_through(const ConvCase& c) const {
    return {c.images, 1, c.out, c.in, c.planes, c.rows, c.columns, c.taps, c.taps, c.taps};
  }
  NodeRef windows_through(const ConvCase& c) {
    const int64_t p = c.padding, deep = c.padded(c.planes), high = c.padded(c.rows),
                  wide = c.padded(c.columns);
    NodeRef x = param(0, {c.images, c.in, deep - 2 * p, high - 2 * p, wide - 2 * p}, c.dtype);
    if (p > 0) x = b_.pad(x, {0, 0, p, p, p}, {0, 0, p, p, p});
    for (const int64_t axis : {2, 3, 4}) x = b_.window(x, axis, c.taps, c.stride, c.dilation);
    return b_.broadcast(x,
                        {c.images, 1, 1, c.in, c.planes, c.rows, c.columns, c.taps, c.taps, c.taps},
                        all_through(c));
  }
  NodeRef weights_through(const ConvCase& c) {
    return b_.broadcast(param(1, {c.out, c.in, c.taps, c.taps, c.taps}, c.dtype),
                        {1, 1, c.out, c.in, 1, 1, 1, c.taps, c.taps, c.taps}, all_through(c));
  }
  NodeRef above_through(const ConvCase& c, int slot) {
    return b_.broadcast(param(slot, {c.images, c.out, c.planes, c.rows, c.columns}, c.dtype),
                        {c.images, 1, c.out, 1, c.planes, c.rows, c.columns, 1, 1, 1},
                        all_through(c));
  }
  NodeRef gradient_through(const ConvCase& c) {
    const int64_t p = c.padding, deep = c.padded(c.planes), high = c.padded(c.rows),
                  wide = c.padded(c.columns);
    NodeRef x = b_.reduce(g_.mul(above_through(c, 0), weights_through(c)), Fold::Add, {2});
    x = b_.reshape(x, {c.images, c.in, c.planes, c.rows, c.columns, c.taps, c.taps, c.taps});
    x = b_.reduce(b_.unwindow(x, wide, 4, c.taps, c.stride, c.dilation), Fold::Add, {7});
    x = b_.reduce(b_.unwindow(x, high, 3, c.taps, c.stride, c.dilation), Fold::Add, {6});
    x = b_.reduce(b_.unwindow(x, deep, 2, c.taps, c.stride, c.dilation), Fold::Add, {5});
    return p == 0 ? x
                  : b_.shrink(x, {0, 0, p, p, p},
                              {c.images, c.in, deep - 2 * p, high - 2 * p, wide - 2 * p});
  }

  void check_tiled(NodeRef y) {
    EXPECT_EQ(kernels_of(y, kWideTiles).tiled, 1U) << print_graph(y);
    check({{y}}, 1e-5, {.schedule = {}, .target = &kWideTiles});
  }
  /// With infinities in the last corner of the first input: results are finite as they should be.
  void check_infinities(NodeRef y) {
    std::vector<Array> params = inputs({&y, 1});
    params[0].set(params[0].count() - 1,
                  Value::of(params[0].dtype(), std::numeric_limits<double>::infinity()));
    eval::Inputs oracle;
    oracle.params = params;
    const NodeRef roots[] = {y};
    const std::vector<double> expected = eval::evaluate(roots, oracle)[0].doubles();
    const std::vector<ScheduleOutput> out{{y}};
    const std::vector<double> got =
        testing::run_graph(context_, out, params, {}, {.schedule = {}, .target = &kWideTiles})[0]
            .doubles();
    ASSERT_TRUE(std::ranges::any_of(expected, [](double v) { return std::isfinite(v); }));
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::isfinite(got[i]), std::isfinite(expected[i])) << i;
  }

  static int64_t made_for(NodeRef y, const Target& target, std::string_view name) {
    const ScheduleOutput out[] = {{y}};
    return std::ranges::count_if(make_schedule(out, target, {}).kernels,
                                 [&](const Kernel& k) { return k.name.starts_with(name); });
  }
  void check_not_tiled(NodeRef y) { EXPECT_EQ(kernels_of(y, kWideTiles).tiled, 0U); }
};

TEST_F(TileConvolutions, OfManyShapes) {
  check_tiled(convolution({}));
  check_tiled(convolution({.images = 3, .columns = 33, .padding = 0}));
  check_tiled(convolution({.in = 40, .out = 20, .columns = 20}));  // channels of zeros
  check_tiled(convolution({.rows = 7, .columns = 7}));             // all rows as one
  check_tiled(convolution({.images = 2, .columns = 14, .taps = 5, .padding = 2}));
  check_tiled(convolution({.columns = 24, .dilation = 2, .padding = 2}));
  check_tiled(convolution({.rows = 5, .columns = 7, .dilation = 3, .padding = 0}));
  check_tiled(convolution({.columns = 18, .taps = 1, .padding = 0}));
}
TEST_F(TileConvolutions, WithSteps) {
  check_tiled(convolution({.columns = 17, .stride = 2}));
  check_tiled(convolution({.rows = 7, .columns = 7, .stride = 2}));
  check_tiled(convolution({.out = 32, .taps = 1, .stride = 2, .padding = 0}));
  check_tiled(convolution({.columns = 20, .stride = 3, .dilation = 2, .padding = 0}));
}
TEST_F(TileConvolutions, OfFewChannelsWithTheirTaps) {
  check_tiled(convolution({.in = 3, .columns = 32, .taps = 7, .stride = 2, .padding = 3}));
  check_tiled(convolution({.in = 4, .columns = 19, .taps = 5, .padding = 2}));
}
/// Ranges that are unrolled in the kernels of tiles: one for rows of more than one, one for
/// columns.
int64_t unrolled_around_tiles(NodeRef y) {
  int64_t found = 0;
  const ScheduleOutput out[] = {{y}};
  for (const Kernel& k : make_schedule(out, kWideTiles, {}).kernels) {
    const Kernel better = optimize_kernel(k, kWideTiles, {});
    const Toposort nodes(better.sink);
    const auto bound = [&](Binding b) {
      return std::ranges::count_if(
          nodes.nodes(), [b](NodeRef n) { return n->op == Op::Range && range_binding(n) == b; });
    };
    if (bound(Binding::Tile) > 0) found += bound(Binding::Unroll);
  }
  return found;
}

// Two tiles that overlap: no row has places that are left out, and both are summed together.
TEST_F(TileConvolutions, OfRowsOfAlmostTwoTiles) {
  EXPECT_EQ(unrolled_around_tiles(convolution({.out = 32, .columns = 28})), 2);
  EXPECT_EQ(unrolled_around_tiles(convolution({.out = 32, .columns = 31})), 2);
  for (const int64_t columns : {20, 28, 31}) {
    NodeRef y = convolution({.columns = columns});
    EXPECT_EQ(kernels_of(y, kWideTiles), kernels_of(convolution({.columns = 32}), kWideTiles));
    check_tiled(y);
  }
}
// What is made of them beside others is stored like them, though a sum for each channel would have
// channels side by side.
TEST_F(TileConvolutions, WhatIsMadeOfResultsLiesLikeThem) {
  const ConvCase c{.images = 16, .in = 32, .out = 32, .rows = 64, .columns = 64};
  const GraphBuilder::Ints all{16, 1, 32, 32, 64, 64, 1, 1};
  NodeRef y = g_.cast(b_.reshape(convolution(c), {16, 32, 64, 64}), DType::BF16);
  NodeRef total = g_.cast(b_.reduce(g_.cast(y, DType::F32), Fold::Add, {0, 2, 3}), DType::BF16);
  NodeRef made = g_.make(Op::Exp2, DType::BF16,
                         {g_.mul(y, b_.broadcast(total, {1, 32, 1, 1}, {16, 32, 64, 64}))});
  NodeRef z = g_.cast(made, DType::F32);
  NodeRef each = b_.reduce(g_.mul(z, g_.cast(y, DType::F32)), Fold::Add, {0, 2, 3});
  NodeRef largest = b_.reduce(g_.add(z, g_.cast(y, DType::F32)), Fold::Max, {0, 2, 3});
  NodeRef image =
      b_.broadcast(b_.window(b_.window(z, 2, 1), 3, 1), {16, 1, 1, 32, 64, 64, 1, 1}, all);
  NodeRef weight =
      b_.broadcast(param(2, {32, 32, 1, 1}, DType::BF16), {1, 1, 32, 32, 1, 1, 1, 1}, all);
  NodeRef next = b_.reduce(g_.mul(image, weight), Fold::Add, {3, 6, 7});
  const ScheduleOutput out[] = {{each}, {largest}, {next}};
  int found = 0;
  for (const BufferSpec& buffer : make_schedule(out, kWideTiles, {}).buffers)
    if (buffer.numel->vmax == 16 * 32 * 64 * 64) {
      ++found;
      EXPECT_EQ(buffer.layout, "row-major");
    }
  EXPECT_GT(found, 1);
}
// Results of products by vectors may lie with channels side by side, where a mask is one for all
// lanes: nine reads of each are too few for a copy then, of what tiles make they are not.
TEST_F(TileConvolutions, ResultsArePaddedForSumsOfEachChannel) {
  const auto each_channel = [&](DType dtype) {
    const ConvCase c{.images = 8,
                     .in = 32,
                     .out = 32,
                     .rows = 16,
                     .columns = 32,
                     .taps = 1,
                     .padding = 0,
                     .dtype = dtype};
    const GraphBuilder::Ints all{8, 32, 16, 32, 3, 3};
    NodeRef y = g_.cast(b_.reshape(convolution(c), {8, 32, 16, 32}), dtype);
    NodeRef x = b_.pad(g_.cast(y, DType::F32), {0, 0, 1, 1}, {0, 0, 1, 1});
    NodeRef w = b_.broadcast(param(2, {32, 3, 3}, dtype), {1, 32, 1, 1, 3, 3}, all);
    return b_.reduce(g_.mul(b_.window(b_.window(x, 2, 3), 3, 3), w), Fold::Add, {4, 5});
  };
  EXPECT_EQ(made_for(each_channel(DType::BF16), kWideTiles, "each_8_32_18_34"), 1);
  EXPECT_EQ(made_for(each_channel(DType::F32), kWideTiles, "each_8_32_18_34"), 0);
}
TEST_F(TileConvolutions, OfOneAxis) {
  for (const ConvCase& c : {ConvCase{.images = 2, .out = 32, .columns = 40},
                            ConvCase{.out = 32, .columns = 21, .stride = 2, .dilation = 2},
                            ConvCase{.images = 2, .in = 40, .out = 48, .columns = 9, .taps = 4}}) {
    check_tiled(b_.reduce(g_.mul(windows_along(c), weights_along(c)), Fold::Add, {3, 5}));
    check_tiled(b_.reduce(g_.mul(windows_along(c), above_along(c, 1)), Fold::Add, {0, 4}));
    check_tiled(gradient_along(c));
  }
}
TEST_F(TileConvolutions, OfThreeAxes) {
  for (const ConvCase& c : {ConvCase{.images = 2, .taps = 2, .padding = 0},
                            ConvCase{.rows = 2, .columns = 18, .taps = 2, .stride = 2},
                            ConvCase{.planes = 3, .rows = 4, .columns = 4},
                            ConvCase{.in = 40, .out = 24, .rows = 2, .taps = 2, .dilation = 2}}) {
    check_tiled(
        b_.reduce(g_.mul(windows_through(c), above_through(c, 1)), Fold::Add, {0, 4, 5, 6}));
    check_tiled(gradient_through(c));
  }
}
TEST_F(TileConvolutions, NotOfWhatFillsNone) {
  check_not_tiled(convolution({.in = 3}));
  check_not_tiled(convolution({.out = 8}));
  check_not_tiled(convolution({.dtype = DType::F16}));
  check_not_tiled(convolution({.dtype = DType::F32}));
  Target same_everywhere = kWideTiles;
  same_everywhere.canonical = true;
  same_everywhere.matrix_units = {};
  EXPECT_EQ(kernels_of(convolution({}), same_everywhere).tiled, 0U);
}

TEST_F(TileConvolutions, GradientsOfImages) {
  check_tiled(gradient_of_image({.images = 2, .out = 32}));
  check_tiled(gradient_of_image({.in = 24, .out = 40, .columns = 20, .taps = 5, .padding = 1}));
  check_tiled(gradient_of_image({.out = 32, .rows = 7, .columns = 7, .dilation = 2, .padding = 2}));
  check_tiled(gradient_of_image({.out = 32, .columns = 18, .taps = 1, .padding = 0}));
  check_tiled(gradient_of_image({.out = 32, .columns = 15, .stride = 2}));
  check_tiled(gradient_of_image({.out = 32, .columns = 9, .taps = 4, .stride = 3, .padding = 0}));
}
// By themselves the sums would have each of the taps in memory, nine times as much as the image.
TEST_F(TileConvolutions, GradientsOfImagesWithFewChannelsAreOneSum) {
  NodeRef y = gradient_of_image({.in = 3, .out = 32, .rows = 20, .columns = 20});
  EXPECT_EQ(made_for(y, kWideTiles, "reduce"), 1);
  EXPECT_EQ(kernels_of(y, kWideTiles).tiled, 0U);
  check({{y}}, 1e-5, {.schedule = {}, .target = &kWideTiles});
}

TEST_F(TileConvolutions, GradientsOfWeights) {
  check_tiled(gradient_of_weights({.images = 3}));
  check_tiled(gradient_of_weights({.images = 2, .in = 40, .out = 24, .rows = 5, .columns = 7}));
  check_tiled(gradient_of_weights({.columns = 20, .taps = 5, .dilation = 2, .padding = 3}));
  check_tiled(gradient_of_weights({.images = 2, .rows = 9, .columns = 9, .stride = 2}));
  check_tiled(gradient_of_weights({.columns = 30, .taps = 1, .padding = 0}));
}
TEST_F(TileConvolutions, InfinitiesStayWhereTheyBelong) {
  check_infinities(convolution({.rows = 7, .columns = 7}));
  check_infinities(convolution({.in = 3, .columns = 20, .taps = 7, .stride = 2, .padding = 0}));
  check_infinities(gradient_of_weights({.rows = 5, .columns = 7, .padding = 0}));
  check_infinities(gradient_of_weights({.rows = 4, .columns = 7, .padding = 0}));
  check_infinities(gradient_of_image({.out = 32, .rows = 7, .columns = 7, .padding = 0}));
}
TEST_F(TileConvolutions, GradientsOfWeightsInPartsThatStayInL2) {
  Target small = kWideTiles;
  small.machine.caches[1].bytes = 1 << 13;
  NodeRef y = gradient_of_weights({.images = 6, .in = 16});
  EXPECT_EQ(made_for(y, small, "reduce_6_3_3_"), 1);
  EXPECT_EQ(made_for(y, kWideTiles, "reduce_3_3_"), 1);
  check({{y}}, 1e-5, {.schedule = {}, .target = &small});
}

}  // namespace
}  // namespace weft
