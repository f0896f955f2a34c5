// Products of packed weights with rows that are rounded to bytes: by integers, as documented.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/io/scratch_dir.h"
#include "tests/support/device_here.h"
#include "tests/support/packed_bytes.h"
#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/run/stats.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/packed.h"
#include "weft/tensor/packed_products.h"
#include "weft/weft.h"

namespace weft {
namespace {

bool multiplies_bf16(Context& context) {
  const Target& target = context.get<DeviceTable>().default_device().target();
  return std::ranges::any_of(target.matrix_units,
                             [](const MatrixUnit& unit) { return unit.left == DType::BF16; });
}

constexpr int64_t kColumns = 77, kSum = 768, kMostRows = 32;
class ByteProducts : public ::testing::TestWithParam<const char*> {
 protected:
  ByteProducts() : context_(options()), scope_(context_) {}

  static Options options() {
    Options o = Options::from_environment();
    const std::string_view which = GetParam();
    o.dev = testing::device_here(which == "interp" ? "CPU:INTERP" : "CPU");
    if (which != "interp") o.isa = which;
    o.threads = 2;
    return o;
  }

  struct Weights {
    Tensor packed, decoded;
    std::vector<float> plain;
  };
  /// Of random bytes, whose scales are finite.
  static Weights weights(Codec codec, int64_t columns = kColumns, int64_t sum = kSum) {
    const CodecRow& format = row(codec);
    std::vector<uint8_t> bytes = some_bytes(columns * sum / format.elements * format.bytes,
                                            static_cast<uint64_t>(codec) + 3);
    for (uint8_t& b : bytes) b &= 0xbf;
    Weights w{Tensor::from(bytes).realize(), {}, {}};
    w.decoded = decode(w.packed, codec, {columns, sum});
    w.plain = w.decoded.to_vector<float>();
    return w;
  }

  /// Whether product_with() multiplies many rows so.
  bool many_rows_by_bytes() {
    return fastest_factors() == Factors::Q8 && !multiplies_bf16(context_);
  }

  /// x rounded as documented.
  static std::vector<double> rounded(const std::vector<float>& x) {
    std::vector<double> out;
    for (size_t at = 0; at < x.size(); at += 32) {
      float largest = 0;
      for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[at + i]));
      const float scale = largest * (1 / 127.f), inverse = largest > 0 ? 127 / largest : 0;
      for (size_t i = 0; i < 32; ++i)
        out.push_back(double(std::nearbyint(x[at + i] * inverse)) * double(scale));
    }
    return out;
  }

  /// (rows, columns), and sums of absolute values.
  struct Wanted {
    std::vector<double> sum, size, bound;
  };
  static Wanted wanted(const std::vector<float>& x, const Weights& w, int64_t columns,
                       int64_t sum) {
    const std::vector<double> by = rounded(x);
    Wanted out;
    for (size_t at = 0; at < x.size(); at += static_cast<size_t>(sum))
      for (int64_t c = 0; c < columns; ++c) {
        double y = 0, size = 0, bound = 0, largest = 0, weight = 0;
        for (int64_t k = 0; k < sum; ++k) {
          const double v = w.plain[static_cast<size_t>(c * sum + k)];
          y += by[at + static_cast<size_t>(k)] * v;
          size += std::abs(by[at + static_cast<size_t>(k)] * v);
          largest = std::max(largest, double(std::abs(x[at + static_cast<size_t>(k)])));
          weight += std::abs(v);
          if (k % 32 == 31) bound += largest * weight, largest = weight = 0;
        }
        out.sum.push_back(y), out.size.push_back(size), out.bound.push_back(bound);
      }
    return out;
  }

  Context context_;
  ContextScope scope_;
};

std::vector<float> some_rows(int64_t rows, int64_t sum) {
  Tensor x = Tensor::randn({rows, sum});
  return (x * x * x).to_vector<float>();  // of various sizes
}

TEST_P(ByteProducts, AreThoseOfRoundedRows) {
  for (const CodecRow& format : kCodecs) {
    if (is_plain(format.codec)) continue;
    const Codec codec = format.codec;
    const Weights w = weights(codec);
    for (const int64_t rows : {1, 3, 16}) {
      SCOPED_TRACE(std::string(name(codec)) + ", " + std::to_string(rows));
      const std::vector<float> x = some_rows(rows, kSum);
      const auto y = product_with(Tensor::from(x, Dims({rows, kSum})), w.decoded, Factors::Q8)
                         .to_vector<float>();
      const Wanted by = wanted(x, w, kColumns, kSum);
      ASSERT_EQ(y.size(), by.sum.size());
      // Offsets of formats that have some are summed apart: of what they add up to.
      for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], by.sum[i], 4e-6 * by.bound[i]) << i;
    }
  }
}

/// Words of eight or sixteen rows of the weight side by side, pairs of blocks where they are no
/// words.
TEST_P(ByteProducts, OfInterleavedRows) {
  constexpr int64_t kWide = 48, kLong = 1024;
  for (const CodecRow& format : kCodecs) {
    const Codec codec = format.codec;
    if (is_plain(codec) || !may_be_interleaved(codec, {kWide, kLong}, 16)) continue;
    const Weights w = weights(codec, kWide, kLong);
    for (const int64_t side_by_side : {8, 16}) {
      const Tensor words = interleave_rows(w.packed, codec, {kWide, kLong}, side_by_side);
      const Tensor bytes = words.contiguous().unsqueeze(-1).bitcast(DType::U8).realize();
      const Tensor decoded = decode_interleaved(bytes, codec, {kWide, kLong});
      for (const int64_t rows : {1, 3, 40}) {
        SCOPED_TRACE(std::string(name(codec)) + ", " + std::to_string(rows));
        const std::vector<float> x = some_rows(rows, kLong);
        const auto product = product_by_bytes(Tensor::from(x, Dims({rows, kLong})), decoded);
        ASSERT_TRUE(product);
        const std::vector<float> y = product->to_vector<float>();
        const Wanted by = wanted(x, w, kWide, kLong);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], by.sum[i], 4e-6 * by.bound[i]) << i;
      }
    }
  }
}

/// So that the copies may come between two steps of an answer.
TEST_P(ByteProducts, InterleavedHaveTheSameBitsWhereTheyMayWait) {
  constexpr int64_t kWide = 128, kLong = 2048;
  for (const CodecRow& format : kCodecs) {
    const Codec codec = format.codec;
    const int64_t side_by_side = interleaved_rows(codec, 1);
    if (side_by_side == 0 || !interleaving_may_wait(codec)) continue;
    const Weights w = weights(codec, kWide, kLong);
    const Tensor words = interleave_rows(w.packed, codec, {kWide, kLong}, side_by_side);
    const Tensor bytes = words.contiguous().unsqueeze(-1).bitcast(DType::U8).realize();
    const Tensor interleaved = decode_interleaved(bytes, codec, {kWide, kLong});
    for (const int64_t rows : {1, 2, 6, 16, 32, 64}) {
      const Tensor x = Tensor::from(some_rows(rows, kLong), Dims({rows, kLong}));
      EXPECT_EQ(product_with(x, interleaved, Factors::Q8).to_vector<float>(),
                product_with(x, w.decoded, Factors::Q8).to_vector<float>())
          << name(codec) << ", " << rows;
    }
  }
}

/// Eight or sixteen at once, whose lanes are permuted: the buffer's distances are of bytes.
TEST_P(ByteProducts, WordsAmongBytes) {
  constexpr int64_t kRows = 48;
  for (const int64_t words : {8, 16})
    for (const int64_t apart : {4, 8, 12, 6, 16}) {
      const int64_t row = words * apart + 2;
      const std::vector<uint8_t> bytes = some_bytes(kRows * row, static_cast<uint64_t>(apart));
      const Tensor each = Tensor::from(bytes)
                              .realize()
                              .reshape({kRows, row})
                              .index({kEllipsis, Slice(2, std::nullopt)});
      const Tensor x = each.reshape({kRows, words, apart}).cast(DType::U32);
      Tensor word = x.index({kEllipsis, 0});
      for (int byte = 1; byte < 4; ++byte) word = word | (x.index({kEllipsis, byte}) << 8 * byte);
      const auto got = word.to_vector<uint32_t>();
      ASSERT_EQ(got.size(), static_cast<size_t>(kRows * words));
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t n = static_cast<size_t>(words), at = i / n * static_cast<size_t>(row) + 2;
        uint32_t want = 0;
        std::memcpy(&want, &bytes[at + i % n * static_cast<size_t>(apart)], 4);
        ASSERT_EQ(got[i], want) << words << " words " << apart << " apart, " << i;
      }
    }
}

/// Decoded by blocks of columns. Where the machine multiplies bf16, only this asks for them.
TEST_P(ByteProducts, OfManyRows) {
  constexpr int64_t kRows = 37;
  for (const CodecRow& format : kCodecs) {
    if (is_plain(format.codec)) continue;
    const Codec codec = format.codec;
    SCOPED_TRACE(name(codec));
    for (const int64_t columns : {int64_t{48}, int64_t{16}}) {
      const Weights w = weights(codec, columns);
      const std::vector<float> x = some_rows(kRows, kSum);
      const auto y = product_by_bytes(Tensor::from(x, Dims({1, kRows, kSum})), w.decoded);
      ASSERT_TRUE(y);
      ASSERT_EQ(y->shape(), Dims({1, kRows, columns}));
      const Wanted by = wanted(x, w, columns, kSum);
      const std::vector<float> got = y->to_vector<float>();
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], by.sum[i], 4e-6 * by.bound[i]) << i;
    }
  }
}

/// Where the machine multiplies them.
TEST_P(ByteProducts, ManyRowsAreProductsOfBf16) {
  if (!multiplies_bf16(context_)) GTEST_SKIP() << "many rows are multiplied as bytes or f32 here";
  constexpr int64_t kRows = 37;
  for (const CodecRow& format : kCodecs) {
    if (is_plain(format.codec)) continue;
    SCOPED_TRACE(name(format.codec));
    const Weights w = weights(format.codec);
    const Tensor x = Tensor::from(some_rows(kRows, kSum), Dims({kRows, kSum})).realize();
    const auto of = [&](Factors f) { return product_with(x, w.decoded, f).to_vector<float>(); };
    EXPECT_EQ(of(Factors::Q8), of(Factors::BF16));
  }
}

/// Several blocks, one after the other, in memory of one; columns that no vector divides have none.
TEST_P(ByteProducts, ManyRowsByBlocksOfColumns) {
  constexpr int64_t kRows = 40, kLong = 8192, kWide = 4 * 128;
  const Weights w = weights(Codec::Q4_K, kWide, kLong);
  auto product = jit([&](const Tensor& t) { return *product_by_bytes(t, w.decoded); });
  std::vector<float> x, y;
  for (int i = 0; i < 3; ++i) {
    x = some_rows(kRows, kLong);
    y = product(Tensor::from(x, Dims({kRows, kLong})).realize()).to_vector<float>();
  }
  const Wanted by = wanted(x, w, kWide, kLong);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], by.sum[i], 4e-6 * by.bound[i]) << i;
  EXPECT_LT(product.kept_bytes(), kWide * kLong / 4);  // no codes as bytes
  const Weights odd = weights(Codec::Q4_K);
  EXPECT_FALSE(product_by_bytes(Tensor::zeros({kRows, kSum}), odd.decoded));
}

/// A gate and what it multiplies, of a prompt: the memory of one, and of its blocks.
TEST_P(ByteProducts, OfManyRowsTogetherAreNeverWhole) {
  if (std::string_view(GetParam()) == "interp") GTEST_SKIP() << "takes long";
  if (!many_rows_by_bytes()) GTEST_SKIP() << "many rows are multiplied as bf16 or f32 here";
  constexpr int64_t kRows = 128, kLong = 2048, kWide = 8192;
  const Weights gate = weights(Codec::Q4_K, kWide, kLong), up = weights(Codec::Q6_K, kWide, kLong);
  const auto activated = [](const auto& y) { return (y[0] * 0.01f).sigmoid() * y[1]; };
  const Tensor x = Tensor::from(some_rows(kRows, kLong), Dims({kRows, kLong})).realize();
  const auto together = [&](const Tensor& t) {
    return products_with(t, {gate.decoded, up.decoded}, activated, Factors::Q8);
  };
  const auto apart = [&](const Tensor& t) {
    return activated(std::vector{product_with(t, gate.decoded, Factors::Q8),
                                 product_with(t, up.decoded, Factors::Q8)});
  };
  const auto memory_of = [&](Tensor y) {
    const int64_t before = run_stats(context_).memory_live;
    reset_run_stats(context_);
    y.realize();
    return run_stats(context_).memory_peak - before;
  };
  const Tensor one = together(x), two = apart(x);
  constexpr int64_t kProduct = kRows * kWide * 4;
  EXPECT_LT(memory_of(one), memory_of(two) - kProduct / 2);
  const auto wanted = two.to_vector<float>(), got = one.to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], 1e-5 * std::abs(wanted[i]) + 1e-4) << i;
}

/// Words of a block of columns once for all; then scales, minima and codes, and the product.
TEST_P(ByteProducts, ARoundOfManyRowsHasFewKernels) {
  constexpr int64_t kRows = 40, kLong = 8192, kRound = 64;
  const auto kernels = [&](int64_t rounds) {
    const Weights w = weights(Codec::Q4_K, rounds * kRound, kLong);
    const Tensor x = Tensor::zeros({kRows, kLong}).realize();
    const int64_t before = run_stats(context_).kernels;
    product_by_bytes(x, w.decoded)->realize();
    return run_stats(context_).kernels - before;
  };
  EXPECT_LE(kernels(3) - kernels(2), 5);
}

TEST_P(ByteProducts, StayWithinTheirBound) {
  for (const CodecRow& format : kCodecs) {
    if (is_plain(format.codec)) continue;
    const Codec codec = format.codec;
    SCOPED_TRACE(name(codec));
    const Weights w = weights(codec);
    const std::vector<float> x = some_rows(2, kSum);
    const auto y =
        product_with(Tensor::from(x, Dims({2, kSum})), w.decoded, Factors::Q8).to_vector<float>();
    const Wanted by = wanted(x, w, kColumns, kSum);
    for (size_t i = 0; i < y.size(); ++i) {
      double exact = 0;
      const size_t r = i / kColumns * kSum, c = i % kColumns * kSum;
      for (size_t k = 0; k < kSum; ++k) exact += double(x[r + k]) * double(w.plain[c + k]);
      ASSERT_NEAR(y[i], exact, (1 / 254. + 0x1p-18) * by.bound[i]) << i;
    }
  }
}

/// As tokens of a mixture are by their experts' matrices, which data choose.
TEST_P(ByteProducts, EachRowByAMatrixOfItsOwn) {
  for (const Codec codec : {Codec::Q4_0, Codec::Q8_0, Codec::Q4_K, Codec::Q6_K, Codec::MXFP4}) {
    SCOPED_TRACE(name(codec));
    constexpr int64_t kMatrices = 3;
    const Weights all = weights(codec, kMatrices * kColumns);
    const std::vector<int32_t> chosen = {2, 0, 2, 1};
    const std::vector<float> x = some_rows(4, kSum);
    const Tensor ids = Tensor::from(chosen).realize();
    const Tensor bytes = all.packed.reshape({kMatrices, -1}).index({ids});
    const Tensor each = decode(bytes, codec, {4, kColumns, kSum});
    const Tensor y = product_with(Tensor::from(x, {4, 1, kSum}), each, Factors::Q8);
    ASSERT_EQ(y.shape(), Dims({4, 1, kColumns}));
    const std::vector<float> got = y.to_vector<float>();
    const Wanted by = wanted(x, all, kMatrices * kColumns, kSum);
    for (size_t r = 0; r < chosen.size(); ++r)
      for (size_t c = 0; c < kColumns; ++c) {
        const size_t at = (r * kMatrices + static_cast<size_t>(chosen[r])) * kColumns + c;
        ASSERT_NEAR(got[r * kColumns + c], by.sum[at], 4e-6 * by.bound[at]) << r << ", " << c;
      }
  }
}

/// A text gives the same alone and among others: among few, where few are multiplied otherwise.
TEST_P(ByteProducts, ARowIsTheSameAmongOthers) {
  for (const Codec codec : {Codec::Q4_0, Codec::Q4_1, Codec::Q8_0, Codec::Q4_K, Codec::Q6_K,
                            Codec::IQ4_NL, Codec::IQ2_XXS}) {
    for (const auto& [columns, sum] : {std::pair{int64_t{256}, int64_t{2048}}, {kColumns, kSum}}) {
      const Weights w = weights(codec, columns, sum);
      const std::vector<float> all = some_rows(kMostRows, sum);
      const Tensor x = Tensor::from(all, Dims({kMostRows, sum})).realize();
      const auto product = [&](const Tensor& t) {
        return product_with(t, w.decoded, Factors::Q8).to_vector<float>();
      };
      std::vector<float> alone;
      for (int64_t i = 0; i < kMostRows; ++i) {
        const auto y = product(x[Slice(i, i + 1)].contiguous().realize());
        alone.insert(alone.end(), y.begin(), y.end());
      }
      for (const int64_t rows : {int64_t{2}, int64_t{3}, int64_t{4}, int64_t{6}, int64_t{7},
                                 int64_t{11}, int64_t{16}, kMostRows}) {
        // With AVX2 all of them are multiplied so.
        if (codec == Codec::Q6_K && rows > 6 && std::string_view(GetParam()) != "avx2") continue;
        SCOPED_TRACE(std::string(name(codec)) + ", " + std::to_string(rows));
        const auto y = product(x[Slice(0, rows)].contiguous().realize());
        ASSERT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0);
      }
    }
  }
}

TEST_P(ByteProducts, InACapturedFunction) {
  const Weights w = weights(Codec::Q4_K);
  auto product = jit([&](const Tensor& t) { return product_with(t, w.decoded, Factors::Q8) + 1; });
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> x = some_rows(2, kSum);
    const auto y = product(Tensor::from(x, Dims({1, 2, kSum})).realize()).to_vector<float>();
    const Wanted by = wanted(x, w, kColumns, kSum);
    for (size_t k = 0; k < y.size(); ++k)
      ASSERT_NEAR(y[k], by.sum[k] + 1, 4e-6 * by.bound[k] + 1e-6);
  }
}

/// A gate and what it multiplies, as feed-forward layers have them: registers hold the sums of one.
TEST_P(ByteProducts, TwoMatricesAreReadOneAfterTheOther) {
  constexpr int64_t kWide = 512, kLong = 2048;
  const auto weight = [&](Codec codec, uint32_t seed) {
    const int64_t blocks = kWide * kLong / row(codec).elements;
    return (Tensor::from(some_bytes(blocks * row(codec).bytes, seed)) & 0x3f).realize();
  };
  const Tensor x = Tensor::randn({1, kLong}).realize();
  for (const Codec codec : {Codec::Q4_K, Codec::Q6_K, Codec::Q8_0}) {
    SCOPED_TRACE(name(codec));
    const Tensor a = weight(codec, 3), b = weight(codec, 5);
    const auto product = [&](const Tensor& packed) {
      return product_with(x, decode(packed, codec, {kWide, kLong}), Factors::Q8);
    };
    const auto kernels = [&](const Tensor& y) {
      const int64_t before = run_stats(context_).kernels;
      y.realize();
      return run_stats(context_).kernels - before;
    };
    const int64_t of_one = kernels(product(a));
    const Tensor both = product(a).silu() * product(b);
    EXPECT_EQ(kernels(both), of_one + 1);
    EXPECT_EQ(both.to_vector<float>(),
              (product(a).contiguous().silu() * product(b).contiguous()).to_vector<float>());
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ByteProducts, ::testing::Values("", "avx2", "interp"),
                         [](const auto& i) {
                           return std::string(i.param).empty() ? std::string("All")
                                                               : std::string(i.param);
                         });

TEST(ByteProductsOfRows, OfZerosAndOfNothingFinite) {
  const Tensor packed = Tensor::from(some_bytes(34 * 8, 5)) & 0x3f;
  const Tensor w = decode(packed.realize(), Codec::Q8_0, {4, 64});
  EXPECT_EQ(product_with(Tensor::zeros({1, 64}), w, Factors::Q8).abs().max().item<float>(), 0);
  const Tensor infinite = Tensor::full({1, 64}, INFINITY);
  EXPECT_TRUE(std::isnan(product_with(infinite, w, Factors::Q8).sum().item<float>()));
}

/// Weights that are not packed.
TEST(ByteProductsOfRows, OthersAreNotRounded) {
  const Tensor packed = (Tensor::from(some_bytes(4 * 18 * 2, 5)) & 0x3f).realize();
  const Tensor coded = decode(packed, Codec::Q4_0, {4, 64}), plain = Tensor::randn({4, 64});
  const auto expect_as = [](Factors factors, const Tensor& weight, int64_t rows) {
    const Tensor x = Tensor::randn({rows, 64}).realize();
    EXPECT_EQ(product_with(x, weight, Factors::Q8).to_vector<float>(),
              product_with(x, weight, factors).to_vector<float>());
  };
  expect_as(Factors::F32, plain, 16);
  // In f32, where bf16 would take no less time.
  Context& context = Context::current();
  expect_as(multiplies_bf16(context) ? Factors::BF16 : Factors::F32, coded, 33);
}

TEST(ByteProductsOfRows, SizesThatDoNotFit) {
  const Tensor packed = Tensor::from(some_bytes(34 * 8, 5)).realize();
  const Tensor w = decode(packed, Codec::Q8_0, {4, 64});
  EXPECT_ERROR(product_with(Tensor::zeros({1, 32}), w, Factors::Q8), "inner dimensions differ");
  EXPECT_EQ(product_with(Tensor::zeros({64}), w, Factors::Q8).shape(), Dims({4}));
}

TEST(ByteProductsOfRows, NamesOfFactors) {
  EXPECT_EQ(factors_named("q8"), Factors::Q8);
  EXPECT_EQ(factors_named("auto"), std::nullopt);
  EXPECT_ERROR(factors_named("int8"), "there are no factors 'int8': f32, bf16, q8, or auto");
}

TEST(ByteProductsOfRows, GradientsArePassedOnAsThoughNothingWereRounded) {
  const Tensor packed = Tensor::from(some_bytes(34 * 8, 5)) & 0x3f;
  const Tensor w = decode(packed.realize(), Codec::Q8_0, {4, 64});
  const Tensor x = Tensor::randn({2, 64}).realize();
  const auto slope = [&](Factors factors) {
    return product_with(x, w, factors).sum().gradient({x})[0].to_vector<float>();
  };
  EXPECT_EQ(slope(Factors::Q8), slope(Factors::F32));
}

TEST(ByteProductsOfRows, GradientsOfProductsTogetherAreThoseOfEach) {
  const Tensor packed = (Tensor::from(some_bytes(34 * 64 * 2, 5)) & 0x3f).realize();
  const Tensor w = decode(packed, Codec::Q8_0, {64, 64});
  const Tensor x = Tensor::randn({40, 64}).realize();
  const auto product = [](const std::vector<Tensor>& y) { return y[0].sigmoid() * y[1]; };
  const auto slope = [&](const Tensor& y) { return y.sum().gradient({x})[0].to_vector<float>(); };
  const auto each = [&] { return product_with(x, w, Factors::Q8); };
  const auto got = slope(products_with(x, {w, w}, product, Factors::Q8)),
             wanted = slope(product({each(), each()}));
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << i;
}

}  // namespace
}  // namespace weft
