// Writing one packed block: fields of bits, half floats, and the encoders of all formats.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <span>

#include "weft/dtype/codec.h"
#include "weft/dtype/convert.h"

namespace weft {

using Encoder = void (*)(const float* x, uint8_t* block);  // the block is zero before
using BlockEncoder = std::function<void(const float* x, uint8_t* block)>;  // on any thread

inline void put_f16(uint8_t* at, float x) {
  const uint16_t pattern = f32_to_f16(x);
  std::memcpy(at, &pattern, sizeof(pattern));
}
/// What put_f16 keeps of x.
inline float as_f16(float x) { return f16_to_f32(f32_to_f16(x)); }

/// The inverse of Block::fields: code e lies in part (e / group) of its byte.
inline void put_fields(uint8_t* at, std::span<const uint8_t> codes, int bits, size_t group) {
  const size_t parts = 8 / static_cast<size_t>(bits);
  for (size_t e = 0; e < codes.size(); ++e) {
    const size_t part = e / group % parts, byte = e / (group * parts) * group + e % group;
    at[byte] |=
        static_cast<uint8_t>((codes[e] & ((1 << bits) - 1)) << (bits * static_cast<int>(part)));
  }
}
/// The same of the bits above `shift` of the codes.
inline void put_high_fields(uint8_t* at, std::span<const uint8_t> codes, int shift, int bits,
                            size_t group) {
  uint8_t high[256];
  for (size_t e = 0; e < codes.size(); ++e) high[e] = static_cast<uint8_t>(codes[e] >> shift);
  put_fields(at, std::span(high, codes.size()), bits, group);
}

/// To the nearest whole number, the even one of two; bounds are below 2^22.
inline int rounded(float x, int least, int most) {
  constexpr float kNoFractions = 0x1.8p23f;  // added to a number, they are lost
  if (!(x > static_cast<float>(least))) return least;
  if (x >= static_cast<float>(most)) return most;
  return static_cast<int>((x + kNoFractions) - kNoFractions);
}
inline float inverse(float d) { return d == 0 ? 0 : 1 / d; }

Encoder simple_encoder(Codec codec);  ///< of blocks with one scale; null: none
Encoder k_encoder(Codec codec);       ///< of blocks with scales of their own for parts
bool has_grid(Codec codec);           ///< of blocks that choose vectors from a table
BlockEncoder grid_encoder(Codec codec);

}  // namespace weft
