// Products with packed weights: the numbers of decoding first, without memory for what is decoded.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/support/compiler/isa_levels.h"
#include "tests/support/device_here.h"
#include "tests/support/packed_bytes.h"
#include "weft/run/stats.h"
#include "weft/target/machine.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/packed.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr int64_t kColumns = 1100, kSum = 1024;  // 17 blocks of 64 columns, and some

Options options_of(std::string_view isa) {
  Options options = Options::from_environment();
  options.dev = testing::device_here("CPU");
  options.isa = isa;
  options.threads = 2;
  return options;
}

class PackedProducts : public ::testing::TestWithParam<std::string> {
 protected:
  PackedProducts() : context_(options_of(GetParam())), scope_(context_) {}

  /// Of random bytes, whose scales are finite.
  struct Weights {
    Codec codec;
    Tensor packed, plain;
    Tensor decoded() const { return decode(packed, codec, {kColumns, kSum}); }
  };
  static Weights weights(Codec codec) {
    std::vector<uint8_t> bytes =
        some_bytes(kColumns * kSum / row(codec).elements * row(codec).bytes, 3);
    for (uint8_t& b : bytes) b &= 0xbf;
    Weights w{codec, Tensor::from(bytes).realize(), {}};
    w.plain = Tensor::from(w.decoded().to_vector<float>(), Dims({kColumns, kSum})).realize();
    return w;
  }

  /// Whatever the order of the sum, it is off by less than this.
  static void expect_equal(const Tensor& got, const Tensor& x, const Weights& w) {
    const auto values = got.to_vector<float>(), wanted = x.matmul(w.plain.T()).to_vector<float>();
    const auto bound = (x.abs().matmul(w.plain.abs().T()) * 1e-5f).to_vector<float>();
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], wanted[i], bound[i]) << i / kColumns << ", " << i % kColumns;
  }

  Context context_;
  ContextScope scope_;
};

TEST_P(PackedProducts, AnyNumberOfRows) {
  for (const Codec codec : {Codec::Q4_0, Codec::Q6_K, Codec::IQ3_S}) {
    const Weights w = weights(codec);
    for (const int64_t rows : {1, 4, 6, 7, 16, 33, 150}) {
      SCOPED_TRACE(std::string(name(codec)) + ", " + std::to_string(rows));
      const Tensor x = Tensor::randn({rows, kSum}).realize();
      expect_equal(x.matmul(w.decoded().T()), x, w);
    }
  }
}

TEST_P(PackedProducts, BatchesAndWhatFollows) {
  const Weights w = weights(Codec::Q8_0);
  const Tensor x = Tensor::randn({3, 5, kSum}).realize(), b = Tensor::randn({kColumns}).realize();
  const Tensor y = (x.matmul(w.decoded().T()) + b) - b;
  expect_equal(x.matmul(w.decoded().T()).reshape({15, kColumns}), x.reshape({15, kSum}), w);
  EXPECT_EQ(y.shape(), Dims({3, 5, kColumns}));
  const Tensor twice = (x * 2.f).matmul(w.decoded().T()) * 0.5f;
  expect_equal(twice.reshape({15, kColumns}), x.reshape({15, kSum}), w);
}

TEST_P(PackedProducts, RowsAsManyAsAVariableSays) {
  const Weights w = weights(Codec::Q4_K);
  const Tensor all = Tensor::randn({200, kSum}).realize();
  const Variable rows("rows", 1, 200);
  auto product = jit([&](const Tensor& x, const Dim& n) {
    return x.shrink({{0, n}, {0, kSum}}).matmul(w.decoded().T());
  });
  for (const int64_t n : {200, 200, 1, 5, 37, 128}) {
    SCOPED_TRACE(n);
    const Tensor x = all.shrink({{0, n}, {0, kSum}}).contiguous().realize();
    expect_equal(product(all, rows.bind(n)).shrink({{0, n}, {0, kColumns}}), x, w);
  }
}

/// What is multiplied is rounded, and nothing else: the documented bound is that of two factors.
TEST_P(PackedProducts, FactorsOfHalfAsManyBits) {
  for (const Codec codec : {Codec::Q8_0, Codec::Q4_K, Codec::IQ4_XS, Codec::MXFP4}) {
    const Weights w = weights(codec);
    Weights rounded = w;
    rounded.plain = w.plain.cast(DType::BF16).cast(DType::F32).realize();
    for (const int64_t rows : {1, 5, 8, 16, 33, 150}) {
      SCOPED_TRACE(std::string(name(codec)) + ", " + std::to_string(rows));
      const Tensor x = Tensor::randn({2, rows, kSum}).realize();
      const Tensor flat = x.reshape({2 * rows, kSum});
      const Tensor y = product_with(x, w.decoded(), Factors::BF16).realize();
      EXPECT_EQ(y.shape(), Dims({2, rows, kColumns}));
      const Tensor got = y.reshape({2 * rows, kColumns});
      if (rows == 1)  // too few to round them
        expect_equal(got, flat, w);
      else
        expect_equal(got, flat.cast(DType::BF16).cast(DType::F32), rounded);
      const Tensor off = (got - flat.matmul(w.plain.T())).abs();
      const Tensor bound = flat.abs().matmul(w.plain.abs().T()) * (0x1p-7f + 0x1p-15f);
      EXPECT_EQ((off > bound).sum().item<int64_t>(), 0);
    }
  }
}

/// Of one array of several: what counts is what is read of it.
TEST_P(PackedProducts, OneOfSeveralMatrices) {
  const Weights w = weights(Codec::Q4_0);
  const Tensor all = Tensor::stack({w.packed ^ 3, w.packed, w.packed ^ 5, w.packed, w.packed ^ 6});
  const Tensor packed = all.contiguous().realize(), x = Tensor::randn({16, kSum}).realize();
  const Tensor one = decode(packed[3], Codec::Q4_0, {kColumns, kSum});
  expect_equal(product_with(x, one), x, w);
  expect_equal(product_with(x, one, Factors::BF16), x.cast(DType::BF16).cast(DType::F32),
               {w.codec, w.packed, w.plain.cast(DType::BF16).cast(DType::F32).realize()});
}

/// No copy of the decoded matrix is made, nor kept by a captured function: of formats whose codes
/// and scales are read from one block of bytes as well.
TEST_P(PackedProducts, MemoryIsThatOfBlocks) {
  constexpr int64_t kWide = 8192, kWhole = kWide * kSum * 4;
  for (const Codec codec : {Codec::Q4_0, Codec::Q4_K, Codec::Q6_K}) {
    const int64_t blocks = kWide * kSum / row(codec).elements;
    const Tensor packed = Tensor::from(some_bytes(blocks * row(codec).bytes, 3)).realize();
    for (const int64_t rows : {4, 6, 16, 150}) {
      SCOPED_TRACE(std::string(name(codec)) + ", " + std::to_string(rows));
      const Tensor x = Tensor::randn({rows, kSum}).realize();
      for (const Factors factors : {Factors::F32, Factors::BF16}) {
        auto product = jit([&](const Tensor& t) {
          return product_with(t, decode(packed, codec, {kWide, kSum}), factors);
        });
        reset_run_stats(context_);
        const int64_t before = run_stats(context_).memory_live;
        for (int i = 0; i < 3; ++i) product(x).realize();
        const int64_t results = 4 * rows * kWide * 4;  // one may be kept, and stacks of blocks
        EXPECT_LT(run_stats(context_).memory_peak - before, kWhole / 4 + results);
      }
    }
  }
}

/// Nor of weights of 16 bits, which would take twice their memory.
TEST_P(PackedProducts, HalvesAreNotKeptAsFloats) {
  const int64_t wide = 8 * Machine::of(context_).l2().bytes / kSum / 4 + 40,
                whole = wide * kSum * 4;
  const Tensor w = Tensor::randn({wide, kSum}).realize(), x = Tensor::randn({16, kSum}).realize();
  for (const auto& [dtype, factors] : {std::pair{DType::F16, Factors::F32},
                                       {DType::F16, Factors::BF16},
                                       {DType::BF16, Factors::BF16}}) {
    SCOPED_TRACE(std::string(name(dtype)) + (factors == Factors::F32 ? ", f32" : ", bf16"));
    const Tensor half = w.cast(dtype).realize();
    auto product = jit([&, by = factors](const Tensor& t) { return product_with(t, half, by); });
    const int64_t before = run_stats(context_).memory_live;
    for (int i = 0; i < 3; ++i) product(x).realize();
    EXPECT_LT(run_stats(context_).memory_live - before, whole / 4);
    const auto rounded = [by = factors](const Tensor& t) {
      return (by == Factors::F32 ? t : t.cast(DType::BF16)).cast(DType::F32);
    };
    const Tensor wanted = rounded(x).matmul(rounded(half).T());
    const Tensor bound = rounded(x).abs().matmul(rounded(half).abs().T()) * 1e-5f;
    EXPECT_EQ(((product(x) - wanted).abs() > bound).sum().item<int64_t>(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, PackedProducts, ::testing::ValuesIn(testing::isa_levels_and_all()),
                         [](const auto& i) { return testing::name_of_isa_level(i.param); });

}  // namespace
}  // namespace weft
