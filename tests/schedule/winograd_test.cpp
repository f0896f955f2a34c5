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

  static ScheduleOptions constant_weights() {
    ScheduleOptions options;
    options.constants = {false, true};
    return options;
  }

  void check_used(const ConvCase& c) {
    ASSERT_TRUE(is_used(convolution(c), cpu, constant_weights()));
    check({{convolution(c)}}, 1e-5, {.schedule = constant_weights(), .target = &cpu});
  }

  /// Whether a kernel multiplies what six neighbours became.
  static bool is_used(NodeRef y, const Target& target, const ScheduleOptions& options) {
    const ScheduleOutput out[] = {{y}};
    const Schedule s = make_schedule(out, target, options);
    return std::ranges::any_of(s.kernels,
                               [](const Kernel& k) { return k.name.starts_with("reduce_6_"); });
  }
};

TEST_F(Winograd, IsForConstantWeightsThatManyChannelsShare) {
  EXPECT_TRUE(is_used(convolution({}), cpu, constant_weights()));
  EXPECT_FALSE(is_used(convolution({}), cpu, {})) << "weights change";
  EXPECT_FALSE(is_used(convolution({.in = 16}), cpu, constant_weights())) << "few channels";
  EXPECT_FALSE(is_used(convolution({.stride = 2}), cpu, constant_weights()));
  Target same_everywhere = cpu;
  same_everywhere.canonical = true;
  EXPECT_FALSE(is_used(convolution({}), same_everywhere, constant_weights()));
}

TEST_F(Winograd, KeepsValuesOfAPartOfATile) { check_used({.in = 64, .columns = 7}); }

TEST_F(Winograd, KeepsValuesOfOtherGeometriesSlow) {
  for (const ConvCase& c : {ConvCase{}, {.columns = 10, .padding = 0}, {.images = 2, .padding = 2}})
    check_used(c);
}

}  // namespace
}  // namespace weft
