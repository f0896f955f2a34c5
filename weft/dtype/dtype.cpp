#include "weft/dtype/dtype.h"

namespace weft {

namespace {

constexpr bool ids_are_dense() {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    if (static_cast<size_t>(kDTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(ids_are_dense(), "rows of dtypes.def must be in order of their id");

DType wider(DType a, DType b) { return bits(a) >= bits(b) ? a : b; }

DType promote_floats(DType a, DType b) {
  if (bits(a) != bits(b)) return wider(a, b);
  return is_float8(a) ? DType::F16 : DType::F32;  // two kinds
}

// The signed type must also hold every value of the unsigned one.
DType promote_signs(DType with_sign, DType without) {
  switch (without) {
    case DType::U8: return wider(with_sign, DType::I16);
    case DType::U16: return wider(with_sign, DType::I32);
    case DType::U32: return DType::I64;
    default: return DType::F32;  // u64: nothing holds both; floats are next in the lattice
  }
}

}  // namespace

std::optional<DType> dtype_from_id(uint8_t id) {
  if (id >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(id);
}

std::optional<DType> dtype_from_name(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const DTypeRow& candidate : kDTypes) {
    if (text == candidate.name || text == candidate.numpy_name) return candidate.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_safetensors(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const DTypeRow& candidate : kDTypes) {
    if (text == candidate.safetensors_name) return candidate.dtype;
  }
  return std::nullopt;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (!is_data(a) || !is_data(b)) return DType::Void;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (is_unsigned(a) == is_unsigned(b)) return wider(a, b);
  return is_unsigned(b) ? promote_signs(a, b) : promote_signs(b, a);
}

}  // namespace weft
