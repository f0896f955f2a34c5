#include "weft/onnx/cast.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "weft/base/error.h"

namespace weft::onnx {

namespace {

/// Above it numbers round to more than the largest one.
double overflow_limit(DType d) {
  const FloatFormat& f = float_format(d);
  const int exponent = (1 << f.exponent_bits) - 1 - f.bias - (f.specials == Specials::Ieee ? 1 : 0);
  const double step = power_of_two(exponent - f.mantissa_bits);
  return float_max(d) + step / 2;
}

Tensor to_float8(const Tensor& x, DType d, bool saturate) {
  const Tensor y = x.cast(bits(x.dtype()) == 64 ? DType::F64 : DType::F32);
  const double most = float_max(d);
  if (saturate) return y.clamp(-most, most).cast(d);
  const Tensor cast = y.cast(d);
  if (float_format(d).specials != Specials::NanOnly) return cast;
  // weft's own cast gives the largest number.
  const Tensor inside = (y.abs() <= overflow_limit(d)) | y.isnan();
  return inside.where(cast.cast(DType::F32), std::nan("")).cast(d);
}

/// Powers of two as f32. https://onnx.ai/onnx/technical/float8.html: e8m0.
Tensor to_exponent(const Tensor& x, const CastOptions& o) {
  const Tensor bits = x.cast(DType::F32).bitcast(DType::U32);
  const Tensor exponent = (bits >> 23u) & 255u, fraction = bits & 0x7fffffu;
  Tensor up = (fraction * 0u) != 0u;
  if (o.round_mode == "up") up = fraction != 0u;
  if (o.round_mode == "nearest")  // a half goes up, but for the least exponent
    up = (fraction > 0x400000u) | ((fraction == 0x400000u) & (exponent != 0u));
  Tensor code = exponent + up.cast(DType::U32);
  if (o.saturate) code = code.minimum(254u);
  code = (exponent == 255u).where(exponent, code).cast(DType::I32);
  // 2^(code - 127): the least one is subnormal, and 255 is no number.
  const Tensor power = (code == 0).where(0x400000, code << 23).bitcast(DType::F32);
  return (code >= 255).where(std::nanf(""), power);
}

/// Halves to even on the grid 0, 1/2, 1, 3/2, 2, 3, 4, 6. NaN, which there is none of, is -0.
Tensor to_float4(const Tensor& x) {
  const Tensor y = x.cast(DType::F32), size = y.abs();
  const Tensor fine = (size * 2).round() / 2, whole = size.round(), coarse = (size / 2).round() * 2;
  const Tensor rounded = (size < 2).where(fine, (size < 4).where(whole, coarse)).minimum(6.0f);
  return y.isnan().where(-0.0f, rounded.copysign(y));
}

/// The low bits of the whole number.
Tensor to_few_bits(const Tensor& x, ElementType to) {
  const int width = stored_bits(to), most = (1 << width) - 1, half = 1 << (width - 1);
  const Tensor low = x.cast(DType::I32) & most;
  return is_signed_int(dtype_of(to)) ? ((low ^ half) - half).cast(DType::I8) : low.cast(DType::U8);
}

// ---- strings

std::string text_of(const weft::Value& x) {
  if (is_bool(x.dtype())) return x.as_bool() ? "True" : "False";
  if (!is_float(x.dtype())) return x.text();
  const double v = x.as_double();
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "INF" : "-INF";
  const std::string text = x.text();
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

Value to_strings(const NodeCall& call) {
  const HostArray array = call.array(0);
  const size_t size = static_cast<size_t>(bits(array.dtype)) / 8;
  std::vector<std::string> texts;
  for (size_t at = 0; at < array.bytes.size(); at += size)
    texts.push_back(text_of(weft::Value::load(array.dtype, array.bytes.data() + at)));
  return Value::strings(std::move(texts), array.shape);
}

double number_in(const NodeCall& call, const std::string& text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  char* end = nullptr;
  const double value = std::strtod(lower.c_str(), &end);
  if (lower.empty() || *end != '\0') call.refuse("{} is no number", quoted_name(text));
  return value;
}

/// All texts as whole numbers of T; none where one is not.
template <class T>
std::optional<std::vector<T>> whole_numbers(const std::vector<std::string>& texts) {
  std::vector<T> numbers;
  for (const std::string& text : texts) {
    const char *begin = text.data() + (text.starts_with('+') ? 1 : 0),
               *end = text.data() + text.size();
    T x = 0;
    const auto [stop, error] = std::from_chars(begin, end, x);
    if (error != std::errc() || stop != end) return std::nullopt;
    numbers.push_back(x);
  }
  return numbers;
}

/// Integers of 64 bits have more digits than a double holds.
Value from_strings(const NodeCall& call, ElementType to) {
  const DType d = dtype_of(to);
  if (d == DType::U64)
    if (const auto numbers = whole_numbers<uint64_t>(call.texts(0)))
      return cast_to(Tensor::from(*numbers, call.input(0).dims()), to);
  if (is_int(d))
    if (const auto numbers = whole_numbers<int64_t>(call.texts(0)))
      return cast_to(Tensor::from(*numbers, call.input(0).dims()), to);
  std::vector<double> numbers;
  for (const std::string& text : call.texts(0)) numbers.push_back(number_in(call, text));
  return cast_to(Tensor::from(numbers, call.input(0).dims()), to);
}

Values cast_input(const NodeCall& call, ElementType to) {
  const bool text = call.input(0).kind() == Value::Kind::Strings;
  if (to == ElementType::String) return {text ? call.input(0) : to_strings(call)};
  if (text) return {from_strings(call, to)};
  const Tensor& x = call.tensor(0);
  if (call.input(0).type() == to) return {call.input(0)};
  const std::string mode = call.text("round_mode", "up");
  return {cast_to(x, to, {call.integer("saturate", 1) != 0, mode})};
}

}  // namespace

Value cast_to(const Tensor& x, ElementType to, const CastOptions& options) {
  const DType d = dtype_of(to);
  if (d == DType::Void)
    fail_type("onnx.type", "{} cannot be cast to {}, which weft does not compute with",
              name(x.dtype()), name(to));
  if (to == ElementType::Float8E8M0) return {to_exponent(x, options), to};
  if (to == ElementType::Float4E2M1) return {to_float4(x), to};
  if (stored_bits(to) < 8) return {to_few_bits(x, to), to};
  if (is_float8(d)) return {to_float8(x, d, options.saturate), to};
  return {x.cast(d), to};
}

Values cast(const NodeCall& call) {
  // Opset 1 names the type.
  if (call.opset() >= 6) return cast_input(call, static_cast<ElementType>(call.integer("to")));
  const std::string wanted = call.text("to", "");
  constexpr std::pair<std::string_view, ElementType> kNames[] = {
      {"FLOAT", ElementType::Float},   {"UINT8", ElementType::Uint8},
      {"INT8", ElementType::Int8},     {"UINT16", ElementType::Uint16},
      {"INT16", ElementType::Int16},   {"INT32", ElementType::Int32},
      {"INT64", ElementType::Int64},   {"STRING", ElementType::String},
      {"BOOL", ElementType::Bool},     {"FLOAT16", ElementType::Float16},
      {"DOUBLE", ElementType::Double}, {"UINT32", ElementType::Uint32},
      {"UINT64", ElementType::Uint64}};
  for (const auto& [text, type] : kNames)
    if (text == wanted) return cast_input(call, type);
  call.refuse("{} is no type; opset 1 names them as FLOAT, INT64, ...", quoted_name(wanted));
}

Values cast_like(const NodeCall& call) { return cast_input(call, call.input(1).type()); }

Values bit_cast(const NodeCall& call) {
  const auto to = static_cast<ElementType>(call.integer("to"));
  const ElementType from = call.input(0).type();
  if (from == to) return {call.input(0)};
  const bool same = stored_bits(from) == stored_bits(to) && stored_bits(to) >= 8 &&
                    bits(dtype_of(to)) == stored_bits(to) &&
                    bits(dtype_of(from)) == stored_bits(from);
  if (!same)
    call.refuse("{} of {} bits as {} of {} bits: bits stay what they are, so widths must be equal",
                name(from), stored_bits(from), name(to), stored_bits(to));
  Tensor x = call.tensor(0);
  const auto bytes = [](DType d) { return is_bool(d) ? DType::U8 : d; };
  if (is_bool(x.dtype())) x = x.cast(DType::U8);
  x = x.dtype() == bytes(dtype_of(to)) ? x : x.bitcast(bytes(dtype_of(to)));
  return {Value(x.cast(dtype_of(to)), to)};
}

}  // namespace weft::onnx
