#include "weft/graph/fold.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "weft/base/error.h"

namespace weft {
namespace {

/// a < b where -0 < +0.
template <class T>
bool below(T a, T b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

template <class T>
std::optional<T> fold_float(Op op, std::span<const Value> v) {
  const T a = static_cast<T>(v[0].as_double());
  const T b = v.size() > 1 ? static_cast<T>(v[1].as_double()) : T(0);
  switch (op) {
    case Op::Neg: return -a;
    case Op::Sqrt: return std::sqrt(a);
    case Op::Rint: return std::nearbyint(a);
    case Op::Trunc: return std::trunc(a);
    case Op::Add: return a + b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::Rem: return std::fmod(a, b);
    case Op::Max: return std::isnan(a) ? a : std::isnan(b) || below(a, b) ? b : a;
    case Op::Min: return std::isnan(a) ? a : std::isnan(b) || below(b, a) ? b : a;
    case Op::MulAcc: return std::fma(a, b, static_cast<T>(v[2].as_double()));
    default: return std::nullopt;
  }
}

uint64_t shift_left(uint64_t a, int64_t by, int width) {
  return by < 0 || by >= width ? 0 : a << by;
}

uint64_t shift_right(DType dtype, Value a, int64_t by) {
  const int width = bits(dtype);
  const bool out = by < 0 || by >= width;
  if (is_unsigned(dtype) || dtype == DType::Bool) return out ? 0 : a.as_uint() >> by;
  const int64_t s = a.as_int();
  return static_cast<uint64_t>(out ? (s < 0 ? -1 : 0) : s >> by);
}

uint64_t floor_div(DType dtype, Value a, Value b, bool remainder) {
  if (is_unsigned(dtype) || dtype == DType::Bool) {
    if (b.as_uint() == 0) return 0;
    return remainder ? a.as_uint() % b.as_uint() : a.as_uint() / b.as_uint();
  }
  const int64_t x = a.as_int(), y = b.as_int();
  if (y == 0) return 0;
  if (y == -1) return remainder ? 0 : 0 - static_cast<uint64_t>(x);  // INT_MIN / -1 wraps
  int64_t q = x / y, r = x % y;
  if (r != 0 && (r < 0) != (y < 0)) {
    --q;
    r += y;
  }
  return static_cast<uint64_t>(remainder ? r : q);
}

std::optional<uint64_t> truncated_div(DType dtype, Value a, Value b, bool remainder) {
  if (b.as_uint() == 0) return std::nullopt;  // excluded by the op
  if (is_unsigned(dtype) || dtype == DType::Bool) {
    return remainder ? a.as_uint() % b.as_uint() : a.as_uint() / b.as_uint();
  }
  const int64_t x = a.as_int(), y = b.as_int();
  if (y == -1) return remainder ? 0 : 0 - static_cast<uint64_t>(x);  // INT_MIN / -1 wraps
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

bool less(Value a, Value b) {
  return is_unsigned(a.dtype()) ? a.as_uint() < b.as_uint() : a.as_int() < b.as_int();
}

std::optional<uint64_t> fold_int(Op op, DType dtype, std::span<const Value> v) {
  const uint64_t a = v[0].as_uint(), b = v.size() > 1 ? v[1].as_uint() : 0;
  const bool boolean = dtype == DType::Bool;
  switch (op) {
    case Op::Neg: return boolean ? a : 0 - a;
    case Op::Not: return boolean ? a ^ 1 : ~a;
    case Op::Add: return boolean ? (a | b) : a + b;
    case Op::Mul: return boolean ? (a & b) : a * b;
    case Op::IDiv: return floor_div(dtype, v[0], v[1], false);
    case Op::Mod: return floor_div(dtype, v[0], v[1], true);
    case Op::CDiv: return truncated_div(dtype, v[0], v[1], false);
    case Op::CMod: return truncated_div(dtype, v[0], v[1], true);
    case Op::Max: return less(v[0], v[1]) ? b : a;
    case Op::Min: return less(v[1], v[0]) ? b : a;
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Shl: return shift_left(a, v[1].as_int(), boolean ? 1 : bits(dtype));
    case Op::Shr: return shift_right(dtype, v[0], v[1].as_int());
    case Op::MulAcc: return a * b + v[2].as_uint();
    default: return std::nullopt;
  }
}

Value bitcast(DType dtype, Value v) {
  std::array<std::byte, 8> storage{};
  v.store(storage.data());
  return Value::load(dtype, storage.data());
}

std::optional<Value> compare(Op op, Value a, Value b) {
  bool lt, eq;
  if (is_float(a.dtype())) {
    const double x = a.as_double(), y = b.as_double();
    lt = x < y;
    eq = x == y;
  } else {
    lt = less(a, b);
    eq = a.as_uint() == b.as_uint();
  }
  switch (op) {
    case Op::Lt: return Value::boolean(lt);
    case Op::Le: return Value::boolean(lt || eq);
    case Op::Eq: return Value::boolean(eq);
    default: return Value::boolean(!eq);
  }
}

}  // namespace

std::optional<Value> fold_constants(Op op, DType dtype, std::span<const Value> v) {
  if (op == Op::Where) return v[0].as_int() ? v[1] : v[2];
  if (op == Op::Cast) return v[0].cast(dtype);
  if (op == Op::Bitcast) return bitcast(dtype, v[0]);
  if (op == Op::ToIndex) return std::nullopt;
  if (has_trait(op, kBoolResult)) return compare(op, v[0], v[1]);
  if (dtype == DType::F64) {
    const auto r = fold_float<double>(op, v);
    return r ? std::optional(Value::of(dtype, *r)) : std::nullopt;
  }
  if (is_float(dtype)) {
    const auto r = fold_float<float>(op, v);
    return r ? std::optional(Value::of(dtype, static_cast<double>(*r))) : std::nullopt;
  }
  const auto r = fold_int(op, dtype, v);
  return r ? std::optional(Value::of(dtype, *r)) : std::nullopt;
}

Value fold_identity(Fold fold, DType dtype) {
  switch (fold) {
    case Fold::Add:
    case Fold::Or: return Value::of(dtype, 0);
    case Fold::Mul: return Value::of(dtype, 1);
    case Fold::And: return is_bool(dtype) ? Value::boolean(true) : Value::of(dtype, int64_t{-1});
    case Fold::Max:
      return is_float(dtype) ? Value::of(dtype, -float_top(dtype))
                             : Value::of(dtype, int_min(dtype));
    case Fold::Min:
      return is_float(dtype) ? Value::of(dtype, float_top(dtype))
                             : Value::of(dtype, int_max(dtype));
    case Fold::Set: break;
  }
  internal_error("graph", "a reduction cannot fold with {}", fold_name(fold));
}

NodeRef folded_once(Graph& g, Fold fold, NodeRef value) {
  if (fold != Fold::Add || !is_float(value->dtype)) return value;
  return g.add(value, g.constant(Value::of(value->dtype, 0.0)));
}

}  // namespace weft
