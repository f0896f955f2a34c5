// What captured functions compute from constants alone: once, again after a write, and never
// instead of the truth.
#include <array>
#include <functional>
#include <random>
#include <thread>

#include "tests/tensor/tensor_test.h"
#include "weft/base/context.h"
#include "weft/base/function_ref.h"
#include "weft/device/device.h"
#include "weft/run/stats.h"

namespace weft {
namespace {

Tensor numbers(std::initializer_list<int32_t> data) { return Tensor::of(data); }

void fill(Tensor& t, const std::array<int32_t, 4>& data) {
  t.copy_from(std::as_bytes(std::span(data)));
}

class KeptValues : public ::testing::Test {
 protected:
  explicit KeptValues(Options options = Options::from_environment())
      : context(std::move(options)), scope(context) {}

  int64_t kernels_of(FunctionRef<void()> call) {
    const int64_t before = run_stats(context).kernels;
    call();
    return run_stats(context).kernels - before;
  }
  int64_t times_computed() { return context.tracer().value(Counter::ConstantsComputed); }

  Context context;
  ContextScope scope;
  const Tensor x = numbers({1, 2, 3, 4}).realize();
};

/// (x + (3 w reversed)) as a kernel for what is in brackets and one for the sum.
Tensor shifted(const Tensor& x, const Tensor& w) { return x + (w * 3).flip({0}).contiguous(); }

TEST_F(KeptValues, AreComputedOnce) {
  Tensor w = numbers({1, 2, 3, 4}).realize();
  auto f = jit([&](const Tensor& a) { return shifted(a, w); });
  for (int i = 0; i < 3; ++i) f(x);
  EXPECT_EQ(f.kernels(), 1u);
  EXPECT_EQ(f.kept_bytes(), 16);
  EXPECT_EQ(f.planned_bytes(), 64) << "an argument, a constant, what is kept of it, a result";
  for (int i = 0; i < 3; ++i) {
    Tensor y;
    EXPECT_EQ(kernels_of([&] { y = f(x + i); }), 2) << "one for the argument";
    EXPECT_EQ(y.to_vector<int32_t>(), shifted(x + i, w).to_vector<int32_t>());
  }
  EXPECT_EQ(times_computed(), 1);
}

TEST_F(KeptValues, AreCompiledOnceForTheCaptureAndItsReplays) {
  const Tensor w = Tensor::ones({64, 48}).realize(), a = Tensor::ones({32, 64}).realize();
  auto f = jit([&](const Tensor& in) { return in.matmul(w.relu() + 1).relu(); });
  f(a);
  const int64_t before = context.tracer().value(Counter::KernelsCompiled);
  f(a);
  const int64_t compiled = context.tracer().value(Counter::KernelsCompiled) - before;
  EXPECT_LE(compiled, kernels_of([&] { f(a); })) << "what is kept, and what each call runs";
  EXPECT_EQ(context.tracer().value(Counter::KernelsCompiled) - before, compiled);
  EXPECT_EQ(f(a).to_vector<float>(), std::vector<float>(32 * 48, 128));
}

/// What is summed, and in which order, depends on what is packed for it.
TEST_F(KeptValues, EveryCallHasTheSameBits) {
  const Tensor filter = Tensor::randn({32, 16, 3, 3}).realize(),
               weight = Tensor::randn({300, 257}).realize();
  auto image = jit([&](const Tensor& in) { return in.conv2d(filter, {}, {.padding = {1, 1}}); });
  auto rows = jit([&](const Tensor& in) { return in.matmul(weight.T()).relu(); });
  const Tensor picture = Tensor::randn({1, 16, 24, 24}).realize(),
               batch = Tensor::randn({3, 257}).realize();
  const std::vector<float> of_image = image(picture).to_vector<float>(),
                           of_rows = rows(batch).to_vector<float>();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(image(picture).to_vector<float>(), of_image) << "later call " << i;
    EXPECT_EQ(rows(batch).to_vector<float>(), of_rows) << "later call " << i;
  }
}

/// What long lengths keep of a weight is there once, whichever lengths there were before.
TEST_F(KeptValues, OfAnyLengthAreThereOnce) {
  constexpr int64_t kLongest = 1000, kIn = 64, kOut = 48;
  const auto integers = [](int64_t rows, int64_t columns) {
    return (Tensor::arange(rows * columns) % 7 - 3).cast(DType::F32).reshape({rows, columns});
  };
  const Tensor w = integers(kIn, kOut).realize(), all = integers(kLongest, kIn).realize();
  const auto product = [&w](const Tensor& rows) {
    return rows.matmul((w * 2).contiguous()).contiguous().sum(0);
  };
  const Variable length("n", 1, kLongest);
  for (const int64_t first : {int64_t{3}, kLongest}) {
    auto f =
        jit([&](const Tensor& a, const Dim& n) { return product(a.shrink({{0, n}, {0, kIn}})); });
    for (int i = 0; i < 3; ++i) f(all, length.bind(first));
    for (const int64_t n : {1, 7, 15, 16, 127, 128, 1000, 2})
      EXPECT_EQ(f(all, length.bind(n)).to_vector<float>(),
                product(all[Slice(0, n)]).to_vector<float>())
          << n << " after " << first;
    EXPECT_GT(f.kept_bytes(), 0);
    EXPECT_LT(f.kept_bytes(), 2 * kIn * kOut * 4);
  }
}

TEST_F(KeptValues, TheFirstCallCompilesForAll) {
  const Tensor w = Tensor::ones({64, 48}).realize(), a = Tensor::ones({32, 64}).realize();
  Tensor seen = Tensor::zeros({}).realize();
  auto f = jit([&](const Tensor& in) {
    const Tensor y = in.matmul(w.relu() + 1).relu();
    seen += y.sum();
    return y;
  });
  f(a * 2);
  context.tracer().start();
  for (int i = 0; i < 3; ++i) f(a * 2);
  for (const Tracer::Total& span : context.tracer().totals())
    EXPECT_NE(span.name, "translate") << span.count << " kernels";
  context.tracer().stop();
  EXPECT_EQ(seen.item<float>(), 4 * 32 * 48 * 256);
}

TEST_F(KeptValues, AreComputedAgainAfterEveryKindOfWrite) {
  Tensor w = numbers({1, 2, 3, 4}).realize(), all = numbers({1, 2, 3, 4, 5, 6}).realize();
  auto f = jit([&](const Tensor& a) { return shifted(a, w) + all[Slice(1, 5)].contiguous() * 7; });
  auto train = jit([&](const Tensor& a) { w -= a; });
  for (int i = 0; i < 3; ++i) f(x), train(x);
  const std::vector<std::function<void()>> writes = {
      [&] { w.assign(numbers({4, 3, 2, 1})); },
      [&] { (w += 1).realize(); },
      [&] { w[Slice(1, 3)].assign(numbers({8, 9})); },
      [&] { all.index_put({Slice(0, 2)}, 5); },
      [&] { fill(w, {6, 6, 7, 7}); },
      [&] { train(x); },
      [&] { w.assign(x); },
      [&] {
        std::thread([&] {
          const ContextScope here(context);
          (w *= 2).realize();
        }).join();
      },
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    const int64_t computed = times_computed();
    writes[i]();
    const Tensor wanted = shifted(x, w) + all[Slice(1, 5)] * 7;
    for (int call = 0; call < 2; ++call)
      EXPECT_EQ(f(x).to_vector<int32_t>(), wanted.to_vector<int32_t>()) << "write " << i;
    EXPECT_EQ(times_computed(), computed + 1) << "write " << i;
  }
}

TEST_F(KeptValues, OfWhatIsWrittenBetweenAllCallsAreNotKept) {
  Tensor w = numbers({1, 2, 3, 4}).realize(), v = numbers({5, 6, 7, 8}).realize();
  auto f = jit([&](const Tensor& a) { return shifted(shifted(a, w), v); });
  for (int i = 0; i < 12; ++i) {
    w.assign(w + 1).realize();
    EXPECT_EQ(f(x).to_vector<int32_t>(), shifted(shifted(x, w), v).to_vector<int32_t>());
  }
  EXPECT_EQ(f.kept_bytes(), 16) << "v's";
  const int64_t computed = times_computed();
  for (int i = 0; i < 3; ++i) w.assign(w + 1), f(x);
  EXPECT_EQ(times_computed(), computed);
}

TEST_F(KeptValues, DependOnNothingThatACallGivesOrWrites) {
  Tensor w = numbers({1, 2, 3, 4}).realize(), count = numbers({0, 0, 0, 0}).realize();
  auto f = jit([&](const Tensor& a, const Tensor& b) {
    count += 1;
    return std::tuple(shifted(a, b), shifted(a, count), (w * 5).contiguous());
  });
  for (int i = 0; i < 5; ++i) {
    const auto [given, counted, result] = f(x, x + i);
    EXPECT_EQ(given.to_vector<int32_t>(), shifted(x, x + i).to_vector<int32_t>());
    EXPECT_EQ(counted.to_vector<int32_t>(), shifted(x, count).to_vector<int32_t>());
    EXPECT_EQ(result.to_vector<int32_t>(), (w * 5).to_vector<int32_t>());
    Tensor mine = result;
    (mine += 1).realize();  // results are the caller's
  }
  EXPECT_EQ(f.kept_bytes(), 0);
}

TEST_F(KeptValues, LargeOnesOfLittleAreNotKept) {
  Tensor w = numbers({1, 2, 3, 4}).realize();
  auto f = jit([&](const Tensor& a) {
    const Tensor large = (w * 3).contiguous().reshape({4, 1}).expand({4, 1 << 20}).contiguous();
    return (large * a[Slice(0, 1)]).sum(1);
  });
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(f(x).to_vector<int32_t>(), (w * (3 << 20)).to_vector<int32_t>());
  EXPECT_LE(f.kept_bytes(), 16);
}

class KeptValuesUnderACap : public KeptValues {
 protected:
  static constexpr int64_t kCap = 1 << 20;
  static Options capped() {
    Options options = Options::from_environment();
    options.memory_cap = kCap;
    return options;
  }
  KeptValuesUnderACap() : KeptValues(capped()) {}
  Allocator& memory() { return context.get<DeviceTable>().default_device().allocator(); }
};

TEST_F(KeptValuesUnderACap, MakeRoom) {
  constexpr int64_t kBytes = 128 << 10;
  Tensor w = Tensor::ones({kBytes / 4}).realize(), a = Tensor::ones({kBytes / 4}).realize();
  auto f = jit([&](const Tensor& b) { return b + (w * 3).flip({0}).contiguous(); });
  Tensor y;
  for (int i = 0; i < 4; ++i) y = f(a);
  EXPECT_EQ(f.kept_bytes(), kBytes);
  // Results that leave no room.
  std::vector<Tensor> results;
  while (memory().stats().live_bytes + kBytes <= kCap) results.push_back(f(a));
  for (int i = 0; i < 3; ++i) {
    results.pop_back();
    results.push_back(f(a));
    EXPECT_EQ(results.back()[0].item<float>(), 4);
  }
}

TEST_F(KeptValuesUnderACap, AreNotKeptWithoutRoom) {
  constexpr int64_t kBytes = 128 << 10;
  Tensor w = Tensor::ones({kBytes / 4}).realize(), a = Tensor::ones({kBytes / 4}).realize();
  auto f = jit([&](const Tensor& b) { return b + (w * 3).flip({0}).contiguous(); });
  for (int i = 0; i < 2; ++i) f(a);  // captured
  const int64_t room = kCap - memory().stats().live_bytes;
  const Tensor other = Tensor::ones({(room - 2 * kBytes - kBytes / 2) / 4}).realize();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(a)[5].item<float>(), 4);
}

/// Also what is computed of nothing goes when room is wanted.
TEST_F(KeptValuesUnderACap, TablesMakeRoom) {
  constexpr int64_t kBytes = 128 << 10;
  Tensor a = Tensor::ones({kBytes / 4}).realize();
  auto f = jit([&](const Tensor& b) {
    const Tensor table = Tensor::arange(kBytes / 4).cast(DType::F32).contiguous();
    return b + table.cumsum(0).contiguous();
  });
  std::vector<Tensor> results;
  for (int i = 0; i < 4; ++i) results.push_back(f(a));
  while (memory().stats().live_bytes + kBytes <= kCap) results.push_back(f(a));
  for (int i = 0; i < 3; ++i) {
    results.pop_back();
    results.push_back(f(a));
    EXPECT_EQ(results.back()[2].item<float>(), 4);
  }
}

TEST(KeptValuesOption, SwitchesThemOff) {
  Options options = Options::from_environment();
  options.keep_constants = false;
  Context context(options);
  const ContextScope scope(context);
  const Tensor x = numbers({1, 2}).realize();
  Tensor w = numbers({1, 2}).realize();
  auto f = jit([&](const Tensor& a) {
    return shifted(a, w) + (Tensor::arange(2).cast(DType::I32) * 2).contiguous();
  });
  for (int i = 0; i < 4; ++i) f(x);
  EXPECT_EQ(f.kept_bytes(), 0);
  EXPECT_EQ(f.kernels(), 3u);
}

// ---- random functions of weights that change now and then

class RandomKeptValues : public KeptValues {
 protected:
  using Tensors = std::vector<Tensor>;
  static constexpr int kWeights = 4;
  unsigned pick(unsigned n) { return static_cast<unsigned>(random() % n); }

  static Tensors weights() {
    Tensors out;
    for (int32_t i = 0; i < kWeights; ++i) out.push_back(numbers({i, 2 * i, 1 - i, 3}).realize());
    return out;
  }

  Tensor value(const Tensors& from) {
    const auto operand = [&] {
      const Tensor& t = from[pick(static_cast<unsigned>(from.size()))];
      return pick(3) == 0 ? t.flip({0}) : t;
    };
    const Tensor a = operand(), b = operand();
    switch (pick(5)) {
      case 0: return a * 3 + b;
      case 1: return (a - b * 5).contiguous();
      case 2: return a.maximum(b).cumsum(0);
      case 3: return (a.sum() + b * 7).contiguous();
      default: {
        Tensor joined = (a + 1).contiguous();
        joined.index_put({Slice(1, 3)}, b[Slice(0, 2)]);
        return joined;
      }
    }
  }

  /// The same for the same seed. The last weight may be written.
  Tensors function(unsigned seed, Tensors& w, const Tensor& a) {
    random.seed(seed);
    Tensors all = w;
    if (pick(2) == 0) all.push_back(a);
    for (unsigned i = 0, steps = 2 + pick(6); i < steps; ++i) {
      all.push_back(value(all));
      if (pick(3) == 0) all.back().realize();
      if (pick(8) == 0) w.back().assign(value(all));
    }
    all.push_back(all.back() + a);
    return {all.back(), all[pick(static_cast<unsigned>(all.size()))] * 2};
  }

  /// The same to both.
  void change(unsigned how, Tensors& w, size_t i, int32_t by) {
    Tensor& t = w[i];
    switch (how) {
      case 0: t += by; break;
      case 1: (t *= 3).realize(); break;
      case 2: t[Slice(1, 3)].assign(numbers({by, -by})); break;
      case 3: t.assign(w[(i + 1) % 3] * 2); break;
      case 4: fill(t, {by, 1, by, 2}); break;
      case 5: {
        std::thread([&] {
          const ContextScope here(context);
          (t -= by).realize();
        }).join();
        break;
      }
      default: t[Slice(2, 4)] += 1; break;
    }
  }

  void compare(unsigned seed) {
    Tensors plain = weights(), captured = weights();
    auto f = jit([&](const Tensor& a) { return function(seed, captured, a); });
    std::mt19937 changes(seed);
    for (int32_t call = 0; call < 12; ++call) {
      const Tensor a = x + call;
      const Tensors wanted = function(seed, plain, a), got = f(a);
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_EQ(got[i].to_vector<int32_t>(), wanted[i].to_vector<int32_t>())
            << "result " << i << " of call " << call;
      for (size_t i = 0; i < plain.size(); ++i)
        ASSERT_EQ(captured[i].to_vector<int32_t>(), plain[i].to_vector<int32_t>())
            << "weight " << i;
      if (changes() % 2 == 0) continue;
      const auto how = static_cast<unsigned>(changes() % 7);
      const size_t which = changes() % kWeights;
      for (Tensors* w : {&plain, &captured}) change(how, *w, which, call);
    }
  }

  std::mt19937 random;
};

TEST_F(RandomKeptValues, CapturedEqualsPlain) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    compare(seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(times_computed(), 100) << "some had constants";
}

TEST_F(RandomKeptValues, CapturedEqualsPlainSlow) {
  for (unsigned seed = 1000; seed < 11000; ++seed) {
    SCOPED_TRACE(seed);
    compare(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weft
