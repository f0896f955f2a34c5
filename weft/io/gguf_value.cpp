#include "weft/io/gguf_value.h"

#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/io/host_array.h"

namespace weft {

namespace {

struct TypeRow {
  std::string_view name;
  size_t size;
};
constexpr TypeRow kTypes[kGgufTypes] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};
const TypeRow& row_of(GgufType type) { return kTypes[static_cast<size_t>(type)]; }

template <class T>
T read(const std::byte* at) {
  T x;
  std::memcpy(&x, at, sizeof(T));
  return x;
}

/// A number as f64, or as i64 where it is an integer that fits.
struct Number {
  double value;
  std::optional<int64_t> integer;
};
template <class T>
Number whole(const std::byte* at) {
  const T x = read<T>(at);
  const bool fits = std::is_signed_v<T> || sizeof(T) < 8 || static_cast<uint64_t>(x) <= INT64_MAX;
  return {static_cast<double>(x), fits ? std::optional(static_cast<int64_t>(x)) : std::nullopt};
}
std::optional<Number> number_at(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::Bool:
    case GgufType::U8: return whole<uint8_t>(at);
    case GgufType::I8: return whole<int8_t>(at);
    case GgufType::U16: return whole<uint16_t>(at);
    case GgufType::I16: return whole<int16_t>(at);
    case GgufType::U32: return whole<uint32_t>(at);
    case GgufType::I32: return whole<int32_t>(at);
    case GgufType::U64: return whole<uint64_t>(at);
    case GgufType::I64: return whole<int64_t>(at);
    case GgufType::F32: return Number{read<float>(at), std::nullopt};
    case GgufType::F64: return Number{read<double>(at), std::nullopt};
    default: return std::nullopt;
  }
}

std::optional<Number> number_of(const GgufValue& value, uint64_t i) {
  const GgufType type = value.type == GgufType::Array ? value.element : value.type;
  const size_t size = size_of(type);
  if (size == 0 || i >= value.bytes.size() / size) return std::nullopt;
  return number_at(type, value.bytes.data() + i * size);
}

std::string number_text(const GgufValue& value, uint64_t i) {
  const std::optional<Number> x = number_of(value, i);
  const GgufType type = value.type == GgufType::Array ? value.element : value.type;
  if (type == GgufType::Bool) return x->value != 0 ? "true" : "false";
  if (x->integer) return std::to_string(*x->integer);
  return strformat("{}", type == GgufType::F32 ? static_cast<float>(x->value) : x->value);
}

}  // namespace

std::string_view name(GgufType type) { return row_of(type).name; }
size_t size_of(GgufType type) { return row_of(type).size; }

std::optional<int64_t> GgufValue::integer(uint64_t i) const {
  const std::optional<Number> x = number_of(*this, i);
  return x ? x->integer : std::nullopt;
}

std::optional<double> GgufValue::number(uint64_t i) const {
  const std::optional<Number> x = number_of(*this, i);
  return x ? std::optional(x->value) : std::nullopt;
}

std::string GgufValue::shown(uint64_t most) const {
  if (type == GgufType::String) return quoted_name(text());
  if (type != GgufType::Array) return number_text(*this, 0);
  std::string out = "[";
  for (uint64_t i = 0; i < std::min(count, most); ++i) {
    if (i > 0) out += ", ";
    if (element == GgufType::String)
      out += quoted_name(texts[i]);
    else if (element == GgufType::Array)
      out += strformat("{} values", values[i].count);
    else
      out += number_text(*this, i);
  }
  return out + (count > most ? strformat(", ... {} {}s]", count, name(element)) : "]");
}

GgufValue GgufValue::made(GgufType type, bool array, std::span<const std::byte> numbers) {
  GgufValue made;
  made.owner = std::make_shared<const std::string>(reinterpret_cast<const char*>(numbers.data()),
                                                   numbers.size());
  made.bytes = std::as_bytes(std::span(*made.owner));
  made.type = array ? GgufType::Array : type;
  made.element = type;
  made.count = type == GgufType::String ? 1 : numbers.size() / size_of(type);
  return made;
}

GgufValue GgufValue::of(std::string_view text) {
  return made(GgufType::String, false, std::as_bytes(std::span(text)));
}

GgufValue GgufValue::of_texts(std::span<const std::string> texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  GgufValue value = of(all);
  value.type = GgufType::Array;
  value.count = texts.size();
  size_t at = 0;
  for (const std::string& text : texts) {
    value.texts.push_back(value.text().substr(at, text.size()));
    at += text.size();
  }
  return value;
}

}  // namespace weft
