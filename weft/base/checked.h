// Integer arithmetic that notices overflow: optional results, or an Error naming who asked.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

template <std::integral T>
constexpr std::optional<T> checked_add(T a, std::type_identity_t<T> b) {
  T r{};
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, std::type_identity_t<T> b) {
  T r{};
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// Throw Error(tag) with both values when the result does not fit.
int64_t add_or_fail(std::string_view tag, int64_t a, int64_t b);
int64_t mul_or_fail(std::string_view tag, int64_t a, int64_t b);

}  // namespace weft
