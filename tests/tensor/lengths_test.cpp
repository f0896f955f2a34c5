// Functions captured for any length give what the same give for one, and need no more kernels for
// another.
#include "tests/support/device_here.h"
#include "tests/tensor/near.h"
#include "weft/base/spans.h"
#include "weft/run/stats.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/reductions.h"

namespace weft {
namespace {

AttentionOptions causal() {
  AttentionOptions o;
  o.causal = true;
  return o;
}

class Lengths : public ::testing::Test {
 protected:
  Lengths() : context_(options()), scope_(context_) {}

  using Values = std::vector<Tensor>;
  /// Of tensors as long as they may be, and a length.
  using Function = std::function<Tensor(const Values&, const Dim&)>;

  void check(const Function& f, const Values& values, int64_t longest,
             const std::vector<int64_t>& lengths, double tolerance) {
    const Variable length("n", 1, longest);
    auto any = jit([&](const Values& v, const Dim& n) { return f(v, n); }, "any length");
    for (int i = 0; i < 2; ++i) any(values, length.bind(longest));
    for (const int64_t n : lengths) {
      SCOPED_TRACE(n);
      const auto got = any(values, length.bind(n)).to_vector<double>();
      const auto wanted = f(values, n).to_vector<double>();
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], wanted[i], tolerance * (1 + std::fabs(wanted[i]))) << i;
    }
  }

  static Tensor rows(const Tensor& x, const Dim& n) {
    std::vector<DimPair> parts{{0, n}};
    for (size_t a = 1; a < x.shape().size(); ++a) parts.push_back({0, x.shape()[a]});
    return x.shrink(parts);
  }
  static Tensor columns(const Tensor& x, const Dim& n) {
    return rows(x.transpose(0, 1), n).transpose(0, 1);
  }
  Context& context() { return context_; }
  int64_t launched() { return context_.tracer().value(Counter::Kernels); }

 private:
  static Options options() {
    Options options = Options::from_environment();
    options.dev = testing::device_here("CPU");
    return options;
  }
  Context context_;
  ContextScope scope_;
};

TEST_F(Lengths, ProductsOverALength) {
  const Values values{sample({96, 1000}, 1, DType::F32), sample({1000, 512}, 2, DType::F32)};
  check([](const Values& v, const Dim& n) { return columns(v[0], n).matmul(rows(v[1], n)); },
        values, 1000, {1, 7, 8, 64, 333, 1000}, 1e-4);
  const Values more{sample({512, 1000}, 3, DType::F32), values[1]};
  check([](const Values& v, const Dim& n) { return columns(v[0], n).matmul(rows(v[1], n)); }, more,
        1000, {1, 100, 999}, 1e-4);
}

TEST_F(Lengths, TwoLengthsOfOneOperand) {
  const Values values{sample({512, 1000}, 1, DType::F32), sample({1000, 512}, 2, DType::F32)};
  const auto f = [](const Values& v, const Dim& n) {
    const Dim more = n + 8;
    return columns(v[0], n).matmul(rows(v[1], n)) +
           columns(v[0], more).matmul(rows(v[1], more)) * 0.5;
  };
  check(f, values, 992, {1, 64, 500, 992}, 1e-4);
}

TEST_F(Lengths, SumsAndSoftmax) {
  const std::vector<int64_t> lengths = {1, 2, 15, 16, 17, 64, 299, 300};
  const Values values{sample({300, 96}, 1, DType::F32), sample({96, 300}, 2, DType::F32)};
  check([](const Values& v, const Dim& n) { return rows(v[0], n).sum(0); }, values, 300, lengths,
        1e-5);
  const auto weighted = [](const Values& v, const Dim& n) {
    return columns(v[1], n).softmax().matmul(rows(v[0], n));
  };
  check(weighted, values, 300, lengths, 1e-5);
  check([](const Values& v, const Dim& n) { return columns(v[1], n).max(1); }, values, 300, lengths,
        0);
}

// ---- short ones, which have kernels of their own

class ShortLengths : public Lengths {
 protected:
  static std::vector<int64_t> up_to_70() {
    std::vector<int64_t> all;
    for (int64_t n = 1; n <= 70; ++n) all.push_back(n);
    for (const int64_t n : {127, 128, 129, 333, 1000}) all.push_back(n);
    return all;
  }
  /// What is not there is 0, outside of what is captured.
  static Tensor whole(const Tensor& x, const Dims& like) {
    std::vector<DimPair> pairs;
    for (size_t a = 0; a < like.size(); ++a)
      pairs.push_back({0, like[a].is_static() ? Dim(0) : Dim(1000) - x.dims()[a]});
    return x.pad(pairs);
  }
  void check_whole(const Function& f, const Values& values, double tolerance) {
    const Variable length("n", 1, 1000);
    auto any = jit([&](const Values& v, const Dim& n) { return f(v, n); }, "any length");
    for (int i = 0; i < 2; ++i) any(values, length.bind(1000));
    for (const int64_t n : up_to_70()) {
      const Tensor got = any(values, length.bind(n));
      expect_near(whole(got, got.dims()), whole(f(values, n), got.dims()), std::to_string(n),
                  tolerance);
    }
  }
  static Tensor middle(const Tensor& x, const Dim& n) {
    return x.shrink({{0, x.shape()[0]}, {0, n}, {0, x.shape()[2]}});
  }
  static Tensor product(const Values& v, const Dim& n) { return rows(v[0], n).matmul(v[1]); }
  static Values operands() {
    return {sample({1000, 96}, 1, DType::F32), sample({96, 80}, 2, DType::F32)};
  }
};

TEST_F(ShortLengths, RowsByAMatrixSlow) { check_whole(product, operands(), 1e-5); }

TEST_F(ShortLengths, ProductsOverALengthSlow) {
  const Values values{sample({1000, 48}, 1, DType::F32), sample({1000, 32}, 2, DType::F32)};
  const auto f = [](const Values& v, const Dim& n) {
    return rows(v[0], n).transpose(0, 1).matmul(rows(v[1], n));
  };
  check_whole(f, values, 1e-5);
}

TEST_F(ShortLengths, SoftmaxSlow) {
  const Values values{sample({40, 1000}, 1, DType::F32)};
  check_whole([](const Values& v, const Dim& n) { return columns(v[0], n).softmax(); }, values,
              1e-5);
}

TEST_F(ShortLengths, FoldsSlow) {
  const Values values{sample({40, 1000}, 1, DType::F32)};
  const auto f = [](const Values& v, const Dim& n) {
    const Tensor x = columns(v[0], n);
    return x.sum(1) + x.max(1) * x.min(1) + (x * 0.01 + 1).prod(1) +
           (x > -2).all(1).cast(DType::F32) + (x > 1).any(1).cast(DType::F32);
  };
  check_whole(f, values, 1e-4);
}

TEST_F(ShortLengths, AttentionSlow) {
  const Values values{sample({2, 1000, 32}, 1, DType::F32), sample({2, 1000, 32}, 2, DType::F32),
                      sample({2, 1000, 32}, 3, DType::F32)};
  const auto f = [](const Values& v, const Dim& n) {
    const Tensor q = middle(v[0], n), k = middle(v[1], n);
    return (q.matmul(k.transpose(-2, -1)) * 0.2).softmax().matmul(middle(v[2], n));
  };
  check_whole(f, values, 1e-5);
}

TEST_F(ShortLengths, QueriesToHalvesSlow) {
  const Values values{sample({4, 1, 32}, 1, DType::F16), sample({2, 1000, 32}, 2, DType::F16),
                      sample({2, 1000, 32}, 3, DType::F16)};
  const auto f = [](const Values& v, const Dim& n) {
    AttentionOptions options;
    options.grouped_queries = true;
    return v[0].scaled_dot_product_attention(middle(v[1], n), middle(v[2], n), options);
  };
  check_whole(f, values, 2e-3);
}

/// Everything is compiled when the function is captured.
TEST_F(ShortLengths, OneCaptureServesAll) {
  const Values values = operands();
  const Variable length("n", 1, 1000);
  auto any = jit([&](const Values& v, const Dim& n) { return product(v, n); }, "any length");
  for (int i = 0; i < 3; ++i) any(values, length.bind(1000)).realize();
  const RunStats before = run_stats(context());
  for (const int64_t n : {1, 15, 16, 127, 128, 1000, 5}) any(values, length.bind(n)).realize();
  const RunStats after = run_stats(context());
  EXPECT_EQ(after.schedules.misses, before.schedules.misses);
  EXPECT_EQ(after.kernel_cache.misses, before.kernel_cache.misses);
}

TEST_F(ShortLengths, EqualBitsForAnyNumberOfThreads) {
  const auto results = [](int threads) {
    Options options = Options::from_environment();
    options.dev = testing::device_here("CPU");
    options.threads = threads;
    Context context(options);
    const ContextScope scope(context);
    const Values values = operands();
    const Variable length("n", 1, 1000);
    auto any = jit([&](const Values& v, const Dim& n) { return product(v, n).softmax(); }, "any");
    for (int i = 0; i < 2; ++i) any(values, length.bind(1000));
    std::vector<std::vector<double>> all;
    const auto values_of = [](const Tensor& x) { return whole(x, x.dims()).to_vector<double>(); };
    for (const int64_t n : {1, 7, 15, 16, 64, 127, 128, 333})
      all.push_back(values_of(any(values, length.bind(n))));
    return all;
  };
  const auto one = results(1);
  EXPECT_EQ(one, results(2));
  EXPECT_EQ(one, results(8));
}

/// What is updated in place, and read again by the same call.
TEST_F(ShortLengths, StateIsUpdated) {
  Tensor sums = Tensor::zeros({300, 24}).realize();
  const Values values{sample({300, 24}, 1, DType::F32)};
  const Variable length("n", 1, 300);
  const auto add = [&](const Values& v, const Dim& n) {
    Tensor part = rows(sums, n);
    part.assign(part + rows(v[0], n));
    return rows(sums, n).sum(0);
  };
  auto any = jit([&](const Values& v, const Dim& n) { return add(v, n); }, "adds");
  std::vector<double> wanted(300 * 24);
  const std::vector<double> x = values[0].to_vector<double>();
  for (const int64_t n : {300, 300, 7, 64, 15, 16, 300, 1, 128, 7}) {
    for (size_t i = 0; i < static_cast<size_t>(n) * 24; ++i) wanted[i] += x[i];
    const std::vector<double> got = any(values, length.bind(n)).to_vector<double>();
    for (size_t c = 0; c < 24; ++c) {
      double sum = 0;
      for (size_t r = 0; r < static_cast<size_t>(n); ++r) sum += wanted[24 * r + c];
      ASSERT_NEAR(got[c], sum, 1e-4 * (1 + std::fabs(sum))) << n;
    }
  }
  const std::vector<double> got = sums.to_vector<double>();
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-4) << i;
}

// ---- attention: of more scores than the cache holds, block by block

class LengthsOfAttention : public Lengths {
 protected:
  static constexpr int64_t kLongest = 900;
  static Tensor middle(const Tensor& x, const Dim& n) {
    return x.shrink({{0, x.shape()[0]}, {0, n}, {0, x.shape()[2]}});
  }
  static Values values() {
    return {sample({3, kLongest, 16}, 1, DType::F32), sample({3, kLongest, 16}, 2, DType::F32),
            sample({3, kLongest, 20}, 3, DType::F32)};
  }
  static Tensor weighted(const Tensor& scores, const Tensor& v) {
    return (scores * 0.25).softmax().matmul(v);
  }
  static Tensor with_all(const Values& v, const Dim& n) {
    const Tensor q = middle(v[0], n), k = middle(v[1], n);
    return whole(weighted(q.matmul(k.transpose(-2, -1)), middle(v[2], n)), n);
  }
  /// What is not there is 0, so that shapes are numbers.
  static Tensor whole(const Tensor& x, const Dim& n) {
    return x.pad({{0, 0}, {0, Dim(kLongest) - n}, {0, 0}});
  }
};

TEST_F(LengthsOfAttention, AllKeys) {
  check(with_all, values(), kLongest, {1, 15, 16, 17, 63, 64, 100, 333, 899, 900}, 1e-5);
}

TEST_F(LengthsOfAttention, MemoryGrowsWithTheLength) {
  const Variable length("n", 1, kLongest);
  auto any = jit([&](const Values& v, const Dim& n) { return with_all(v, n); }, "any length");
  const Values v = values();
  for (int i = 0; i < 3; ++i) any(v, length.bind(kLongest));
  // Inputs, results and what blocks need: less than the scores of one head.
  EXPECT_LT(any.planned_bytes(), kLongest * kLongest * 4);
}

/// Blocks that begin behind the length are not launched.
TEST_F(LengthsOfAttention, ShortOnesLaunchFewKernels) {
  const Variable length("n", 1, kLongest);
  auto any = jit([&](const Values& v, const Dim& n) { return with_all(v, n); }, "any length");
  const Values v = values();
  for (int i = 0; i < 3; ++i) any(v, length.bind(kLongest)).realize();
  const auto launched_for = [&](int64_t n) {
    const int64_t before = launched();
    any(v, length.bind(n)).realize();
    return launched() - before;
  };
  const int64_t all = launched_for(kLongest), few = launched_for(7);
  EXPECT_GT(few, 0);
  EXPECT_LT(2 * few, all);
  EXPECT_EQ(launched_for(kLongest), all);
}

TEST_F(LengthsOfAttention, CausalTriangles) {
  const auto f = [](const Values& v, const Dim& n) {
    const Tensor q = middle(v[0], n), k = middle(v[1], n);
    return whole(q.scaled_dot_product_attention(k, middle(v[2], n), causal()), n);
  };
  check(f, values(), kLongest, {1, 16, 63, 64, 333, 900}, 1e-5);
}

TEST_F(LengthsOfAttention, KeysAlone) {
  const auto f = [](const Values& v, const Dim& n) {
    return weighted(v[0].matmul(middle(v[1], n).transpose(-2, -1)), middle(v[2], n));
  };
  check(f, values(), kLongest, {1, 16, 100, 900}, 1e-5);
}

/// What is read is made by kernels, and has as many rows as there are.
TEST_F(LengthsOfAttention, OfWhatIsComputed) {
  const auto f = [](const Values& v, const Dim& n) {
    const Tensor q = middle(v[0], n).cumsum(2), k = middle(v[1], n).cumsum(2);
    return whole(weighted(q.matmul(k.transpose(-2, -1)), middle(v[2], n).cumsum(2)), n);
  };
  check(f, values(), kLongest, {1, 16, 100, 899, 900}, 1e-4);
}

TEST_F(LengthsOfAttention, OneAfterTheOther) {
  const auto f = [](const Values& v, const Dim& n) {
    const Tensor q = middle(v[0], n), k = middle(v[1], n).transpose(-2, -1), x = middle(v[2], n);
    const Tensor first = weighted(q.matmul(k), q);
    return whole(weighted(first.matmul(k), x) + weighted(q.matmul(k) * 2, x), n);
  };
  check(f, values(), kLongest, {1, 64, 500, 900}, 1e-4);
}

}  // namespace
}  // namespace weft
