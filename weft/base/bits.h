// Small integer arithmetic: rounding division, powers of two.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

constexpr bool is_power_of_two(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

// Exponent of the largest power of two not above x (x > 0).
constexpr int floor_log2(uint64_t x) { return 63 - std::countl_zero(x | 1); }

// Smallest e with 2^e >= x (x > 0).
constexpr int ceil_log2(uint64_t x) { return x <= 1 ? 0 : floor_log2(x - 1) + 1; }

// Towards minus infinity; b != 0 and not INT64_MIN / -1.
constexpr int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// a - b * floor_div(a, b): has the sign of b.
constexpr int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// Up to a multiple of step (x >= 0, step > 0).
constexpr int64_t round_up(int64_t x, int64_t step) { return ceil_div(x, step) * step; }

}  // namespace weft
