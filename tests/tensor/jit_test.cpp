#include <cmath>

#include "tests/tensor/tensor_test.h"
#include "weft/run/stats.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/hash.h"
#include "weft/tensor/image.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

class JitTest : public TensorTest {};

Tensor ramp(float start) { return Tensor::of({start, start + 1, start + 2}); }

TEST_F(JitTest, LaterCallsReplay) {
  int runs = 0;
  auto f = jit([&](const Tensor& x, const Tensor& y) {
    ++runs;
    return (x * 2 + y).relu();
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = ramp(static_cast<float>(i) - 3), y = ramp(static_cast<float>(2 * i));
    EXPECT_EQ(f(x, y).to_vector<float>(), (x * 2 + y).relu().to_vector<float>()) << "call " << i;
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f.kernels(), 1u);
}

/// What is realized inside is the result's memory, also where it is seen in another shape or order.
TEST_F(JitTest, RealizedViewsAreResultsWithoutACopy) {
  const Tensor x = Tensor::arange(6).cast(DType::F32).reshape({2, 3}).contiguous().realize();
  const auto reshaped = [](const Tensor& y) { return (y * 2).contiguous().reshape({3, 2}); };
  const auto transposed = [](const Tensor& y) { return (y * 2).T(); };
  auto shaped = jit([&](const Tensor& y) { return reshaped(y).realize(); });
  auto turned = jit([&](const Tensor& y) { return transposed(y).realize(); });
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(shaped(x).to_vector<float>(), (std::vector<float>{0, 2, 4, 6, 8, 10}));
    EXPECT_EQ(turned(x).to_vector<float>(), (std::vector<float>{0, 6, 2, 8, 4, 10}));
  }
  EXPECT_EQ(shaped.kernels(), 1u);
  EXPECT_EQ(turned.kernels(), 1u);
  // What others share is computed once, for all of them.
  Tensor both = x * 2, view = both.reshape({6});
  const auto before = run_stats(context_).kernels;
  view.realize();
  both.realize();
  EXPECT_EQ(run_stats(context_).kernels - before, 1);
}

TEST_F(JitTest, SelectionWithASizeReplays) {
  auto f = jit([](const Tensor& x) {
    Tensor y = x * 1;
    y.index_put({x > 4}, 0);
    return masked_select(x, x > 2, 3, -1) + y.sort(0, true).first;
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = ramp(static_cast<float>(i));
    const Tensor chosen = masked_select(x, x > 2, 3, -1);
    const Tensor kept = (x > 4).where(0, x).sort(0, true).first;
    EXPECT_EQ(f(x).to_vector<float>(), (chosen + kept).to_vector<float>()) << "call " << i;
  }
  // How many there are cannot be looked at while it is captured.
  auto unsized = jit([](const Tensor& x) { return x[x > 2].sum(); });
  const std::string message = message_of([&] {
    for (int i = 0; i < 3; ++i) unsized(ramp(static_cast<float>(i))).realize();
  });
  EXPECT_NE(message.find("jit"), std::string::npos) << message;
}

TEST_F(JitTest, TablesAreFoundAgain) {
  auto f = jit([](const Tensor& x) {
    const Tensor spectrum = fft::rfft(x).square().sum();
    const Tensor bytes = keccak(x.cast(DType::U8)).cast(DType::F32);
    const Tensor sorted = x.repeat({30}).sort(0, true).first;
    return interpolate(x.reshape({1, 1, 3}), {5}, Resize::Linear) + spectrum + bytes[0] + sorted[0];
  });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = ramp(static_cast<float>(i));
    const double spectrum = values(fft::rfft(x).square().sum())[0];
    const double byte = values(keccak(x.cast(DType::U8)))[0];
    const double rest = spectrum + byte + i + 2;
    const std::vector<float> got = f(x).to_vector<float>();
    EXPECT_NEAR(got[0], i + rest, 1e-3) << "call " << i;
    EXPECT_NEAR(got[4], i + 2 + rest, 1e-3) << "call " << i;
  }
}

// Integers at hand are sorted by the bits in which they differ, with other tables; a capture does
// not look at them.
TEST_F(JitTest, IntegersThatWereAtHandAreSorted) {
  auto f = jit([](const Tensor& x) { return x.sort(0).first; });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = (Tensor::arange(1000) * 7 + i) % 100;
    x.realize();
    const std::vector<int32_t> got = f(x).to_vector<int32_t>();
    EXPECT_TRUE(std::is_sorted(got.begin(), got.end())) << "call " << i;
    EXPECT_EQ(got[0], 0);
    EXPECT_EQ(got[999], 99);
  }
}

TEST_F(JitTest, LinearAlgebraReplays) {
  auto f = jit([](const Tensor& b) {
    const Tensor a = Tensor::eye(3) * 2 + 1;
    return linalg::solve(a, b);
  });
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> got = f(ramp(static_cast<float>(i))).to_vector<float>();
    // The inverse of 2 I + 1 is (I - 1 / 5) / 2.
    const double mean = 3.0 * (i + 1) / 5;
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(got[static_cast<size_t>(k)], (i + k - mean) / 2, 1e-6);
  }
}

TEST_F(JitTest, ResultsOfTwoCallsDoNotAlias) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  for (int i = 0; i < 2; ++i) f(ramp(0)).realize();
  const Tensor a = f(ramp(10)), b = f(ramp(20));
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{11, 12, 13}));
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{21, 22, 23}));
}

TEST_F(JitTest, StateIsReadAndWrittenAsItIs) {
  Tensor total = ramp(0).contiguous().realize();
  auto f = jit([&](const Tensor& x) {
    total += x;
    return total * 2;
  });
  std::vector<float> expected{0, 1, 2};
  for (int i = 0; i < 5; ++i) {
    const auto x = static_cast<float>(i);
    const std::vector<float> got = f(ramp(x)).to_vector<float>();
    for (size_t k = 0; k < 3; ++k) {
      expected[k] += x + static_cast<float>(k);
      EXPECT_EQ(got[k], 2 * expected[k]);
    }
    if (i == 3) total.assign(expected[0]), expected = {expected[0], expected[0], expected[0]};
  }
  EXPECT_EQ(total.to_vector<float>(), expected);
}

TEST_F(JitTest, RandomNumbersAreThoseOfTheUncapturedRun) {
  auto step = [](const Tensor& x) { return x + Tensor::rand({3}) + Tensor::randn({3}) * 0.1; };
  auto all = [&](auto&& f) {
    Tensor::manual_seed(3);
    std::vector<std::vector<float>> out;
    for (int i = 0; i < 5; ++i) out.push_back(f(ramp(0)).template to_vector<float>());
    return out;
  };
  const auto plain = all(step), captured = all(jit(step));
  EXPECT_EQ(captured, plain);
  EXPECT_NE(plain[3], plain[4]);
}

TEST_F(JitTest, TrainingStepsAreTheSameCapturedOrNot) {
  auto train = [](bool capture) {
    Tensor::manual_seed(1);
    Tensor w = Tensor::uniform({3, 2}, -1, 1).requires_grad_(),
           b = Tensor::zeros({2}).requires_grad_();
    auto step = [&](const Tensor& x, const Tensor& y) {
      w.zero_grad(), b.zero_grad();
      const Tensor loss = (x.matmul(w) + b).cross_entropy(y);
      loss.backward();
      w.assign(w - w.grad() * 0.5);
      b.assign(b - b.grad() * 0.5);
      realize({loss, w, b});
      return loss;
    };
    auto jitted = jit(step);
    std::vector<float> losses;
    for (int i = 0; i < 6; ++i) {
      const Tensor x = sample({4, 3}, i).cast(DType::F32), y = Tensor::of({0, 1, 1, 0});
      losses.push_back((capture ? jitted(x, y) : step(x, y)).item<float>());
    }
    return losses;
  };
  const auto plain = train(false);
  EXPECT_EQ(train(true), plain);
  EXPECT_LT(plain[5], plain[0]);
}

struct Batch {
  Tensor images, labels;
  template <class V>
  void visit_tensors(V&& v) {
    v("images", images), v("labels", labels);
  }
};

TEST_F(JitTest, TensorsAreFoundInsideContainers) {
  using Named = std::map<std::string, Tensor>;
  auto f = jit([](const std::vector<Tensor>& list, const Named& named, const Batch& batch) {
    return std::pair(Batch{list[0] + named.at("b"), batch.images * 2},
                     std::vector{batch.labels + 1});
  });
  for (int i = 0; i < 4; ++i) {
    const auto x = static_cast<float>(i);
    const auto [sums, more] =
        f(std::vector{ramp(x)}, Named{{"b", ramp(2)}}, Batch{ramp(x), ramp(5)});
    EXPECT_EQ(sums.images.to_vector<float>(), (std::vector<float>{x + 2, x + 4, x + 6}));
    EXPECT_EQ(sums.labels.to_vector<float>(), (std::vector<float>{2 * x, 2 * x + 2, 2 * x + 4}));
    EXPECT_EQ(more[0].to_vector<float>(), (std::vector<float>{6, 7, 8}));
  }
}

TEST_F(JitTest, OneCaptureForManySizes) {
  const Variable n("n", 1, 8);
  const Tensor x = Tensor::arange(8).cast(DType::F32).contiguous().realize();
  int runs = 0;
  auto f = jit([&](const Tensor& part) {
    ++runs;
    return (part * 2).sum();
  });
  for (int64_t size = 1; size <= 8; ++size)
    EXPECT_EQ(f(x.shrink({{0, n.bind(size)}})).item<int64_t>(), size * (size - 1));
  EXPECT_EQ(runs, 2);
  auto g = jit([&](const Dim& size) { return x.shrink({{0, size}}).sum(); });
  for (int64_t size = 8; size >= 1; --size)
    EXPECT_EQ(g(n.bind(size)).item<int64_t>(), size * (size - 1) / 2);
}

TEST_F(JitTest, WhatCannotBeReplayedIsAnError) {
  auto scaled = jit([](const Tensor& x, float by) { return x * by; }, "scaled");
  for (int i = 0; i < 3; ++i) scaled(ramp(0), 2);
  EXPECT_NE(message_of([&] {
              scaled(ramp(0), 3);
            }).find("[jit] argument 1 was 2 when scaled was captured and is now 3: numbers"),
            std::string::npos);
  EXPECT_NE(message_of([&] { scaled(Tensor::ones({4}), 2); }).find("argument 0"),
            std::string::npos);
  scaled.reset();
  EXPECT_EQ(scaled(ramp(0), 3).to_vector<float>(), (std::vector<float>{0, 3, 6}));

  auto reads = jit([](const Tensor& x) { return x * x.sum().item<float>(); });
  reads(ramp(0));
  EXPECT_NE(message_of([&] { reads(ramp(0)); }), "nothing was thrown");

  auto whole = jit([](const Tensor& x) { return x + 1; });
  const Tensor x = Tensor::arange(6).realize();
  for (int i = 0; i < 2; ++i) whole(x[{Slice(0, 3)}]);
  EXPECT_EQ(whole(x[{Slice(0, 3)}]).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_NE(message_of([&] { whole(x[{Slice(3, 6)}]); }).find("another view"), std::string::npos);
}

TEST_F(JitTest, OffByOption) {
  context_.mutable_options().jit = false;
  int runs = 0;
  auto f = jit([&](const Tensor& x) {
    ++runs;
    return x + 1;
  });
  for (int i = 0; i < 4; ++i) f(ramp(0));
  EXPECT_EQ(runs, 4);
}

}  // namespace
}  // namespace weft
