// Formats with one scale for a block. What gguf.quants quantises to as well is computed in f32 in
// the order of that package, so that bytes are equal.
#include <algorithm>
#include <numeric>

#include "weft/io/quantise_block.h"

namespace weft {

namespace {

/// The first of those elements that are largest without their sign.
float peak(std::span<const float> x) {
  return *std::ranges::max_element(x, {}, [](float v) { return std::fabs(v); });
}

uint8_t truncated(float x, int most) {
  return static_cast<uint8_t>(x <= 0                          ? 0
                              : x >= static_cast<float>(most) ? most
                                                              : static_cast<int>(x));
}
/// Halves away from zero.
int half_away(float x) {
  const float r = std::round(x);
  return r < -127 ? -127 : r > 127 ? 127 : static_cast<int>(r);
}

/// Codes of 4 or 5 bits from 0 to `most`, of which the middle stands for 0: Q4_0, Q5_0.
template <int kMost>
float centred_codes(std::span<const float> x, uint8_t* codes) {
  constexpr float kMiddle = (kMost + 1) / 2;
  const float d = peak(x) / -kMiddle, id = inverse(d);
  for (size_t i = 0; i < x.size(); ++i) codes[i] = truncated(x[i] * id + (kMiddle + 0.5f), kMost);
  return d;
}
struct Affine {
  float d, least;
};
template <int kMost>
Affine affine_codes(std::span<const float> x, uint8_t* codes) {
  const auto [least, greatest] = std::ranges::minmax(x);
  const float d = (greatest - least) / kMost, id = inverse(d);
  for (size_t i = 0; i < x.size(); ++i) codes[i] = truncated((x[i] - least) * id + 0.5f, kMost);
  return {d, least};
}

void q4_0(const float* x, uint8_t* block) {
  uint8_t codes[32];
  put_f16(block, centred_codes<15>({x, 32}, codes));
  put_fields(block + 2, codes, 4, 16);
}
void q5_0(const float* x, uint8_t* block) {
  uint8_t codes[32];
  put_f16(block, centred_codes<31>({x, 32}, codes));
  put_high_fields(block + 2, codes, 4, 1, 1);
  put_fields(block + 6, codes, 4, 16);
}
void q4_1(const float* x, uint8_t* block) {
  uint8_t codes[32];
  const auto [d, least] = affine_codes<15>({x, 32}, codes);
  put_f16(block, d);
  put_f16(block + 2, least);
  put_fields(block + 4, codes, 4, 16);
}
void q5_1(const float* x, uint8_t* block) {
  uint8_t codes[32];
  const auto [d, least] = affine_codes<31>({x, 32}, codes);
  put_f16(block, d);
  put_f16(block + 2, least);
  put_high_fields(block + 4, codes, 4, 1, 1);
  put_fields(block + 8, codes, 4, 16);
}

/// Codes from -127 to 127; their scale.
float byte_codes(std::span<const float> x, uint8_t* codes, int* sum = nullptr) {
  const float d = std::fabs(peak(x)) / 127, id = inverse(d);
  for (size_t i = 0; i < x.size(); ++i) {
    const int q = half_away(x[i] * id);
    codes[i] = static_cast<uint8_t>(q);
    if (sum != nullptr) *sum += q;
  }
  return d;
}
void q8_0(const float* x, uint8_t* block) { put_f16(block, byte_codes({x, 32}, block + 2)); }
void q8_1(const float* x, uint8_t* block) {
  int sum = 0;
  const float d = byte_codes({x, 32}, block + 4, &sum);
  put_f16(block, d);
  put_f16(block + 2, d * static_cast<float>(sum));
}
void q8_k(const float* x, uint8_t* block) {
  const float d = byte_codes({x, 256}, block + 4);
  std::memcpy(block, &d, sizeof(d));
  for (int i = 0; i < 16; ++i) {
    int sum = 0;
    for (int j = 0; j < 16; ++j) sum += static_cast<int8_t>(block[4 + 16 * i + j]);
    const auto stored = static_cast<int16_t>(sum);
    std::memcpy(block + 260 + 2 * i, &stored, sizeof(stored));
  }
}

/// -1, 0, 1 as 0, 1, 2; their scale.
float ternary_codes(std::span<const float> x, uint8_t* codes) {
  const float d = std::fabs(peak(x)), id = inverse(d);
  for (size_t i = 0; i < x.size(); ++i) codes[i] = static_cast<uint8_t>(half_away(x[i] * id) + 1);
  return d;
}
void tq1_0(const float* x, uint8_t* block) {
  uint8_t codes[256];
  put_f16(block + 52, ternary_codes({x, 256}, codes));
  constexpr int kParts[][3] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};  // Block::trits()
  const uint8_t* code = codes;
  for (const auto& [at, count, numbers] : kParts) {
    for (int byte = 0; byte < count; ++byte) {
      int number = 0, power = 81;
      for (int n = 0; n < numbers; ++n, power /= 3) number += code[n * count + byte] * power;
      block[at + byte] = static_cast<uint8_t>((number * 256 + 242) / 243);
    }
    code += count * numbers;
  }
}
void tq2_0(const float* x, uint8_t* block) {
  uint8_t codes[256];
  put_f16(block + 64, ternary_codes({x, 256}, codes));
  put_fields(block, codes, 2, 32);
}
void q1_0(const float* x, uint8_t* block) {
  uint8_t codes[128];
  float sum = 0;
  for (int i = 0; i < 128; ++i) {
    codes[i] = x[i] >= 0 ? 1 : 0;
    sum += std::fabs(x[i]);
  }
  put_f16(block, sum / 128);  // the mean magnitude has the least squared error
  put_fields(block + 2, codes, 1, 1);
}

// ---- e2m1, doubled: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives

constexpr float kTwiceE2m1[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void e2m1_codes(std::span<const float> x, float d, uint8_t* codes) {
  for (size_t i = 0; i < x.size(); ++i) {
    const auto nearest =
        std::ranges::min_element(kTwiceE2m1, {}, [&](float v) { return std::fabs(d * v - x[i]); });
    codes[i] = static_cast<uint8_t>(nearest - std::begin(kTwiceE2m1));
  }
}

void mxfp4(const float* x, uint8_t* block) {
  const float most = std::fabs(peak({x, 32}));
  const float exponent = most > 0 ? std::floor(std::log2(most)) - 2 + 127 : 0;
  block[0] = truncated(exponent, 255);
  uint8_t codes[32];
  e2m1_codes({x, 32}, std::ldexp(1.f, block[0] - 128), codes);
  put_fields(block + 1, codes, 4, 16);
}

/// Half an unsigned e4m3: what a scale byte of NVFP4 stands for.
float half_e4m3(int code) {
  const int exponent = code >> 3, mantissa = code & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}
float squared_error(std::span<const float> x, float d, const uint8_t* codes) {
  float sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float error = x[i] - d * kTwiceE2m1[codes[i]];
    sum += error * error;
  }
  return sum;
}
/// Each 16 numbers have the scale of least error among the four around the largest number's.
void nvfp4(const float* x, uint8_t* block) {
  uint8_t codes[64];
  for (int part = 0; part < 4; ++part) {
    const std::span<const float> values(x + 16 * part, 16);
    const float most = std::fabs(peak(values)) / 12;
    int above = 0;
    while (above < 126 && half_e4m3(above) < most) ++above;
    float least = INFINITY;
    for (int code = std::max(above - 2, 0); code <= std::min(above + 1, 126); ++code) {
      uint8_t tried[16];
      e2m1_codes(values, half_e4m3(code), tried);
      const float error = squared_error(values, half_e4m3(code), tried);
      if (error >= least) continue;
      least = error;
      block[part] = static_cast<uint8_t>(code);
      std::ranges::copy(tried, codes + 16 * part);
    }
  }
  put_fields(block + 4, codes, 4, 8);
}

}  // namespace

Encoder simple_encoder(Codec codec) {
  switch (codec) {
    case Codec::Q4_0: return q4_0;
    case Codec::Q4_1: return q4_1;
    case Codec::Q5_0: return q5_0;
    case Codec::Q5_1: return q5_1;
    case Codec::Q8_0: return q8_0;
    case Codec::Q8_1: return q8_1;
    case Codec::Q8_K: return q8_k;
    case Codec::TQ1_0: return tq1_0;
    case Codec::TQ2_0: return tq2_0;
    case Codec::MXFP4: return mxfp4;
    case Codec::NVFP4: return nvfp4;
    case Codec::Q1_0: return q1_0;
    default: return nullptr;
  }
}

}  // namespace weft
