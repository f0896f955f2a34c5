// DType: the element types, what each can hold, and which type two of them meet in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class DType : uint8_t {
#define X(id, e, name, bits, kind, c, numpy, safetensors) e = id,
#include "weft/dtype/dtypes.def"
#undef X
};

enum class DTypeKind : uint8_t { Void, Bool, Signed, Unsigned, Float, Index };

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int bits;
  DTypeKind kind;
  std::string_view c_name, numpy_name, safetensors_name;
};

// Indexed by DType.
inline constexpr DTypeRow kDTypes[] = {
#define X(id, e, name, bits, kind, c, numpy, safetensors) \
  {DType::e, name, bits, DTypeKind::kind, c, numpy, safetensors},
#include "weft/dtype/dtypes.def"
#undef X
};
inline constexpr size_t kDTypeCount = sizeof(kDTypes) / sizeof(kDTypes[0]);

constexpr DType kDefaultFloat = DType::F32;
constexpr DType kDefaultInt = DType::I32;

constexpr const DTypeRow& row(DType d) { return kDTypes[static_cast<size_t>(d)]; }
constexpr int bits(DType d) { return row(d).bits; }
constexpr DTypeKind kind(DType d) { return row(d).kind; }
constexpr std::string_view name(DType d) { return row(d).name; }

constexpr bool is_float(DType d) { return kind(d) == DTypeKind::Float; }
constexpr bool is_signed_int(DType d) { return kind(d) == DTypeKind::Signed; }
constexpr bool is_unsigned(DType d) { return kind(d) == DTypeKind::Unsigned; }
// Data integers: neither bool nor index.
constexpr bool is_int(DType d) { return is_signed_int(d) || is_unsigned(d); }
constexpr bool is_bool(DType d) { return d == DType::Bool; }
constexpr bool is_index(DType d) { return d == DType::Index; }
// Can live in a buffer.
constexpr bool is_data(DType d) { return d != DType::Void && d != DType::Index; }

// Bytes of n elements stored densely; n * bits must fit in 64 bits.
constexpr int64_t bytes_for(DType d, int64_t n) { return (n * bits(d) + 7) / 8; }

std::optional<DType> dtype_from_id(uint8_t id);
// By name or NumPy name; the other forms by their own function.
std::optional<DType> dtype_from_name(std::string_view text);
std::optional<DType> dtype_from_safetensors(std::string_view text);

// Limits of the integer types; index is bounded like i64.
constexpr int64_t int_min(DType d) {
  const bool has_sign = is_signed_int(d) || is_index(d);
  return has_sign ? static_cast<int64_t>(~uint64_t{0} << (bits(d) - 1)) : 0;
}
constexpr uint64_t int_max(DType d) {
  if (is_bool(d)) return 1;
  const bool has_sign = is_signed_int(d) || is_index(d);
  return ~uint64_t{0} >> (64 - bits(d) + (has_sign ? 1 : 0));
}
// Largest finite value of a float type.
constexpr double float_max(DType d) {
  switch (d) {
    case DType::F16: return 65504.0;
    case DType::BF16: return 0x1.fep127;
    case DType::F32: return 0x1.fffffep127;
    default: return 0x1.fffffffffffffp1023;
  }
}
// Bits of the significand with the hidden one: 11, 8, 24, 53.
constexpr int float_digits(DType d) {
  switch (d) {
    case DType::F16: return 11;
    case DType::BF16: return 8;
    case DType::F32: return 24;
    default: return 53;
  }
}

// The type two tensors meet in: the least upper bound of
//   bool < {i8, u8};  i8 < i16 < i32 < i64;  u8 < {i16, u16};  u16 < {i32, u32};  u32 < {i64, u64};
//   integers < floats;  {f16, bf16} < f32 < f64;  u64 with a signed integer: f32.
// Void when there is none (index or void with anything else).
DType promote(DType a, DType b);

}  // namespace weft
