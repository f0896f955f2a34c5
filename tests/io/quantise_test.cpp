// Quantising: bytes equal to the PyPI package gguf's where it is deterministic, errors below
// llama.cpp's published limits elsewhere.
#include "weft/io/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/io/scratch_dir.h"
#include "tests/support/packed_bytes.h"
#include "weft/io/gguf_model.h"
#include "weft/io/tensors.h"
#include "weft/tensor/packed.h"
#include "weft/weft.h"

namespace weft {
namespace {

struct Known {
  Codec codec;
  uint64_t hash;  ///< of the bytes that gguf 0.19.0's quantize() gives
};
constexpr Known kKnown[] = {
    {Codec::F16, 0x9e1749e1bebcf208},   {Codec::Q4_0, 0x12f162e3e2dbcf5c},
    {Codec::Q4_1, 0x2da637727601d9cd},  {Codec::Q5_0, 0x9b3ffd55628e53ed},
    {Codec::Q5_1, 0xcd08f24c23274073},  {Codec::Q8_0, 0xbae1309ea6b2c533},
    {Codec::BF16, 0xcc8976d36925f93b},  {Codec::TQ1_0, 0x36a2e9764e15cea7},
    {Codec::TQ2_0, 0x4611cdd147366130}, {Codec::MXFP4, 0x671ff9b1a66cbc9e},
};

/// What is searched for is ours to choose: of the same numbers always the same bytes.
constexpr Known kSearched[] = {
    {Codec::Q2_K, 0x2abfc7ff10f27a5f},    {Codec::Q3_K, 0x4fa33bede5bc0504},
    {Codec::Q4_K, 0xbc3c750f1d802a2c},    {Codec::Q5_K, 0x61cd0f31bc3e1dec},
    {Codec::Q6_K, 0xe7c64012dc49ce84},    {Codec::IQ1_S, 0xa7ffc37361926793},
    {Codec::IQ1_M, 0xf7d3a40e484381af},   {Codec::IQ2_XXS, 0x4f0b917f7b9be5ad},
    {Codec::IQ2_XS, 0xc842333a7f73bfa6},  {Codec::IQ2_S, 0xac4c233ba22508c7},
    {Codec::IQ3_XXS, 0x44c4133590a889c8}, {Codec::IQ3_S, 0x0d291a0a920bb437},
    {Codec::IQ4_NL, 0x453047cc2f64ba24},  {Codec::IQ4_XS, 0x65c9711c4c2269e1},
    {Codec::NVFP4, 0x13bd7ceff5ddfc14},
};

/// 16 rows of 1024 numbers in [-0.5, 0.5) times 2^-8 to 2^7; one of zeros, one of 64ths.
std::vector<float> some_rows(Codec codec) {
  Sequence sequence(static_cast<uint64_t>(codec));
  std::vector<float> x(16 * 1024);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<int>(i / 1024);
    x[i] = std::ldexp(static_cast<float>(sequence.next() >> 40) * 0x1p-24f - 0.5f, row - 8);
    if (row == 3) x[i] = 0;
    if (row == 5) x[i] = std::nearbyint(x[i] * 64) / 64;
  }
  return x;
}

TEST(Quantise, BytesAreEqual) {
  const auto check = [](const Known& k) {
    const std::vector<std::byte> bytes =
        quantise(some_rows(k.codec), k.codec, std::vector<int64_t>{16, 1024});
    EXPECT_EQ(fnv(bytes), k.hash) << name(k.codec);
  };
  for (const Known& k : kKnown) check(k);
  for (const Known& k : kSearched) check(k);
}

std::vector<float> there_and_back(const std::vector<float>& x, Codec codec) {
  const auto count = static_cast<int64_t>(x.size());
  const std::vector<std::byte> bytes = quantise(x, codec, std::vector<int64_t>{count});
  const Tensor packed = Tensor::from_bytes(bytes, DType::U8, {bytes.size()});
  return decode(packed, codec, {count}).to_vector<float>();
}

/// The error that llama.cpp's tests/test-quantize-fns.cpp measures, sqrt(sum of squares) / n, of
/// its data, 0.1 + 2 cos(i), 4096 of them.
double test_error(Codec codec) {
  std::vector<float> x(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f + 2 * std::cos(static_cast<float>(i));
  const std::vector<float> back = there_and_back(x, codec);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - back[i]) * (x[i] - back[i]);
  return std::sqrt(sum) / static_cast<double>(x.size());
}

TEST(Quantise, ErrorsAreBelowLlamasLimits) {
  // MAX_QUANTIZATION_TOTAL_ERROR and its kin there; those of NVFP4, IQ1 and Q1_0 are ours.
  constexpr double kUsual = 0.002, kTwoBits = 0.0075, kThreeBits = 0.004, kThreeBitsXxs = 0.005,
                   kTernary = 0.01;
  constexpr double kNvfp4 = 0.0021, kOneBit = 0.0125;
  for (const CodecRow& r : kCodecs) {
    if (is_plain(r.codec) || !can_quantise(r.codec)) continue;
    const auto is = [&](std::initializer_list<Codec> any) {
      return std::ranges::find(any, r.codec) != any.end();
    };
    const double limit = is({Codec::TQ1_0, Codec::TQ2_0, Codec::Q1_0})                    ? kTernary
                         : is({Codec::Q2_K, Codec::IQ2_XXS, Codec::IQ2_XS, Codec::IQ2_S}) ? kTwoBits
                         : is({Codec::Q3_K, Codec::IQ3_S})  ? kThreeBits
                         : is({Codec::IQ3_XXS})             ? kThreeBitsXxs
                         : is({Codec::IQ1_S, Codec::IQ1_M}) ? kOneBit
                         : is({Codec::NVFP4})               ? kNvfp4
                                                            : kUsual;
    const double error = test_error(r.codec);
    EXPECT_LT(error, limit) << r.name;
    RecordProperty(std::string(r.name), std::to_string(error));
  }
}

/// Normal numbers, as weights are: the relative root mean square error.
double relative_error(Codec codec) {
  Sequence sequence(9);
  std::vector<float> x(64 * 256);
  for (float& v : x) {
    v = -6;
    for (int i = 0; i < 12; ++i) v += static_cast<float>(sequence.next() >> 40) * 0x1p-24f;
  }
  const std::vector<float> back = there_and_back(x, codec);
  double error = 0, all = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (x[i] - back[i]) * (x[i] - back[i]);
    all += x[i] * x[i];
  }
  return std::sqrt(error / all);
}

TEST(Quantise, MoreBitsAreCloser) {
  double before = 1;
  for (const Codec codec :
       {Codec::Q2_K, Codec::Q3_K, Codec::Q4_K, Codec::Q5_K, Codec::Q6_K, Codec::Q8_0}) {
    const double error = relative_error(codec);
    EXPECT_LT(error, before * 0.7) << name(codec);
    before = error;
  }
  EXPECT_LT(relative_error(Codec::Q4_K), relative_error(Codec::Q4_0));
  EXPECT_LT(relative_error(Codec::IQ4_NL), relative_error(Codec::Q4_0));
  EXPECT_LT(relative_error(Codec::Q6_K), 0.02);
}

TEST(Quantise, WhatWasDecodedComesBack) {
  for (const Codec codec : {Codec::Q4_K, Codec::Q6_K, Codec::Q3_K, Codec::IQ4_XS}) {
    const std::vector<float> once = there_and_back(some_rows(codec), codec);
    for (const float x : once) EXPECT_TRUE(std::isfinite(x));
    const std::vector<float> zeros(256);
    EXPECT_EQ(there_and_back(zeros, codec), zeros);
    const std::vector<float> same(256, 3.f);
    for (const float x : there_and_back(same, codec)) EXPECT_NEAR(x, 3, 0.15) << name(codec);
  }
}

TEST(Quantise, Errors) {
  const std::vector<float> x(64);
  const auto run = [&](Codec codec, std::vector<int64_t> shape, std::vector<float> values) {
    quantise(values, codec, shape);
  };
  EXPECT_ERROR(run(Codec::I8, {64}, x), "quantise: nothing is quantised to I8");
  EXPECT_ERROR(run(Codec::Q4_0, {3, 32}, x), "64 numbers for an array of shape (3, 32)");
  EXPECT_ERROR(run(Codec::Q4_0, {4, 16}, x),
               "Q4_0 has blocks of 32 elements along the last axis, which do not make up (4, 16)");
  std::vector<float> bad = x;
  bad[5] = INFINITY;
  EXPECT_ERROR(run(Codec::Q4_0, {64}, bad), "number 5 is inf: Q4_0 holds finite numbers only");
}

class GgufModelTest : public ScratchDir {};

TEST_F(GgufModelTest, TensorsStayInTheFile) {
  const Tensor w = Tensor::rand({8, 512}).realize(), b = Tensor::arange(8, DType::F32);
  GgufContent content;
  content.tensors = {gguf_tensor("w", w, Codec::Q8_0), gguf_tensor("b", b, Codec::F32),
                     gguf_tensor("h", w, Codec::F16)};
  content.metadata = {{"made.by", GgufValue::of("a test")}};
  save_gguf(at("m.gguf"), content);
  const GgufModel model = load_gguf(at("m.gguf"));
  const PackedTensor& packed = *model.find("w");
  EXPECT_EQ(packed.packed.dtype(), DType::U8);
  EXPECT_EQ(packed.packed.numel(), 8 * 16 * 34);
  const std::vector<float> back = packed.value().to_vector<float>(), wanted = w.to_vector<float>();
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(back[i], wanted[i], 0.005);
  EXPECT_EQ(packed.value(DType::F16).dtype(), DType::F16);
  EXPECT_EQ(model.find("b")->value().to_vector<float>(), b.to_vector<float>());
  EXPECT_EQ(model.find("h")->value().dtype(), DType::F16);
  EXPECT_EQ(model.find("x"), nullptr);
  const LoadedTensors loaded = load_tensors(at("m.gguf"));
  ASSERT_EQ(loaded.tensors.size(), 3u);
  EXPECT_EQ(loaded.tensors[2].name, "w");
  EXPECT_EQ(loaded.tensors[2].tensor.to_vector<float>(), back);
  EXPECT_EQ(loaded.metadata.at("made.by"), "a test");
  EXPECT_ERROR(gguf_tensor("i", Tensor::of({1, 2}), Codec::Q8_0), "only floats are quantised");
}

}  // namespace
}  // namespace weft
