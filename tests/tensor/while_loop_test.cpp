#include <gtest/gtest.h>

#include <algorithm>

#include "tests/io/scratch_dir.h"
#include "tests/tensor/near.h"
#include "weft/base/context.h"
#include "weft/run/stats.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/transforms.h"

namespace weft {
namespace {

/// Adds 1 until `limit` is reached, at most `most` times.
Tensor counted(const Tensor& limit, int64_t most) {
  const Tensor none = Tensor::zeros({}, DType::I32);
  return while_loop([&](const Tensors& c) { return c[0] < limit; },
                    [](const Tensors& c) { return Tensors{c[0] + 1}; }, {none}, most)[0];
}

TEST(WhileLoop, EndsWhereItsConditionSays) {
  for (const int most : {0, 1, 2, 3, 4, 9, 10})
    for (int limit = -1; limit <= 12; ++limit)
      ASSERT_EQ(counted(Tensor::of({limit}).squeeze(), most).item<int>(),
                std::clamp(limit, 0, most))
          << limit << " of " << most;
}

int64_t launched(FunctionRef<void()> work) {
  const int64_t before = run_stats(Context::current()).kernels;
  work();
  return run_stats(Context::current()).kernels - before;
}

TEST(WhileLoop, RunsNoMoreRoundsThanAreNeeded) {
  Options options = Context::current().options();
  options.dev = "CPU";  // others run all of them
  Context context(options);
  const ContextScope scope(context);
  const Tensor x = Tensor::of({2.0, 9.0, 1e4}).realize();
  const auto root = [&](int64_t most) {
    return while_loop([&](const Tensors& c) { return (c[0] * c[0] - x).abs().max() > 1e-6; },
                      [&](const Tensors& c) { return Tensors{(c[0] + x / c[0]) / 2}; }, {x},
                      most)[0];
  };
  Tensor found;
  const int64_t few = launched([&] { found = root(20).realize(); });
  expect_near(found, x.sqrt(), "root", 1e-9);
  const int64_t many = launched([&] { found = root(2000).realize(); });
  expect_near(found, x.sqrt(), "root", 1e-9);
  EXPECT_LE(many, few + few / 10 + 1);  // a round more, for their parity
}

TEST(WhileLoop, InACapturedFunctionEndsElsewhereEachTime) {
  Jit count([](const Tensor& x) { return counted(x.squeeze(), 40) * 2; }, "count");
  for (const int limit : {3, 3, 3, 17, 0, 99, 5})
    ASSERT_EQ(count(Tensor::of({limit})).item<int>(), 2 * std::min(limit, 40));
  // Where one loop ends says nothing of another one.
  Jit two([](const Tensor& x) { return counted(x[0], 30) * 100 + counted(x[1], 30); }, "two");
  for (const int a : {2, 2, 2, 25, 1})
    for (const int b : {4, 20}) {
      ASSERT_EQ(two(Tensor::of({a, b})).item<int>(), a * 100 + b);
    }
}

TEST(WhileLoop, EverySliceOfABatchEndsByItself) {
  const Tensor limits = Tensor::of({3, 0, 7, 2});
  const Tensor counts = vmap(of_one([](const Tensor& l) { return counted(l, 9); }), {limits})[0];
  EXPECT_EQ(counts.to_vector<int>(), limits.to_vector<int>());
}

TEST(WhileLoop, HasGradients) {
  const Tensor x = Tensor::of({0.5, 2.0});
  const Tensor y = while_loop([](const Tensors& c) { return c[1] < 3; },
                              [](const Tensors& c) { return Tensors{c[0] * c[0], c[1] + 1}; },
                              {x, Tensor::zeros({}, DType::I32)}, 6)[0];
  expect_near(y, x.pow(8), "x^8", 1e-12);
  expect_near(y.sum().gradient({x})[0], 8 * x.pow(7), "8 x^7", 1e-10);
}

TEST(WhileLoop, InsideOfAScanAndAroundOne) {
  const ScanFunction add = [](const Tensors& c, const Tensors& s) {
    return ScanResult{{c[0] + counted(s[0], 8)}, {}};
  };
  const Tensor limits = Tensor::of({1, 5, 8, 0, 3}), none = Tensor::zeros({}, DType::I32);
  EXPECT_EQ(scan(add, {none}, {limits}).carried[0].item<int>(), 17);
  const Tensor all =
      while_loop([](const Tensors& c) { return c[0] < 50; },
                 [&](const Tensors& c) { return scan(add, c, {limits}).carried; }, {none}, 9)[0];
  EXPECT_EQ(all.item<int>(), 51);
}

TEST(WhileLoop, SaysWhatIsWrong) {
  const Tensor x = sample({3}, 1);
  const auto same = [](const Tensors& c) { return c; };
  const auto first = [](const Tensors& c) { return c[0].sum() > 0; };
  EXPECT_ERROR(while_loop(first, same, {}, 3), "at least one input");
  EXPECT_ERROR(while_loop(first, same, {x}, -1), "at most -1 rounds");
  EXPECT_ERROR(while_loop([](const Tensors& c) { return c[0] > 0; }, same, {x}, 3),
               "the condition has shape (3,)");
  EXPECT_ERROR(while_loop(
                   first, [](const Tensors& c) { return Tensors{c[0].sum()}; }, {x}, 3),
               "begins as f64 (3,) and becomes f64 ()");
  const ScanFunction step = [](const Tensors& c, const Tensors&) { return ScanResult{c, {}}; };
  EXPECT_ERROR(scan(step, {x}, {}, {.count = 3, .until = 0}), "make it i32");
  EXPECT_ERROR(scan(step, {x}, {}, {.count = 3, .until = 1}), "until is 1, of 1");
  const ScanFunction stacks = [](const Tensors& c, const Tensors&) { return ScanResult{c, c}; };
  EXPECT_ERROR(scan(stacks, {Tensor::of({1})}, {}, {.count = 3, .until = 0}), "may be left out");
}

}  // namespace
}  // namespace weft
