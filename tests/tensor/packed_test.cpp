// Packed blocks decode to the bits that the PyPI package gguf's dequantize() gives.
#include "weft/tensor/packed.h"

#include <algorithm>

#include "tests/support/device_here.h"
#include "tests/support/packed_bytes.h"
#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Packed : public TensorTest {};

constexpr int64_t kBlocks = 64;

/// Of 64 blocks of random bytes, scales that are infinite, NaN and subnormal among them.
struct Known {
  Codec codec;
  uint64_t hash;  ///< of the values that gguf 0.19.0 gives; of Q8_1, Q8_K and Q1_0, which it does
                  ///< not decode, what NumPy computes from ggml-common.h's layout
  int nans;
};
constexpr Known kKnown[] = {
    {Codec::Q4_0, 0xb467055c196e18ab, 32},     {Codec::Q4_1, 0xcb8a8fe803b4b9be, 64},
    {Codec::Q5_0, 0x3ccf30fac2b55380, 32},     {Codec::Q5_1, 0xbd5881a804e59d84, 160},
    {Codec::Q8_0, 0x7af501f3b2e3f2b0, 96},     {Codec::Q8_1, 0xe84d5e8f4f681658, 64},
    {Codec::Q2_K, 0x0d04e2bf79a35d98, 1536},   {Codec::Q3_K, 0xd093f8165a2de311, 768},
    {Codec::Q4_K, 0x53fde9f58eeded11, 1536},   {Codec::Q5_K, 0xc571f9059aabbb2e, 512},
    {Codec::Q6_K, 0xc3fd9b1b90ffe360, 768},    {Codec::Q8_K, 0xbd5846261380c8aa, 0},
    {Codec::IQ2_XXS, 0x8d769ae2603f29bb, 0},   {Codec::IQ2_XS, 0x110e9d04beda4896, 768},
    {Codec::IQ3_XXS, 0xb8d5c64b7eab15da, 768}, {Codec::IQ1_S, 0x2642bfeeed2c2e46, 1280},
    {Codec::IQ4_NL, 0x7478e1f76b80d342, 32},   {Codec::IQ3_S, 0x676ae2da156bd7ae, 256},
    {Codec::IQ2_S, 0xdc6caf7acf275d97, 768},   {Codec::IQ4_XS, 0x667d21cd2132f08a, 256},
    {Codec::IQ1_M, 0x3bf1a399a9e56db4, 256},   {Codec::TQ1_0, 0xbf78515a185573a9, 768},
    {Codec::TQ2_0, 0xf4c896f92116aeb4, 256},   {Codec::MXFP4, 0xf1ffccd76d805981, 0},
    {Codec::NVFP4, 0xe2fb1b2808ea3ae3, 0},     {Codec::Q1_0, 0x155336debba4e825, 256},
};

Tensor bytes_of(Codec codec) {
  return Tensor::from(some_bytes(kBlocks * row(codec).bytes, static_cast<uint64_t>(codec)));
}

TEST_F(Packed, EveryFormatIsBitEqual) {
  for (const Known& k : kKnown) {
    for (const char* device : {"CPU:X86", "CPU:INTERP"}) {
      SCOPED_TRACE(std::string(name(k.codec)) + " on " + device);
      const Tensor bytes = bytes_of(k.codec).to(testing::device_here(device));
      const Tensor x = decode(bytes, k.codec, {kBlocks, row(k.codec).elements});
      const std::vector<float> values = x.to_vector<float>();
      EXPECT_EQ(std::ranges::count_if(values, [](float v) { return std::isnan(v); }), k.nans);
      EXPECT_EQ(fnv(values), k.hash);
    }
  }
}

TEST_F(Packed, TheOracleAgrees) {
  for (const Known& k : kKnown) {
    const std::vector<double> wide =
        values(decode(bytes_of(k.codec), k.codec, {kBlocks, row(k.codec).elements}));
    EXPECT_EQ(fnv(std::vector<float>(wide.begin(), wide.end())), k.hash) << name(k.codec);
  }
}

TEST_F(Packed, EveryFormatIsKnown) {
  for (const CodecRow& r : kCodecs) {
    const auto known = std::ranges::find(kKnown, r.codec, &Known::codec);
    EXPECT_EQ(known == std::end(kKnown), is_plain(r.codec)) << r.name;
  }
}

TEST_F(Packed, PlainFormatsAreTheirElements) {
  const Tensor x = Tensor::of({1.5f, -2.f, 3.f});
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    const Tensor bytes = x.cast(dtype).contiguous().bitcast(DType::U8);
    EXPECT_EQ(decode(bytes, *codec_of(dtype), {3}).to_vector<float>(),
              (std::vector{1.5f, -2.f, 3.f}));
  }
  const Tensor whole = Tensor::of({1, -2, 3}).bitcast(DType::U8);
  EXPECT_EQ(decode(whole, Codec::I32, {3, 1}, DType::I32).to_vector<int>(),
            (std::vector{1, -2, 3}));
}

TEST_F(Packed, OtherShapesAndTypes) {
  const Tensor bytes = bytes_of(Codec::Q5_K);
  const std::vector<float> values = decode(bytes, Codec::Q5_K, {64, 256}).to_vector<float>();
  EXPECT_EQ(fnv(decode(bytes, Codec::Q5_K, {2, 8, 1024}).to_vector<float>()), fnv(values));
  const Tensor halves = decode(bytes.reshape({64, 176}), Codec::Q5_K, {64 * 256}, DType::F16);
  EXPECT_EQ(halves.dtype(), DType::F16);
  EXPECT_EQ(fnv(halves.to_vector<float>()),
            fnv(Tensor::from(values).cast(DType::F16).to_vector<float>()));
  EXPECT_EQ(decode(Tensor::zeros({0}, DType::U8), Codec::Q5_K, {0, 256}).numel(), 0);
}

/// (groups of rows, words, rows, 4), u8.
Tensor interleaved(const Tensor& bytes, Codec codec, const Dims& shape, int64_t rows) {
  return interleave_rows(bytes, codec, shape, rows).contiguous().unsqueeze(-1).bitcast(DType::U8);
}

TEST_F(Packed, OfInterleavedRowsTheSameNumbers) {
  constexpr int64_t kRows = 16, kSideBySide = 8;
  for (const Known& k : kKnown) {
    for (const char* device : {"CPU:X86", "CPU:INTERP"}) {
      SCOPED_TRACE(std::string(name(k.codec)) + " on " + device);
      const Dims shape = {kRows, kBlocks / kRows * row(k.codec).elements};
      const bool whole = k.codec != Codec::MXFP4;  // four blocks of it are words
      ASSERT_EQ(may_be_interleaved(k.codec, shape, kSideBySide), whole);
      if (!whole) continue;
      const Tensor bytes = bytes_of(k.codec).to(testing::device_here(device));
      const Tensor given = interleaved(bytes, k.codec, shape, kSideBySide).realize();
      EXPECT_EQ(given.shape(), Dims({2, bytes.numel() / 64, 8, 4}));
      EXPECT_EQ(fnv(decode_interleaved(given, k.codec, shape).to_vector<float>()), k.hash);
    }
  }
}

TEST_F(Packed, RowsThatMayNotBeInterleaved) {
  EXPECT_FALSE(may_be_interleaved(Codec::Q4_K, {17, 256}, 16));
  EXPECT_FALSE(may_be_interleaved(Codec::Q4_K, {0, 256}, 16));
  EXPECT_FALSE(may_be_interleaved(Codec::Q4_K, {16, 256}, 0));
  EXPECT_FALSE(may_be_interleaved(Codec::Q4_K, {16, 100}, 16));
  EXPECT_FALSE(may_be_interleaved(Codec::Q4_K, {2, 16, 256}, 16));
  EXPECT_FALSE(may_be_interleaved(Codec::F16, {16, 256}, 16));
  EXPECT_FALSE(may_be_interleaved(Codec::Q6_K, {16, 256}, 16)) << "blocks lie in pairs";
  EXPECT_TRUE(may_be_interleaved(Codec::Q6_K, {16, 512}, 16));
}

TEST_F(Packed, ProductsReadThePackedBytes) {
  for (const Codec codec : {Codec::Q4_0, Codec::Q8_0, Codec::Q4_K, Codec::Q6_K, Codec::IQ2_XS}) {
    SCOPED_TRACE(name(codec));
    std::vector<uint8_t> bytes = some_bytes(16 * 2 * row(codec).bytes, 7);
    const std::vector<int64_t> shape = {16, 2 * row(codec).elements};
    // Finite scales: halves below 2 in every place where one may be.
    for (size_t i = 1; i < bytes.size(); i += 2) bytes[i] &= 0xbf;
    const Tensor packed = Tensor::from(bytes), x = Tensor::rand({3, shape[1]}).realize();
    const Tensor w = decode(packed, codec, Dims(shape));
    const std::vector<float> fused = x.matmul(w.T()).to_vector<float>();
    const std::vector<float> plain =
        x.matmul(Tensor::from(w.to_vector<float>(), Dims(shape)).T()).to_vector<float>();
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(fused[i], plain[i], 1e-4 * (1 + std::fabs(plain[i]))) << i;
  }
}

TEST_F(Packed, Errors) {
  const Tensor bytes = Tensor::zeros({36}, DType::U8);
  const auto says = [](auto f, const std::string& text) {
    EXPECT_EQ(message_of(f).substr(0, text.size()), text);
  };
  says([&] { decode(bytes, Codec::Q4_0, {48}); },
       "[decode] Q4_0 has blocks of 32 elements along the last axis, which do not make up (48,) (");
  says([&] { decode(bytes, Codec::Q4_0, {3, 32}); },
       "[decode] Q4_0 (3, 32) takes 54 bytes, and there are 36 (");
  says([&] { decode(bytes, Codec::Q4_0, {64}, DType::I8); },
       "[decode] Q4_0 decodes to a float, not i8; cast the result (");
  says([&] { decode(Tensor::zeros({36}), Codec::Q4_0, {64}); },
       "[decode] packed blocks are u8, not f32; bitcast them (");
  says([&] { decode_interleaved(bytes, Codec::Q4_0, {2, 32}); },
       "[decode_interleaved] (36,) of u8 is no Q4_0 (2, 32): give the bytes of what ");
  says([&] { decode_interleaved(bytes.reshape({1, 9, 1, 4}), Codec::Q4_0, {2, 32}); },
       "[decode_interleaved] (1, 9, 1, 4) of u8 is no Q4_0 (2, 32): give ");
  says(
      [&] { interleave_rows(bytes, Codec::Q4_0, {2, 32}, 2); },
      "[interleave_rows] 2 rows of Q4_0 (2, 32) cannot lie side by side, word by word: of matrices "
      "whose rows are whole groups and, where a block is no whole words, an even number of blocks "
      "(");
}

}  // namespace
}  // namespace weft
