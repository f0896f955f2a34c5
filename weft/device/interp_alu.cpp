// Elementwise steps of the interpreter, one small function per op and dtype.
#include <cmath>
#include <limits>
#include <type_traits>

#include "weft/device/interp.h"

namespace weft::interp {

namespace {

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

// Where arithmetic wraps: unsigned, and never narrower than int, which C would promote to.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
constexpr bool out_of_width(T amount) {
  return static_cast<uint64_t>(amount) >= sizeof(T) * 8;  // negative ones too
}

/// a < b where -0 < +0.
template <class T>
bool below(T a, T b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

// NOLINTBEGIN: one line of meaning each.
#define UNARY(Name, expression)           \
  struct Name {                           \
    template <class T>                    \
    static T apply(T a) {                 \
      using W [[maybe_unused]] = Wide<T>; \
      expression                          \
    }                                     \
  };
#define BINARY(Name, R, expression)       \
  struct Name {                           \
    template <class T>                    \
    static R apply(T a, T b) {            \
      using W [[maybe_unused]] = Wide<T>; \
      expression                          \
    }                                     \
  };

UNARY(Neg, if constexpr (kIsFloat<T>) return -a;
      else return static_cast<T>(W(0) - static_cast<W>(a));)
UNARY(Not, return static_cast<T>(~a);)
UNARY(Sqrt, return std::sqrt(a);)
UNARY(Trunc, return std::trunc(a);)
UNARY(Rint, return std::nearbyint(a);)
BINARY(Add, T, if constexpr (kIsFloat<T>) return a + b; else return static_cast<T>(W(a) + W(b));)
BINARY(Mul, T, if constexpr (kIsFloat<T>) return a * b; else return static_cast<T>(W(a) * W(b));)
BINARY(Div, T, return a / b;)
BINARY(CDiv, T, if (std::is_signed_v<T> && b == T(-1)) return static_cast<T>(W(0) - W(a));
       return static_cast<T>(a / b);)
BINARY(CMod, T, if (std::is_signed_v<T> && b == T(-1)) return 0; return static_cast<T>(a % b);)
BINARY(Max, T, if constexpr (kIsFloat<T>) return a != a || below(b, a) ? a : b;
       else return a < b ? b : a;)
BINARY(Min, T, if constexpr (kIsFloat<T>) return a != a || below(a, b) ? a : b;
       else return b < a ? b : a;)
BINARY(Lt, uint8_t, return a < b;)
BINARY(Le, uint8_t, return a <= b;)
BINARY(Eq, uint8_t, return a == b;)
BINARY(Ne, uint8_t, return a != b;)
BINARY(And, T, return static_cast<T>(a & b);)
BINARY(Or, T, return static_cast<T>(a | b);)
BINARY(Xor, T, return static_cast<T>(a ^ b);)
BINARY(Shl, T, return out_of_width(b) ? T(0) : static_cast<T>(W(a) << b);)
BINARY(Shr, T, return out_of_width(b) ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> b);)
BINARY(AndNot, T, return static_cast<T>(a & (b ^ 1));)  // shifts of bool
UNARY(LogicalNot, return a ^ 1;)
UNARY(Same, return a;)
#undef UNARY
#undef BINARY
// NOLINTEND

template <class F, class T, bool kScalar>
const Instr* unary(const Instr* i, Frame& f) {
  T* out = at<T>(f, i->out);
  const T* a = at<T>(f, i->a);
  const uint32_t n = kScalar ? 1 : i->n;
  for (uint32_t k = 0; k < n; ++k) out[k] = F::template apply<T>(a[k]);
  return i + 1;
}

template <class F, class T, bool kScalar>
const Instr* binary(const Instr* i, Frame& f) {
  using R = decltype(F::template apply<T>(T{}, T{}));
  R* out = at<R>(f, i->out);
  const T *a = at<T>(f, i->a), *b = at<T>(f, i->b);
  const uint32_t n = kScalar ? 1 : i->n;
  for (uint32_t k = 0; k < n; ++k) out[k] = F::template apply<T>(a[k], b[k]);
  return i + 1;
}

template <class T, bool kScalar>
const Instr* mulacc(const Instr* i, Frame& f) {
  T* out = at<T>(f, i->out);
  const T *a = at<T>(f, i->a), *b = at<T>(f, i->b), *c = at<T>(f, i->c);
  const uint32_t n = kScalar ? 1 : i->n;
  for (uint32_t k = 0; k < n; ++k) {
    if constexpr (kIsFloat<T>) {
      out[k] = std::fma(a[k], b[k], c[k]);
    } else {
      out[k] = Add::apply<T>(Mul::apply<T>(a[k], b[k]), c[k]);
    }
  }
  return i + 1;
}

const Instr* bool_mulacc(const Instr* i, Frame& f) {
  const uint8_t *a = at<uint8_t>(f, i->a), *b = at<uint8_t>(f, i->b), *c = at<uint8_t>(f, i->c);
  uint8_t* out = at<uint8_t>(f, i->out);
  for (uint32_t k = 0; k < i->n; ++k) out[k] = static_cast<uint8_t>((a[k] & b[k]) | c[k]);
  return i + 1;
}

// a: condition; b, c: values, told apart by width alone.
template <class T, bool kScalar>
const Instr* where(const Instr* i, Frame& f) {
  T* out = at<T>(f, i->out);
  const uint8_t* condition = at<uint8_t>(f, i->a);
  const T *b = at<T>(f, i->b), *c = at<T>(f, i->c);
  const uint32_t n = kScalar ? 1 : i->n;
  for (uint32_t k = 0; k < n; ++k) out[k] = condition[k] ? b[k] : c[k];
  return i + 1;
}

template <class T, bool kScalar>
Step common_step(Op op) {
  switch (op) {
    case Op::Neg: return unary<Neg, T, kScalar>;
    case Op::Add: return binary<Add, T, kScalar>;
    case Op::Mul: return binary<Mul, T, kScalar>;
    case Op::Max: return binary<Max, T, kScalar>;
    case Op::Min: return binary<Min, T, kScalar>;
    case Op::Lt: return binary<Lt, T, kScalar>;
    case Op::Le: return binary<Le, T, kScalar>;
    case Op::Eq: return binary<Eq, T, kScalar>;
    case Op::Ne: return binary<Ne, T, kScalar>;
    case Op::MulAcc: return mulacc<T, kScalar>;
    default: return nullptr;
  }
}

template <class T, bool kScalar>
Step float_step(Op op) {
  switch (op) {
    case Op::Sqrt: return unary<Sqrt, T, kScalar>;
    case Op::Trunc: return unary<Trunc, T, kScalar>;
    case Op::Rint: return unary<Rint, T, kScalar>;
    case Op::Div: return binary<Div, T, kScalar>;
    default: return common_step<T, kScalar>(op);
  }
}

template <class T, bool kScalar>
Step int_step(Op op) {
  switch (op) {
    case Op::Not: return unary<Not, T, kScalar>;
    case Op::CDiv: return binary<CDiv, T, kScalar>;
    case Op::CMod: return binary<CMod, T, kScalar>;
    case Op::And: return binary<And, T, kScalar>;
    case Op::Or: return binary<Or, T, kScalar>;
    case Op::Xor: return binary<Xor, T, kScalar>;
    case Op::Shl: return binary<Shl, T, kScalar>;
    case Op::Shr: return binary<Shr, T, kScalar>;
    default: return common_step<T, kScalar>(op);
  }
}

Step bool_step(Op op) {
  using T = uint8_t;
  switch (op) {
    case Op::Neg: return unary<Same, T, false>;
    case Op::Not: return unary<LogicalNot, T, false>;
    case Op::Add:
    case Op::Max:
    case Op::Or: return binary<Or, T, false>;
    case Op::Mul:
    case Op::Min:
    case Op::And: return binary<And, T, false>;
    case Op::Xor: return binary<Xor, T, false>;
    case Op::Shl:
    case Op::Shr: return binary<AndNot, T, false>;
    case Op::Lt: return binary<Lt, T, false>;
    case Op::Le: return binary<Le, T, false>;
    case Op::Eq: return binary<Eq, T, false>;
    case Op::Ne: return binary<Ne, T, false>;
    case Op::MulAcc: return bool_mulacc;
    default: return nullptr;
  }
}

template <bool kScalar>
Step typed_step(Op op, DType dtype) {
  if (op == Op::Where) {
    switch (bits(dtype)) {
      case 8: return where<uint8_t, kScalar>;
      case 16: return where<uint16_t, kScalar>;
      case 32: return where<uint32_t, kScalar>;
      default: return where<uint64_t, kScalar>;
    }
  }
  switch (dtype) {
    case DType::Bool: return bool_step(op);
    case DType::I8: return int_step<int8_t, kScalar>(op);
    case DType::I16: return int_step<int16_t, kScalar>(op);
    case DType::I32: return int_step<int32_t, kScalar>(op);
    case DType::Index:
    case DType::I64: return int_step<int64_t, kScalar>(op);
    case DType::U8: return int_step<uint8_t, kScalar>(op);
    case DType::U16: return int_step<uint16_t, kScalar>(op);
    case DType::U32: return int_step<uint32_t, kScalar>(op);
    case DType::U64: return int_step<uint64_t, kScalar>(op);
    case DType::F32: return float_step<float, kScalar>(op);
    case DType::F64: return float_step<double, kScalar>(op);
    default: return nullptr;  // f16 and bf16 are storage
  }
}

}  // namespace

Step alu_step(Op op, DType dtype, bool scalar) {
  return scalar ? typed_step<true>(op, dtype) : typed_step<false>(op, dtype);
}

}  // namespace weft::interp
