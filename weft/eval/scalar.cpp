#include "weft/eval/scalar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "weft/base/error.h"
#include "weft/base/int128.h"

namespace weft::eval {
namespace {

__extension__ using Wide = __int128;
__extension__ using Bits = unsigned __int128;

// ---- functions: one of ops.def on floats, doubles or integers. long double results, the reference
// of ulp tests, are rounded once.

#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, value, ...)               \
  template <class T>                                                                              \
  T value_of_##Name([[maybe_unused]] T x, [[maybe_unused]] T other, [[maybe_unused]] int width) { \
    if constexpr (((traits) & (std::is_same_v<T, Wide> ? kFloatOnly : kIntOnly)) == 0)            \
      return static_cast<T>(value);                                                               \
    else                                                                                          \
      internal_error("eval", "{} is not defined for these operands", mnemonic);                   \
  }
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION

// ---- floats: each op in float or double

template <class T>
struct FloatRow {
  Op op;
  T (*apply)(T a, T b, T c);
};

template <class T>
constexpr FloatRow<T> kFloatRows[] = {
#define WEFT_FUNCTION(id, Name, ...) \
  {Op::Name, [](T a, T b, T) { return value_of_##Name(a, b, 0); }},
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
    {Op::Neg, [](T a, T, T) { return -a; }},
    {Op::Rint, [](T a, T, T) { return std::nearbyint(a); }},
    {Op::Trunc, [](T a, T, T) { return std::trunc(a); }},
    {Op::Add, [](T a, T b, T) { return a + b; }},
    {Op::Mul, [](T a, T b, T) { return a * b; }},
    {Op::Div, [](T a, T b, T) { return a / b; }},
    {Op::Rem, [](T a, T b, T) { return std::fmod(a, b); }},
    {Op::MulAcc, [](T a, T b, T c) { return std::fma(a, b, c); }},
    {Op::MulAdd, [](T a, T b, T c) { return std::fma(a, b, c); }},
};

template <class T>
Value apply_float(Op op, DType dtype, const std::array<Value, 3>& v) {
  for (const FloatRow<T>& row : kFloatRows<T>)
    if (row.op == op)
      return Value::of(dtype, static_cast<double>(row.apply(static_cast<T>(v[0].as_double()),
                                                            static_cast<T>(v[1].as_double()),
                                                            static_cast<T>(v[2].as_double()))));
  internal_error("eval", "{} is not defined for {}", info(op).mnemonic, name(dtype));
}

// ---- integers: the mathematical result, of which the low bits are kept

/// Sign- or zero-extended operand; b is also the shift count.
struct IntOperands {
  Wide a, b, c;
  int width;
};

Wide floor_quotient(Wide a, Wide b) {
  if (b == 0) return 0;
  const Wide q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
Wide floor_remainder(Wide a, Wide b) { return b == 0 ? 0 : a - b * floor_quotient(a, b); }
/// Modulo 2^128, of which only the low 64 bits are used.
Wide product(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<Bits>(a) * static_cast<Bits>(b));
}
Wide left(Wide a, Wide by, int width) {
  return by < 0 || by >= width ? 0
                               : static_cast<Wide>(static_cast<Bits>(a) << static_cast<int>(by));
}
Wide right(Wide a, Wide by, int width) {
  if (by < 0 || by >= width) return a < 0 ? -1 : 0;
  return a >> static_cast<int>(by);
}
/// The low bits of the sum; Wide itself may overflow only past 2^127, far from 64-bit operands.
struct IntRow {
  Op op;
  Wide (*apply)(const IntOperands& v);
};

constexpr IntRow kIntRows[] = {
#define WEFT_FUNCTION(id, Name, ...) \
  {Op::Name, [](const IntOperands& v) { return value_of_##Name(v.a, v.b, v.width); }},
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
    {Op::Neg, [](const IntOperands& v) { return -v.a; }},
    {Op::Not, [](const IntOperands& v) { return ~v.a; }},
    {Op::Add, [](const IntOperands& v) { return v.a + v.b; }},
    {Op::Mul, [](const IntOperands& v) { return product(v.a, v.b); }},
    {Op::IDiv, [](const IntOperands& v) { return floor_quotient(v.a, v.b); }},
    {Op::Mod, [](const IntOperands& v) { return floor_remainder(v.a, v.b); }},
    {Op::And, [](const IntOperands& v) { return v.a & v.b; }},
    {Op::Or, [](const IntOperands& v) { return v.a | v.b; }},
    {Op::Xor, [](const IntOperands& v) { return v.a ^ v.b; }},
    {Op::Shl, [](const IntOperands& v) { return left(v.a, v.b, v.width); }},
    {Op::Shr, [](const IntOperands& v) { return right(v.a, v.b, v.width); }},
    {Op::MulAcc,
     [](const IntOperands& v) {
       return static_cast<Wide>(static_cast<Bits>(product(v.a, v.b)) + static_cast<Bits>(v.c));
     }},
};

Wide widened(Value v) {
  return is_unsigned(v.dtype()) ? static_cast<Wide>(v.as_uint()) : static_cast<Wide>(v.as_int());
}

Value apply_int(Op op, DType dtype, const std::array<Value, 3>& v) {
  // Bool is a number that is 0 or not: add is or, mul is and; not is its own case.
  if (dtype == DType::Bool && op == Op::Not) return Value::boolean(!v[0].as_bool());
  const int width = dtype == DType::Bool ? 1 : bits(dtype);
  const IntOperands operands{widened(v[0]), widened(v[1]), widened(v[2]), width};
  for (const IntRow& row : kIntRows)
    if (row.op == op) return Value::of(dtype, static_cast<uint64_t>(row.apply(operands)));
  internal_error("eval", "{} is not defined for {}", info(op).mnemonic, name(dtype));
}

// ---- the rest

bool compare(Op op, Value a, Value b) {
  if (is_float(a.dtype())) {
    const double x = a.as_double(), y = b.as_double();
    return op == Op::Lt ? x < y : op == Op::Le ? x <= y : op == Op::Eq ? x == y : x != y;
  }
  const Wide x = widened(a), y = widened(b);
  return op == Op::Lt ? x < y : op == Op::Le ? x <= y : op == Op::Eq ? x == y : x != y;
}

Value bitcast(DType dtype, Value v) {
  std::array<std::byte, 8> storage{};
  v.store(storage.data());
  return Value::load(dtype, storage.data());
}

/// Element i, of so many bits, of a word.
uint64_t element(Value word, int width, int i) {
  return word.as_uint() >> (i * width) & ((uint64_t{1} << width) - 1);
}

float bf16_value(uint64_t bits16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits16 << 16));
}

Value dot2(Value a, Value b, Value c) {
  auto sum = static_cast<float>(c.as_double());
  for (int i = 0; i < 2; ++i)
    sum = std::fma(bf16_value(element(a, 16, i)), bf16_value(element(b, 16, i)), sum);
  return Value::of(DType::F32, static_cast<double>(sum));
}

Value dot4(Value a, Value b, Value c) {
  int64_t sum = c.as_int();
  for (int i = 0; i < 4; ++i)
    sum += static_cast<int64_t>(element(a, 8, i)) * static_cast<int8_t>(element(b, 8, i));
  return Value::of(DType::I32, static_cast<uint64_t>(sum));
}

int16_t i16_value(uint64_t bits16) { return static_cast<int16_t>(bits16); }

Value dot2_of_i16(Value a, Value b, Value c) {
  int64_t sum = c.as_int();
  for (int i = 0; i < 2; ++i)
    sum += int64_t{i16_value(element(a, 16, i))} * i16_value(element(b, 16, i));
  return Value::of(DType::I32, static_cast<uint64_t>(sum));
}

Value dot_pairs(Value a, Value b) {
  uint64_t word = 0;
  for (int pair = 0; pair < 2; ++pair) {
    int64_t sum = 0;
    for (int i = 2 * pair; i < 2 * pair + 2; ++i)
      sum += static_cast<int64_t>(element(a, 8, i)) * static_cast<int8_t>(element(b, 8, i));
    sum = std::clamp<int64_t>(sum, INT16_MIN, INT16_MAX);
    word |= static_cast<uint64_t>(static_cast<uint16_t>(sum)) << (16 * pair);
  }
  return Value::of(DType::U32, word);
}

Value lookup4(std::span<const Value> v) {
  uint64_t word = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t at = element(v[0], 8, i) & 15;
    word |= element(v[1 + at / 4], 8, static_cast<int>(at % 4)) << (8 * i);
  }
  return Value::of(DType::U32, word);
}

}  // namespace

Value apply(Op op, DType dtype, std::span<const Value> operands) {
  // Absent operands read as 0 of the first one's dtype; no row looks at them.
  std::array<Value, 3> v;
  v.fill(Value::of(operands[0].dtype(), 0));
  for (size_t i = 0; i < operands.size() && i < 3; ++i) v[i] = operands[i];
  switch (op) {
    case Op::Where: return v[0].as_bool() ? v[1] : v[2];
    case Op::Cast: return v[0].cast(dtype);
    case Op::Bitcast: return bitcast(dtype, v[0]);
    case Op::Dot2: return dot2(v[0], v[1], v[2]);
    case Op::Dot4: return dot4(v[0], v[1], v[2]);
    case Op::Dot2I16: return dot2_of_i16(v[0], v[1], v[2]);
    case Op::DotPairs: return dot_pairs(v[0], v[1]);
    case Op::Lookup4: return lookup4(operands);
    case Op::Lt:
    case Op::Le:
    case Op::Eq:
    case Op::Ne: return Value::boolean(compare(op, v[0], v[1]));
    default: break;
  }
  if (dtype == DType::F64) return apply_float<double>(op, dtype, v);
  return is_float(dtype) ? apply_float<float>(op, dtype, v) : apply_int(op, dtype, v);
}

Value fold(Fold kind, Value a, Value b) {
  const Value operands[] = {a, b};
  return kind == Fold::Set ? b : apply(fold_op(kind), a.dtype(), operands);
}

Value fold_identity(Fold kind, DType dtype) {
  switch (kind) {
    case Fold::Mul: return Value::of(dtype, 1);
    case Fold::Max:
      return is_float(dtype) ? Value::of(dtype, -float_top(dtype))
                             : Value::of(dtype, int_min(dtype));
    case Fold::Min:
      return is_float(dtype) ? Value::of(dtype, float_top(dtype))
                             : Value::of(dtype, int_max(dtype));
    case Fold::And: return Value::of(dtype, dtype == DType::Bool ? int64_t{1} : int64_t{-1});
    default: return Value::of(dtype, 0);
  }
}

}  // namespace weft::eval
