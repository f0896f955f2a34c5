#include "tests/support/compiler/ptx_instruction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/dtype/value.h"

namespace weft::testing::ptx {

namespace {

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"pred", Type::Pred}, {"s8", Type::S8},   {"u8", Type::U8},     {"b8", Type::U8},
    {"s16", Type::S16},   {"u16", Type::U16}, {"b16", Type::U16},   {"s32", Type::S32},
    {"u32", Type::U32},   {"b32", Type::U32}, {"s64", Type::S64},   {"u64", Type::U64},
    {"b64", Type::U64},   {"f16", Type::F16}, {"bf16", Type::BF16}, {"f32", Type::F32},
    {"f64", Type::F64},
};

template <class T>
T as(uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) return bits != 0;
  T value{};
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, bool>) return value ? 1 : 0;
  if constexpr (std::is_integral_v<T> && sizeof(T) < 4)
    return bits_of(static_cast<std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>(value));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

/// Calls `f` with a T of the type's; halves have none.
template <class F>
uint64_t typed(Type type, F f) {
  switch (type) {
    case Type::Pred: return f(bool{});
    case Type::S8: return f(int8_t{});
    case Type::U8: return f(uint8_t{});
    case Type::S16: return f(int16_t{});
    case Type::U16: return f(uint16_t{});
    case Type::S32: return f(int32_t{});
    case Type::U32: return f(uint32_t{});
    case Type::S64: return f(int64_t{});
    case Type::U64: return f(uint64_t{});
    case Type::F32: return f(float{});
    case Type::F64: return f(double{});
    default: internal_error("ptx", "no arithmetic on halves is known");
  }
}

template <class T>
T integer_result(std::string_view op, T a, T b, T c) {
  using U = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;
  using W = std::conditional_t<(sizeof(T) < 8), uint64_t, U>;  // wide enough not to be promoted
  const auto x = static_cast<W>(a), y = static_cast<W>(b), z = static_cast<W>(c);
  if (op == "add") return static_cast<T>(x + y);
  if (op == "mul") return static_cast<T>(x * y);
  if (op == "mad") return static_cast<T>(x * y + z);
  if (op == "neg") return static_cast<T>(W{0} - x);
  if (op == "and") return static_cast<T>(x & y);
  if (op == "or") return static_cast<T>(x | y);
  if (op == "xor") return static_cast<T>(x ^ y);
  if (op == "not") return std::is_same_v<T, bool> ? static_cast<T>(!a) : static_cast<T>(~x);
  if (op == "min") return std::min(a, b);
  if (op == "max") return std::max(a, b);
  WEFT_CHECK(op == "div" || op == "rem", "unknown PTX instruction {}", op);
  // The manual says nothing of these; the text must not depend on them.
  if (b == 0) return static_cast<T>(0x5A5A5A5A);
  if (std::is_signed_v<T> && y == static_cast<W>(T(-1)) && a == std::numeric_limits<T>::min())
    return static_cast<T>(0x5A5A5A5A);
  return static_cast<T>(op == "div" ? a / b : a % b);
}

// "Floating Point Instructions: max": with .NaN a NaN of either is the result, +0 is above -0;
// without, the other operand, and nothing is said of zeros.
template <class T>
T extreme(const Instruction& what, T a, T b) {
  const bool most = what.op == "max";
  if (what.has("NaN")) {
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) == most ? b : a;
  }
  if (a != a) return b;
  if (b != b) return a;
  return (most ? a > b : a < b) ? a : b;
}

template <class T>
T float_result(const Instruction& what, T a, T b, T c) {
  const std::string_view op = what.op;
  if (op == "neg") return -a;
  if (op == "min" || op == "max") return extreme(what, a, b);
  WEFT_CHECK(what.has("rn"), "{} on floats without .rn", op);
  if (op == "add") return a + b;
  if (op == "mul") return a * b;
  if (op == "div") return a / b;
  if (op == "fma") return std::fma(a, b, c);
  WEFT_CHECK(op == "sqrt", "unknown PTX instruction {}", op);
  return std::sqrt(a);
}

/// "Comparison and Selection Instructions: setp": what ends in u is true with NaN.
template <class T>
bool compared(std::string_view how, T a, T b) {
  if (how == "eq") return a == b;
  if (how == "ne") return a == a && b == b && a != b;
  if (how == "neu") return !(a == b);
  if (how == "lt") return a < b;
  if (how == "le") return a <= b;
  if (how == "gt") return a > b;
  if (how == "ge") return a >= b;
  WEFT_CHECK(how == "nan", "unknown comparison {}", how);
  return a != a || b != b;
}

uint64_t shifted(const Instruction& what, uint64_t x, uint64_t by) {
  const auto amount = static_cast<uint32_t>(by);
  return typed(what.types[0], [&](auto t) -> uint64_t {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const T value = as<T>(x);
      if (amount >= sizeof(T) * 8) return bits_of(T(what.op == "shr" && value < 0 ? -1 : 0));
      if (what.op == "shr") return bits_of(static_cast<T>(value >> amount));
      return bits_of(static_cast<T>(static_cast<std::make_unsigned_t<T>>(value) << amount));
    } else {
      internal_error("ptx", "a shift of no integer");
    }
  });
}

// ---- cvt

/// Any source, exactly.
long double source_value(Type type, uint64_t bits) {
  if (type == Type::F16 || type == Type::BF16)
    return Value::load(type == Type::F16 ? DType::F16 : DType::BF16, &bits).as_double();
  long double value = 0;
  typed(type, [&](auto t) -> uint64_t {
    value = static_cast<long double>(as<decltype(t)>(bits));
    return 0;
  });
  return value;
}

template <class T>
T towards_zero(long double x) {
  T value = static_cast<T>(x);
  if (std::isinf(value) && !std::isinf(x))
    return std::copysign(std::numeric_limits<T>::max(), value);
  return std::fabs(static_cast<long double>(value)) > std::fabs(x) ? std::nextafter(value, T{0})
                                                                   : value;
}

/// "In float-to-integer conversions": limits, and what NaN becomes.
template <class T>
T whole(long double x, Type from) {
  if (std::isnan(x)) {
    if (from != Type::F64 && sizeof(T) < 8) return 0;
    return static_cast<T>(uint64_t{1} << (sizeof(T) * 8 - 1));
  }
  const auto low = static_cast<long double>(std::numeric_limits<T>::min());
  const auto high = static_cast<long double>(std::numeric_limits<T>::max());
  return static_cast<T>(std::clamp(std::trunc(x), low, high));
}

template <class T>
uint64_t converted_to(const Instruction& what, Type from, uint64_t x) {
  const bool of_float = from >= Type::F16;
  if constexpr (std::is_floating_point_v<T>) {
    const long double value = source_value(from, x);
    if (what.has("rzi")) return bits_of(static_cast<T>(std::trunc(value)));
    if (what.has("rni")) return bits_of(static_cast<T>(std::nearbyint(value)));
    if (what.has("rz")) return bits_of(towards_zero<T>(value));
    const bool exact = from == Type::F16 || (from == Type::F32 && sizeof(T) == 8);
    WEFT_CHECK(what.has("rn") != exact, "cvt.rn where it is needed and nowhere else");
    return bits_of(static_cast<T>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    internal_error("ptx", "cvt to a predicate");
  } else {
    WEFT_CHECK(what.has("rzi") == of_float, "cvt.rzi of floats");
    if (of_float) return bits_of(whole<T>(source_value(from, x), from));
    return typed(from, [&](auto s) { return bits_of(static_cast<T>(as<decltype(s)>(x))); });
  }
}

uint64_t converted(const Instruction& what, uint64_t x) {
  const Type to = what.types[0], from = what.types[1];
  if (to != Type::F16 && to != Type::BF16)
    return typed(to, [&](auto t) { return converted_to<decltype(t)>(what, from, x); });
  WEFT_CHECK(from == Type::F32 && what.has("rn"), "cvt to a half from f32 alone, .rn");
  uint16_t half = 0;
  Value::of(to == Type::F16 ? DType::F16 : DType::BF16, static_cast<double>(as<float>(x)))
      .store(&half);
  return half;
}

uint64_t arithmetic(const Instruction& what, const uint64_t* v) {
  return typed(what.types[0], [&](auto t) -> uint64_t {
    using T = decltype(t);
    if constexpr (std::is_floating_point_v<T>)
      return bits_of(float_result<T>(what, as<T>(v[0]), as<T>(v[1]), as<T>(v[2])));
    else
      return bits_of(integer_result<T>(what.op, as<T>(v[0]), as<T>(v[1]), as<T>(v[2])));
  });
}

}  // namespace

Instruction Instruction::parse(std::string_view text) {
  Instruction out;
  for (bool first = true; !text.empty(); first = false) {
    const size_t dot = std::min(text.find('.'), text.size());
    const std::string_view word = text.substr(0, dot);
    text.remove_prefix(std::min(dot + 1, text.size()));
    const auto* type = std::ranges::find(kTypes, word, &std::pair<std::string_view, Type>::first);
    if (first)
      out.op = word;
    else if (type != std::end(kTypes))
      out.types.push_back(type->second);
    else
      out.words.emplace_back(word);
  }
  return out;
}

bool Instruction::has(std::string_view word) const { return std::ranges::count(words, word) > 0; }

int bytes_of(Type type) {
  if (type == Type::F16 || type == Type::BF16) return 2;
  return static_cast<int>(typed(type, [](auto t) { return uint64_t{sizeof t}; }));
}

uint64_t extended(Type type, uint64_t bits) {
  return typed(type, [&](auto t) { return bits_of(as<decltype(t)>(bits)); });
}

uint64_t compute(const Instruction& what, const uint64_t* v) {
  if (what.op == "mov" || what.op == "cvta") return v[0];
  if (what.op == "selp") return v[2] ? v[0] : v[1];
  if (what.op == "shl" || what.op == "shr") return shifted(what, v[0], v[1]);
  if (what.op == "cvt") return converted(what, v[0]);
  if (what.op == "setp")
    return typed(what.types[0], [&](auto t) -> uint64_t {
      return compared(what.words[0], as<decltype(t)>(v[0]), as<decltype(t)>(v[1]));
    });
  if (what.op == "mad" && what.has("wide"))
    return static_cast<uint64_t>(int64_t{as<int32_t>(v[0])} * as<int32_t>(v[1])) + v[2];
  return arithmetic(what, v);
}

}  // namespace weft::testing::ptx
