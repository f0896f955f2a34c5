// What realizes asks whether to go on, also inside of kernels that run long; who ends it finds
// every tensor as it was.
#include "weft/base/interrupt.h"
#include "tests/support/device_here.h"

#include <functional>
#include <stdexcept>

#include "weft/base/context.h"
#include "weft/tensor/access.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/transforms.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

struct Ended : std::runtime_error {
  Ended() : std::runtime_error("ended") {}
};

Options on(const char* device, int threads) {
  Options options = Options::from_environment();
  options.dev = testing::device_here(device);
  options.threads = threads;
  return options;
}

/// One kernel of `rows` items, each of a few thousand instructions.
Tensor long_one(int64_t rows) {
  const Tensor x = Tensor::arange(rows).reshape({rows, 1}) * 0.001;
  return (x + Tensor::arange(512) * 0.01).sin().sum(Axes{1});
}

/// How often `work` asks, and where the `end_at`-th question ends it.
int64_t questions(FunctionRef<void()> work, int64_t end_at = -1) {
  InterruptCheck& check = Context::current().get<InterruptCheck>();
  int64_t asked = 0;
  check.ask = [&] {
    if (++asked == end_at) throw Ended();
  };
  struct Silent {
    InterruptCheck& of;
    ~Silent() {
      of.ask = [] {};
    }
  } silent{check};
  work();
  return asked;
}
int64_t questions(const Tensor& y, int64_t end_at = -1) {
  return questions([&] { y.realize(); }, end_at);
}

TEST(Interrupt, LongKernelsAskInProportionToTheirWork) {
  Context context(on("CPU:INTERP", 1));
  const ContextScope scope(context);
  const auto compiled = [](int64_t rows) {
    long_one(rows).realize();
    return questions(long_one(rows));
  };
  const int64_t none = compiled(1), few = compiled(1000), many = compiled(4000);
  EXPECT_EQ(none, 1);  // before the kernel
  EXPECT_GE(few, 2);
  // Who waits for another machine asks by the clock, whose proportions are not the kernel's.
  if (testing::simulated())
    EXPECT_GE(many, 2);
  else
    EXPECT_GE(many - 1, 3 * (few - 1)) << few;
}

TEST(Interrupt, AKernelThatWasEndedChangesNothing) {
  for (const int threads : {1, 3}) {
    Context context(on("CPU:INTERP", threads));
    const ContextScope scope(context);
    const std::vector<float> wanted = long_one(2000).to_vector<float>();
    const int64_t all = questions(long_one(2000));
    ASSERT_GE(all, threads == 1 ? 2 : 1);
    for (int64_t at = 1; at <= std::min<int64_t>(all, 2); ++at) {
      const Tensor y = long_one(2000);
      try {
        questions(y, at);
      } catch (const Ended&) {
        EXPECT_FALSE(y.cell()->realized()) << at;
      }
      EXPECT_EQ(y.to_vector<float>(), wanted) << "ended at " << at << " of " << all;
    }
  }
}

/// Walks over long graphs ask as well, and leave no gradient behind where they are ended.
TEST(Interrupt, WalksAskInProportionToTheirGraph) {
  Context context(on("CPU:INTERP", 1));
  const ContextScope scope(context);
  const Tensor x = (Tensor::arange(3) * 0.5f).contiguous().realize().requires_grad_();
  const auto chain = [](const Tensor& from, int64_t steps) {
    Tensor y = from;
    for (int64_t i = 0; i < steps; ++i) y = i % 2 == 0 ? y * from : y + 1;
    return y.sum();
  };
  using Walk = std::function<void(int64_t steps)>;
  const Walk walks[] = {
      [&](int64_t steps) { chain(x, steps).backward(); },
      [&](int64_t steps) { (void)chain(x, steps).gradient({x}); },
      [&](int64_t steps) {
        (void)jvp(of_one([&](const Tensor& t) { return chain(t, steps); }), {x}, {x});
      },
      [&](int64_t steps) {
        (void)vmap(of_one([&](const Tensor& t) { return chain(t.reshape({1}), steps); }), {x});
      }};
  for (const Walk& walk : walks) {
    EXPECT_EQ(questions([&] { walk(20); }), 0);
    const int64_t few = questions([&] { walk(10'000); }), many = questions([&] { walk(40'000); });
    EXPECT_GE(few, 8);
    EXPECT_GE(many, 3 * few);
    x.cell()->grad = Tensor();
    EXPECT_THROW(questions([&] { walk(10'000); }, few / 2), Ended);
    EXPECT_FALSE(x.grad().defined());
  }
  questions([&] { chain(x, 2).backward(); });
  EXPECT_TRUE(x.grad().defined());
}

}  // namespace
}  // namespace weft
