#include "weft/dtype/value.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/dtype/convert.h"

namespace weft {

namespace {

constexpr uint64_t kPlainNan = 0x7ff8000000000000u;

double round_to(DType dtype, double x) {
  switch (dtype) {
    case DType::F16: return f16_to_f32(f64_to_f16(x));
    case DType::BF16: return bf16_to_f32(f64_to_bf16(x));
    case DType::F32: return static_cast<double>(static_cast<float>(x));
    case DType::F64: return x;
    default: return f8_to_f64(float_format(dtype), f64_to_f8(float_format(dtype), x));
  }
}

// The low bits, sign- or zero-extended to 64.
uint64_t wrap(DType dtype, uint64_t x) {
  const int unused = 64 - bits(dtype);
  if (is_unsigned(dtype)) return x << unused >> unused;
  return static_cast<uint64_t>(static_cast<int64_t>(x << unused) >> unused);
}

uint64_t truncate(DType dtype, double x) {
  if (is_unsigned(dtype)) {
    const uint64_t whole = float_to_int<uint64_t>(x);
    return whole < int_max(dtype) ? whole : int_max(dtype);
  }
  const int64_t whole = float_to_int<int64_t>(x), most = static_cast<int64_t>(int_max(dtype));
  return static_cast<uint64_t>(whole < int_min(dtype) ? int_min(dtype)
                               : whole > most         ? most
                                                      : whole);
}

// Directly from the integer: through double a large one would be rounded twice.
template <class Int>
double float_of_int(DType dtype, Int x) {
  if (dtype == DType::F64) return static_cast<double>(x);
  if (dtype == DType::F32) return static_cast<double>(static_cast<float>(x));
  // Narrow floats overflow early or keep few bits: fold what lies below into a sticky bit.
  const bool negative = x < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  int scale = 0;
  while (magnitude >> 32 != 0) magnitude = magnitude >> 1 | (magnitude & 1), ++scale;
  const double exact = std::ldexp(static_cast<double>(magnitude), scale);
  return round_to(dtype, negative ? -exact : exact);
}

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "nan", "-inf", "0.1", "nan(0x7ff8...)".
std::optional<double> parse_float(std::string_view text) {
  if (text == "nan") return std::bit_cast<double>(kPlainNan);
  if (text.starts_with("nan(0x") && text.ends_with(")")) {
    uint64_t pattern = 0;
    const char* last = text.data() + text.size() - 1;
    auto [end, error] = std::from_chars(text.data() + 6, last, pattern, 16);
    const double x = std::bit_cast<double>(pattern);
    if (error != std::errc() || end != last || !std::isnan(x)) return std::nullopt;
    return x;
  }
  return parse_whole<double>(text);
}

}  // namespace

Value Value::of(DType dtype, double x) {
  switch (kind(dtype)) {
    case DTypeKind::Void: break;
    case DTypeKind::Bool: return {dtype, x != 0};
    case DTypeKind::Float: return {dtype, std::bit_cast<uint64_t>(round_to(dtype, x))};
    default: return {dtype, truncate(dtype, x)};
  }
  internal_error("dtype.value", "a constant cannot be void");
}

Value Value::of(DType dtype, int64_t x) {
  if (is_float(dtype)) return {dtype, std::bit_cast<uint64_t>(float_of_int(dtype, x))};
  return of(dtype, static_cast<uint64_t>(x));
}

Value Value::of(DType dtype, uint64_t x) {
  switch (kind(dtype)) {
    case DTypeKind::Void: break;
    case DTypeKind::Bool: return {dtype, x != 0};
    case DTypeKind::Float: return {dtype, std::bit_cast<uint64_t>(float_of_int(dtype, x))};
    default: return {dtype, wrap(dtype, x)};
  }
  internal_error("dtype.value", "a constant cannot be void");
}

Value Value::load(DType dtype, const void* from) {
  uint64_t raw = 0;
  std::memcpy(&raw, from, static_cast<size_t>(bytes_for(dtype, 1)));
  switch (dtype) {
    case DType::F16: return of(dtype, static_cast<double>(f16_to_f32(static_cast<uint16_t>(raw))));
    case DType::BF16:
      return of(dtype, static_cast<double>(bf16_to_f32(static_cast<uint16_t>(raw))));
    case DType::F32:
      return of(dtype, static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(raw))));
    case DType::F64: return {dtype, raw};
    default: break;
  }
  if (!is_float8(dtype)) return of(dtype, raw);
  return of(dtype, f8_to_f64(float_format(dtype), static_cast<uint8_t>(raw)));
}

void Value::store(void* to) const {
  uint64_t raw = is_float8(dtype_) ? f64_to_f8(float_format(dtype_), as_double()) : bits_;
  switch (dtype_) {
    case DType::F16: raw = f64_to_f16(as_double()); break;
    case DType::BF16: raw = f64_to_bf16(as_double()); break;
    case DType::F32: raw = std::bit_cast<uint32_t>(static_cast<float>(as_double())); break;
    default: break;
  }
  std::memcpy(to, &raw, static_cast<size_t>(bytes_for(dtype_, 1)));
}

double Value::as_double() const {
  if (is_float(dtype_)) return std::bit_cast<double>(bits_);
  return is_unsigned(dtype_) ? static_cast<double>(bits_)
                             : static_cast<double>(static_cast<int64_t>(bits_));
}

int64_t Value::as_int() const {
  return is_float(dtype_) ? float_to_int<int64_t>(as_double()) : static_cast<int64_t>(bits_);
}

uint64_t Value::as_uint() const {
  return is_float(dtype_) ? float_to_int<uint64_t>(as_double()) : bits_;
}

bool Value::as_bool() const { return is_float(dtype_) ? as_double() != 0 : bits_ != 0; }

bool Value::is_nan() const { return is_float(dtype_) && std::isnan(as_double()); }

Value Value::cast(DType to) const {
  if (is_float(dtype_)) return of(to, as_double());
  return is_unsigned(dtype_) ? of(to, bits_) : of(to, static_cast<int64_t>(bits_));
}

uint64_t Value::hash() const { return hash_combine(static_cast<uint64_t>(dtype_), bits_); }

std::optional<Value> Value::from_raw_bits(DType dtype, uint64_t raw) {
  if (dtype == DType::Void) return std::nullopt;
  const Value value = is_float(dtype) ? of(dtype, std::bit_cast<double>(raw)) : of(dtype, raw);
  if (value.bits_ != raw) return std::nullopt;
  return value;
}

std::string Value::text() const {
  if (dtype_ == DType::Void) return "void";
  if (is_bool(dtype_)) return bits_ != 0 ? "true" : "false";
  if (is_unsigned(dtype_)) return strformat("{}", bits_);
  if (!is_float(dtype_)) return strformat("{}", static_cast<int64_t>(bits_));
  const double x = as_double();
  if (std::isnan(x)) return bits_ == kPlainNan ? "nan" : strformat("nan({:#x})", bits_);
  // The narrow types too: the shortest f32 text is exact enough to round back to them.
  return dtype_ == DType::F64 ? strformat("{}", x) : strformat("{}", static_cast<float>(x));
}

std::optional<Value> Value::parse(DType dtype, std::string_view text) {
  if (dtype == DType::Void) return std::nullopt;
  if (is_bool(dtype)) {
    if (text != "true" && text != "false") return std::nullopt;
    return boolean(text == "true");
  }
  if (is_float(dtype)) {
    // As float for f32: through double some decimals would be rounded twice.
    if (dtype == DType::F32 && !text.starts_with("nan")) {
      const std::optional<float> single = parse_whole<float>(text);
      if (!single) return std::nullopt;
      return of(dtype, static_cast<double>(*single));
    }
    const std::optional<double> x = parse_float(text);
    if (!x) return std::nullopt;
    return of(dtype, *x);
  }
  if (is_unsigned(dtype)) {
    const std::optional<uint64_t> x = parse_whole<uint64_t>(text);
    if (!x || *x > int_max(dtype)) return std::nullopt;
    return of(dtype, *x);
  }
  const std::optional<int64_t> x = parse_whole<int64_t>(text);
  if (!x || *x < int_min(dtype) || *x > static_cast<int64_t>(int_max(dtype))) return std::nullopt;
  return of(dtype, *x);
}

DType Scalar::default_dtype() const {
  switch (kind_) {
    case Kind::Bool: return DType::Bool;
    case Kind::Float: return kDefaultFloat;
    case Kind::Unsigned: return int_ < 0 ? DType::U64 : int_ > INT32_MAX ? DType::I64 : kDefaultInt;
    case Kind::Int: break;
  }
  return int_ < INT32_MIN || int_ > INT32_MAX ? DType::I64 : kDefaultInt;
}

Value Scalar::as(DType dtype) const {
  if (kind_ == Kind::Float) return Value::of(dtype, float_);
  if (kind_ == Kind::Unsigned) return Value::of(dtype, static_cast<uint64_t>(int_));
  return Value::of(dtype, int_);
}

DType promote_weak(DType tensor, const Scalar& scalar) {
  if (weft::is_float(tensor) || scalar.is_bool()) return tensor;
  if (scalar.is_float() || weft::is_bool(tensor)) return scalar.default_dtype();
  return tensor;
}

}  // namespace weft
