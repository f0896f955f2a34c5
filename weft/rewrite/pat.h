// Pat: a pattern, a replacement or a condition as a constexpr value (packed nodes in postfix
// order).
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>

#include "weft/dtype/dtype.h"
#include "weft/graph/op.h"

namespace weft {

enum class PatKind : uint8_t {
  Op,        ///< `op` over `nsrc` sources; arg: see Pat::kAnyArg
  Any,       ///< variable `arg`
  Const,     ///< variable `arg`, bound to a constant
  Int,       ///< literal number `arg` of the pool
  Float,     ///< the same, a double's bits
  Bind,      ///< (pattern) the node just matched is also variable `arg`
  Typed,     ///< (pattern) the node just matched has dtype `arg`
  CastLike,  ///< (replacement) cast to the dtype of variable `arg`
  Fn,        ///< (condition, constant part of a replacement) function `op` (a PatFn)
};

/// What conditions may ask. Each gives an integer; what cannot be known makes the condition false.
enum class PatFn : uint8_t {
  VMin,
  VMax,
  Divides,
  Gcd,
  Log2,
  IsPow2,
  IsFloat,
  IsInt,
  IsSigned,
  IsBool,
  IsIndex,
  Bits,
  Exact,
  SameDType,
  Native,
};

struct PatNode {
  PatKind kind;
  uint8_t op;
  uint8_t arg;
  uint8_t nsrc;
  friend constexpr bool operator==(const PatNode&, const PatNode&) = default;
};

/// Variables: x y z w (in the rule's domain), p q (bool), c0..c3 (constants in the domain).
inline constexpr int kPatSlots = 10, kFirstBoolSlot = 4, kFirstConstSlot = 6;

struct Pat {
  static constexpr int kMaxNodes = 24, kMaxLiterals = 6;
  /// Op nodes: arg is 0 = unspecified, or 1 + target dtype of a cast.
  static constexpr uint8_t kAnyArg = 0;

  PatNode node[kMaxNodes] = {};
  int64_t literal[kMaxLiterals] = {};
  uint8_t size = 0, literals = 0;

  constexpr Pat() = default;
  template <std::integral T>
  constexpr Pat(T value) {  // NOLINT: implicit, so that x + 1 reads
    push_literal(PatKind::Int, static_cast<int64_t>(value));
  }
  constexpr Pat(double value) {  // NOLINT
    push_literal(PatKind::Float, std::bit_cast<int64_t>(value));
  }
  static constexpr Pat variable(int slot) {
    Pat v;
    const PatKind kind = slot >= kFirstConstSlot ? PatKind::Const : PatKind::Any;
    v.push({kind, 0, static_cast<uint8_t>(slot), 0});
    return v;
  }

  constexpr void push(PatNode n) {
    if (size == kMaxNodes) throw "rewrite rule: pattern has too many nodes";
    node[size++] = n;
  }
  constexpr void push_literal(PatKind kind, int64_t bits) {
    uint8_t at = 0;
    while (at < literals && literal[at] != bits) ++at;
    if (at == kMaxLiterals) throw "rewrite rule: pattern has too many literals";
    if (at == literals) literal[literals++] = bits;
    push({kind, 0, at, 0});
  }
  constexpr void append(const Pat& part) {
    for (int i = 0; i < part.size; ++i) {
      const PatNode n = part.node[i];
      if (n.kind == PatKind::Int || n.kind == PatKind::Float)
        push_literal(n.kind, part.literal[n.arg]);
      else
        push(n);
    }
  }

  constexpr bool empty() const { return size == 0; }
  constexpr const PatNode& root() const { return node[size - 1]; }
  constexpr bool is_variable() const { return size == 1 && node[0].kind == PatKind::Any; }

  /// y(pattern): the pattern, with the node it matches also bound to y.
  constexpr Pat operator()(const Pat& inner) const {
    if (!is_variable()) throw "rewrite rule: only x y z w p q can name a pattern";
    Pat out = inner;
    out.push({PatKind::Bind, 0, node[0].arg, 0});
    return out;
  }
};

namespace pat {

// ---- variables
inline constexpr Pat x = Pat::variable(0), y = Pat::variable(1), z = Pat::variable(2),
                     w = Pat::variable(3), p = Pat::variable(4), q = Pat::variable(5),
                     c0 = Pat::variable(6), c1 = Pat::variable(7), c2 = Pat::variable(8),
                     c3 = Pat::variable(9);

// ---- any op
template <std::same_as<Pat>... Src>
constexpr Pat op(Op op, const Src&... src) {
  Pat out;
  (out.append(src), ...);
  out.push({PatKind::Op, static_cast<uint8_t>(op), Pat::kAnyArg, sizeof...(Src)});
  return out;
}
/// `pattern`, of exactly this dtype.
constexpr Pat typed(const Pat& pattern, DType dtype) {
  Pat out = pattern;
  out.push({PatKind::Typed, 0, static_cast<uint8_t>(dtype), 0});
  return out;
}

}  // namespace pat

// ---- operators: `/` is floor division (pat::fdiv is IEEE division), a - b is a + (-b)
// clang-format off
constexpr Pat operator+(const Pat& a, const Pat& b) { return pat::op(Op::Add, a, b); }
constexpr Pat operator*(const Pat& a, const Pat& b) { return pat::op(Op::Mul, a, b); }
constexpr Pat operator/(const Pat& a, const Pat& b) { return pat::op(Op::IDiv, a, b); }
constexpr Pat operator%(const Pat& a, const Pat& b) { return pat::op(Op::Mod, a, b); }
constexpr Pat operator-(const Pat& a) { return pat::op(Op::Neg, a); }
constexpr Pat operator-(const Pat& a, const Pat& b) { return a + -b; }
constexpr Pat operator<(const Pat& a, const Pat& b) { return pat::op(Op::Lt, a, b); }
constexpr Pat operator<=(const Pat& a, const Pat& b) { return pat::op(Op::Le, a, b); }
constexpr Pat operator>(const Pat& a, const Pat& b) { return b < a; }
constexpr Pat operator>=(const Pat& a, const Pat& b) { return b <= a; }
constexpr Pat operator==(const Pat& a, const Pat& b) { return pat::op(Op::Eq, a, b); }
constexpr Pat operator!=(const Pat& a, const Pat& b) { return pat::op(Op::Ne, a, b); }
constexpr Pat operator&(const Pat& a, const Pat& b) { return pat::op(Op::And, a, b); }
constexpr Pat operator|(const Pat& a, const Pat& b) { return pat::op(Op::Or, a, b); }
constexpr Pat operator^(const Pat& a, const Pat& b) { return pat::op(Op::Xor, a, b); }
constexpr Pat operator<<(const Pat& a, const Pat& b) { return pat::op(Op::Shl, a, b); }
constexpr Pat operator>>(const Pat& a, const Pat& b) { return pat::op(Op::Shr, a, b); }
constexpr Pat operator!(const Pat& a) { return pat::op(Op::Not, a); }
constexpr Pat operator~(const Pat& a) { return pat::op(Op::Not, a); }
constexpr Pat operator&&(const Pat& a, const Pat& b) { return a & b; }
constexpr Pat operator||(const Pat& a, const Pat& b) { return a | b; }

namespace pat {
constexpr Pat max(const Pat& a, const Pat& b) { return op(Op::Max, a, b); }
constexpr Pat min(const Pat& a, const Pat& b) { return op(Op::Min, a, b); }
constexpr Pat where(const Pat& cond, const Pat& a, const Pat& b) { return op(Op::Where, cond, a, b); }
constexpr Pat mulacc(const Pat& a, const Pat& b, const Pat& c) { return op(Op::MulAcc, a, b, c); }
constexpr Pat fdiv(const Pat& a, const Pat& b) { return op(Op::Div, a, b); }
constexpr Pat sqrt(const Pat& a) { return op(Op::Sqrt, a); }
constexpr Pat exp2(const Pat& a) { return op(Op::Exp2, a); }
constexpr Pat log2(const Pat& a) { return op(Op::Log2, a); }
constexpr Pat sin(const Pat& a) { return op(Op::Sin, a); }
constexpr Pat trunc(const Pat& a) { return op(Op::Trunc, a); }
constexpr Pat bitcast(const Pat& a) { return op(Op::Bitcast, a); }
constexpr Pat to_index(const Pat& a, const Pat& size) { return op(Op::ToIndex, a, size); }
/// Pattern: a cast to anything. Replacement: a cast to the dtype of the node that is replaced.
constexpr Pat cast(const Pat& a) { return op(Op::Cast, a); }
constexpr Pat cast(const Pat& a, DType to) {
  Pat out = op(Op::Cast, a);
  out.node[out.size - 1].arg = static_cast<uint8_t>(1 + static_cast<int>(to));
  return out;
}
constexpr Pat bitcast(const Pat& a, DType to) {
  Pat out = op(Op::Bitcast, a);
  out.node[out.size - 1].arg = static_cast<uint8_t>(1 + static_cast<int>(to));
  return out;
}
/// Replacement: a cast to the dtype of a variable.
constexpr Pat cast_like(const Pat& a, const Pat& variable) {
  Pat out = a;
  out.push({PatKind::CastLike, 0, variable.root().arg, 1});
  return out;
}

// ---- conditions
template <std::same_as<Pat>... Src>
constexpr Pat fn(PatFn f, uint8_t arg, const Src&... src) {
  Pat out;
  (out.append(src), ...);
  out.push({PatKind::Fn, static_cast<uint8_t>(f), arg, sizeof...(Src)});
  return out;
}
constexpr Pat vmin(const Pat& a) { return fn(PatFn::VMin, 0, a); }  ///< least value a can have
constexpr Pat vmax(const Pat& a) { return fn(PatFn::VMax, 0, a); }
constexpr Pat divides(const Pat& c, const Pat& a) { return fn(PatFn::Divides, 0, c, a); }  ///< c | every value of a
constexpr Pat gcd(const Pat& a, const Pat& b) { return fn(PatFn::Gcd, 0, a, b); }
constexpr Pat ilog2(const Pat& c) { return fn(PatFn::Log2, 0, c); }  ///< of a power of two; else false
constexpr Pat is_pow2(const Pat& c) { return fn(PatFn::IsPow2, 0, c); }
constexpr Pat is_float(const Pat& a) { return fn(PatFn::IsFloat, 0, a); }
constexpr Pat is_int(const Pat& a) { return fn(PatFn::IsInt, 0, a); }  ///< i8..i64, u8..u64
constexpr Pat is_signed(const Pat& a) { return fn(PatFn::IsSigned, 0, a); }
constexpr Pat is_bool(const Pat& a) { return fn(PatFn::IsBool, 0, a); }
constexpr Pat is_index(const Pat& a) { return fn(PatFn::IsIndex, 0, a); }
constexpr Pat bits(const Pat& a) { return fn(PatFn::Bits, 0, a); }
constexpr Pat exact(const Pat& a, const Pat& b) { return fn(PatFn::Exact, 0, a, b); }  ///< b's dtype holds every value of a's
constexpr Pat same_dtype(const Pat& a, const Pat& b) { return fn(PatFn::SameDType, 0, a, b); }
constexpr Pat native_op(Op o, const Pat& a) { return fn(PatFn::Native, static_cast<uint8_t>(o), a); }  ///< the target has o on a's dtype
}  // namespace pat
// clang-format on

}  // namespace weft
