// Convolutions of few places by many weights.
#include "tests/schedule/schedule_test.h"
#include "weft/base/format.h"

namespace weft {
namespace {

/// As conv2d multiplies.
struct ConvCase {
  int64_t in = 64, out = 128, rows = 3, columns = 4, padding = 1, stride = 1;
};

class SpreadWindows : public ScheduleTest {
 protected:
  const Target cpu = make_target("x86", CpuFeatures(), 2);

  NodeRef convolution(const ConvCase& c) {
    const int64_t high = (c.rows - 1) * c.stride + 3, wide = (c.columns - 1) * c.stride + 3,
                  p = c.padding;
    NodeRef x = b_.param(0, {1, c.in, high - 2 * p, wide - 2 * p}),
            w = b_.param(1, {c.out, c.in, 3, 3});
    if (p > 0) x = b_.pad(x, {0, 0, p, p}, {0, 0, p, p});
    x = b_.window(b_.window(x, 2, 3, c.stride, 1), 3, 3, c.stride, 1);
    const GraphBuilder::Ints all{1, 1, c.out, c.in, c.rows, c.columns, 3, 3};
    NodeRef product = g_.mul(b_.broadcast(x, {1, 1, 1, c.in, c.rows, c.columns, 3, 3}, all),
                             b_.broadcast(w, {1, 1, c.out, c.in, 1, 1, 3, 3}, all));
    return b_.reduce(product, Fold::Add, {3, 6, 7});
  }

  /// Whether a kernel writes the windows, places innermost.
  bool is_used(const ConvCase& c, const Target& target, const ScheduleOptions& options = {}) {
    const ScheduleOutput out[] = {{convolution(c)}};
    const Schedule s = make_schedule(out, target, options);
    const std::string name = strformat("each_{}_3_3_{}_{}", c.in, c.rows, c.columns);
    return std::ranges::any_of(s.kernels, [&](const Kernel& k) { return k.name == name; });
  }
};

TEST_F(SpreadWindows, AreForManyWeightsThatChange) {
  EXPECT_TRUE(is_used({}, cpu));
  EXPECT_TRUE(is_used({.stride = 2}, cpu));
  EXPECT_FALSE(is_used({.rows = 12, .columns = 12}, cpu)) << "as many places as results";
  EXPECT_FALSE(is_used({.in = 16, .out = 16}, cpu)) << "few weights";
  ScheduleOptions constant;
  constant.constants = {false, true};
  EXPECT_FALSE(is_used({}, cpu, constant)) << "weights are put in order once";
  Target same_everywhere = cpu;
  same_everywhere.canonical = true;
  EXPECT_FALSE(is_used({}, same_everywhere));
}

TEST_F(SpreadWindows, KeepValues) {
  for (const ConvCase& c : {ConvCase{}, {.padding = 0}, {.in = 32, .out = 256, .stride = 2}})
    check({{convolution(c)}}, 1e-5, {.schedule = {}, .target = &cpu});
}

TEST_F(SpreadWindows, ProductsByOnesAreWhatTheyMultiply) {
  NodeRef x = b_.param(0, {4, 6}), ones = b_.broadcast(b_.constant(1), {1, 1}, {4, 6});
  NodeRef y = b_.reduce(g_.mul(g_.mul(ones, x), x), Fold::Add, {1});
  check({{y}}, 1e-6);
  check({{g_.mul(ones, x)}}, 0);
}

}  // namespace
}  // namespace weft
