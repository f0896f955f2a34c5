// Bytes and numbers that tests make the same way in C++ and in NumPy, and a hash of what came of
// them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

/// Knuth's MMIX generator.
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : state_(seed) {}
  uint64_t next() { return state_ = state_ * 6364136223846793005u + 1442695040888963407u; }

 private:
  uint64_t state_;
};

inline std::vector<uint8_t> some_bytes(int64_t count, uint64_t seed) {
  Sequence sequence(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(sequence.next() >> 56);
  return bytes;
}

/// FNV-1a.
inline uint64_t fnv(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint8_t>(b)) * 0x100000001b3u;
  return hash;
}
/// Of the bits of numbers; all NaN are one.
inline uint64_t fnv(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float x : values)
    bits.push_back(std::isnan(x) ? 0x7fc00000u : std::bit_cast<uint32_t>(x));
  return fnv(std::as_bytes(std::span(bits)));
}

}  // namespace weft
