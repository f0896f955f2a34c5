// 64-bit hashing that gives the same number in every run and on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

// Both halves of a 64x64 product, folded: the mixing step of wyhash.
constexpr uint64_t hash_fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A bijection (the finisher of splitmix64): distinct inputs stay distinct.
constexpr uint64_t hash_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Depends on the order of its arguments.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  return hash_fold(seed ^ 0x9e3779b97f4a7c15u, hash_mix(value + 0x2545f4914f6cdd1du)) ^ seed;
}

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);

inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

}  // namespace weft
