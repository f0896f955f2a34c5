#include "weft/base/hash.h"

#include <cstring>

namespace weft {

namespace {

constexpr uint64_t kA = 0xa0761d6478bd642fu, kB = 0xe7037ed1a0b428dbu;

uint64_t load64(const unsigned char* p) {
  uint64_t x;
  std::memcpy(&x, p, 8);
  return x;  // little-endian hosts only, like the file formats
}

// Up to seven bytes, low byte first.
uint64_t load_tail(const unsigned char* p, size_t n) {
  uint64_t x = 0;
  for (size_t i = 0; i < n; ++i) x |= static_cast<uint64_t>(p[i]) << (8 * i);
  return x;
}

}  // namespace

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t state = hash_fold(seed ^ kA, size ^ kB);
  size_t left = size;
  for (; left >= 16; left -= 16, p += 16) {
    state = hash_fold(load64(p) ^ kA, load64(p + 8) ^ state);
  }
  if (left >= 8) {
    state = hash_fold(load64(p) ^ kB, state ^ kA);
    left -= 8, p += 8;
  }
  if (left > 0) state = hash_fold(load_tail(p, left) ^ kA, state ^ kB);
  return hash_mix(state ^ size);
}

}  // namespace weft
