#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/onnx/model.h"

namespace weft::onnx {

namespace {

struct ElementRow {
  ElementType type;
  const char* name;
  DType dtype;
  int bits;  // in files
};

// By number.
constexpr ElementRow kElements[] = {
    {ElementType::Undefined, "undefined", DType::Void, 0},
    {ElementType::Float, "float32", DType::F32, 32},
    {ElementType::Uint8, "uint8", DType::U8, 8},
    {ElementType::Int8, "int8", DType::I8, 8},
    {ElementType::Uint16, "uint16", DType::U16, 16},
    {ElementType::Int16, "int16", DType::I16, 16},
    {ElementType::Int32, "int32", DType::I32, 32},
    {ElementType::Int64, "int64", DType::I64, 64},
    {ElementType::String, "string", DType::Void, 0},
    {ElementType::Bool, "bool", DType::Bool, 8},
    {ElementType::Float16, "float16", DType::F16, 16},
    {ElementType::Double, "float64", DType::F64, 64},
    {ElementType::Uint32, "uint32", DType::U32, 32},
    {ElementType::Uint64, "uint64", DType::U64, 64},
    {ElementType::Complex64, "complex64", DType::Void, 64},
    {ElementType::Complex128, "complex128", DType::Void, 128},
    {ElementType::Bfloat16, "bfloat16", DType::BF16, 16},
    {ElementType::Float8E4M3FN, "float8e4m3fn", DType::F8E4M3, 8},
    {ElementType::Float8E4M3FNUZ, "float8e4m3fnuz", DType::F8E4M3Fnuz, 8},
    {ElementType::Float8E5M2, "float8e5m2", DType::F8E5M2, 8},
    {ElementType::Float8E5M2FNUZ, "float8e5m2fnuz", DType::F8E5M2Fnuz, 8},
    {ElementType::Uint4, "uint4", DType::U8, 4},
    {ElementType::Int4, "int4", DType::I8, 4},
    {ElementType::Float4E2M1, "float4e2m1", DType::F32, 4},
    {ElementType::Float8E8M0, "float8e8m0", DType::F32, 8},
    {ElementType::Uint2, "uint2", DType::U8, 2},
    {ElementType::Int2, "int2", DType::I8, 2},
    {ElementType::Float6E2M3, "float6e2m3", DType::F32, 8},
    {ElementType::Float6E3M2, "float6e3m2", DType::F32, 8},
};

const ElementRow* find(ElementType type) {
  const auto i = static_cast<size_t>(type);
  return i < std::size(kElements) ? &kElements[i] : nullptr;
}

/// A sign, `exponent` and `mantissa` bits, no infinities (OCP Microscaling Formats 1.0, 2023).
float small_float(unsigned code, int exponent, int mantissa, int bias) {
  const int e = static_cast<int>(code >> mantissa) & ((1 << exponent) - 1);
  const int m = static_cast<int>(code) & ((1 << mantissa) - 1);
  const int significand = m + (e > 0 ? 1 << mantissa : 0);
  const float size = std::ldexp(static_cast<float>(significand), (e > 0 ? e : 1) - bias - mantissa);
  return (code >> (exponent + mantissa) & 1) != 0 ? -size : size;
}

float float_of(ElementType type, unsigned code) {
  if (type == ElementType::Float4E2M1) return small_float(code, 2, 1, 1);
  if (type == ElementType::Float6E2M3) return small_float(code, 2, 3, 1);
  if (type == ElementType::Float6E3M2) return small_float(code, 3, 2, 3);
  return code == 255 ? NAN : std::ldexp(1.0f, static_cast<int>(code) - 127);  // E8M0
}

}  // namespace

std::string name(ElementType type) {
  const ElementRow* row = find(type);
  return row ? row->name : strformat("type {}", static_cast<int>(type));
}

DType dtype_of(ElementType type) {
  const ElementRow* row = find(type);
  return row ? row->dtype : DType::Void;
}

ElementType element_type_of(DType dtype) {
  for (const ElementRow& row : kElements)
    if (row.dtype == dtype && row.bits == bits(dtype)) return row.type;
  return ElementType::Undefined;
}

int stored_bits(ElementType type) {
  const ElementRow* row = find(type);
  return row ? row->bits : 0;
}

HostArray unpacked(ElementType type, std::vector<int64_t> shape,
                   std::span<const std::byte> stored) {
  const DType dtype = dtype_of(type);
  const int width = stored_bits(type), each = 8 / width;
  HostArray about{dtype, shape, {}, nullptr};
  const auto count = static_cast<size_t>(about.numel());
  std::vector<std::byte> out(count * static_cast<size_t>(bits(dtype) / 8));
  for (size_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<unsigned>(stored[i / static_cast<size_t>(each)]);
    const int shift = width * static_cast<int>(i % static_cast<size_t>(each));
    const unsigned code = byte >> shift & ((1u << width) - 1);
    if (dtype == DType::F32) {
      const float x = float_of(type, code);
      std::memcpy(out.data() + 4 * i, &x, 4);
    } else {
      const bool negative = is_signed_int(dtype) && (code >> (width - 1) & 1) != 0;
      out[i] = static_cast<std::byte>(negative ? code | 0xffu << width : code);
    }
  }
  return HostArray::owned(dtype, std::move(shape), std::move(out));
}

}  // namespace weft::onnx
