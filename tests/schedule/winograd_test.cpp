// Convolutions in half the products.
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

/// As conv2d multiplies.
struct ConvCase {
  int64_t images = 1, in = 128, out = 128, rows = 4, columns = 8, padding = 1, stride = 1;
};

class Winograd : public ScheduleTest {
 protected:
  const Target cpu = make_target("x86", CpuFeatures(), 2);

  NodeRef convolution(const ConvCase& c) {
    const int64_t high = (c.rows - 1) * c.stride + 3, wide = (c.columns - 1) * c.stride + 3,
                  p = c.padding;
    NodeRef x = b_.param(0, {c.images, c.in, high - 2 * p, wide - 2 * p}),
            w = b_.param(1, {c.out, c.in, 3, 3});
    if (p > 0) x = b_.pad(x, {0, 0, p, p}, {0, 0, p, p});
    x = b_.window(b_.window(x, 2, 3, c.stride, 1), 3, 3, c.stride, 1);
    const GraphBuilder::Ints all{c.images, 1, c.out, c.in, c.rows, c.columns, 3, 3};
    NodeRef product = g_.mul(b_.broadcast(x, {c.images, 1, 1, c.in, c.rows, c.columns, 3, 3}, all),
                             b_.broadcast(w, {1, 1, c.out, c.in, 1, 1, 3, 3}, all));
    return b_.reduce(product, Fold::Add, {3, 6, 7});
  }

  /// The gradient of its image, as gradients are written.
  NodeRef gradient(const ConvCase& c) {
    const int64_t high = c.rows + 2, wide = c.columns + 2, p = c.padding;
    const GraphBuilder::Ints all{c.images, 1, c.out, c.in, c.rows, c.columns, 3, 3};
    NodeRef above = b_.param(0, {c.images, c.out, c.rows, c.columns}),
            w = b_.param(1, {c.out, c.in, 3, 3});
    NodeRef product =
        g_.mul(b_.broadcast(above, {c.images, 1, c.out, 1, c.rows, c.columns, 1, 1}, all),
               b_.broadcast(w, {1, 1, c.out, c.in, 1, 1, 3, 3}, all));
    NodeRef x =
        b_.reshape(b_.reduce(product, Fold::Add, {2}), {c.images, c.in, c.rows, c.columns, 3, 3});
    x = b_.reduce(b_.unwindow(x, wide, 3, 3), Fold::Add, {5});
    x = b_.reduce(b_.unwindow(x, high, 2, 3), Fold::Add, {4});
    return p == 0 ? x : b_.shrink(x, {0, 0, p, p}, {c.images, c.in, high - 2 * p, wide - 2 * p});
  }

  static ScheduleOptions constant_weights() {
    ScheduleOptions options;
    options.constants = {false, true};
    return options;
  }

  void check_used(NodeRef y, const ScheduleOptions& options) {
    ASSERT_TRUE(is_used(y, cpu, options));
    check({{y}}, 1e-5, {.schedule = options, .target = &cpu});
  }
  void check_used(const ConvCase& c) { check_used(convolution(c), constant_weights()); }

  /// Whether a kernel multiplies what six neighbours became.
  static bool is_used(NodeRef y, const Target& target, const ScheduleOptions& options) {
    const ScheduleOutput out[] = {{y}};
    const Schedule s = make_schedule(out, target, options);
    return std::ranges::any_of(s.kernels,
                               [](const Kernel& k) { return k.name.starts_with("reduce_6_"); });
  }
};

TEST_F(Winograd, IsForManyChannelsAndPlaces) {
  EXPECT_TRUE(is_used(convolution({}), cpu, constant_weights()));
  EXPECT_FALSE(is_used(convolution({}), cpu, {})) << "weights change, for few places";
  EXPECT_TRUE(is_used(convolution({.images = 8, .rows = 8, .columns = 16}), cpu, {}));
  EXPECT_FALSE(is_used(convolution({.in = 8}), cpu, constant_weights())) << "few channels";
  EXPECT_FALSE(is_used(convolution({.stride = 2}), cpu, constant_weights()));
  EXPECT_TRUE(is_used(convolution({.images = 64, .in = 64, .out = 64, .rows = 8}), cpu, {}));
  EXPECT_FALSE(is_used(convolution({.images = 512, .in = 64, .out = 64, .rows = 8}), cpu, {}))
      << "beyond the last cache";
  Target same_everywhere = cpu;
  same_everywhere.canonical = true;
  EXPECT_FALSE(is_used(convolution({}), same_everywhere, constant_weights()));
}

TEST_F(Winograd, KeepsValuesOfAPartOfATile) { check_used({.in = 64, .columns = 7}); }

TEST_F(Winograd, IsForGradientsOfImages) {
  check_used(gradient({.in = 64}), constant_weights());
  EXPECT_FALSE(is_used(gradient({}), cpu, {})) << "weights change, for few places";
  EXPECT_TRUE(is_used(gradient({.images = 8, .rows = 8, .columns = 16}), cpu, {}));
  EXPECT_FALSE(is_used(gradient({.in = 8}), cpu, constant_weights())) << "few channels";
}

TEST_F(Winograd, IsForGradientsWithAnyBorderSlow) {
  for (const int64_t padding : {0, 2})
    check_used(gradient({.rows = 2 + 2 * padding, .columns = 6 + 2 * padding, .padding = padding}),
               constant_weights());
}

TEST_F(Winograd, KeepsValuesOfOtherGeometriesSlow) {
  for (const ConvCase& c : {ConvCase{}, {.columns = 10, .padding = 0}, {.images = 2, .padding = 2}})
    check_used(c);
}

}  // namespace
}  // namespace weft
