// Value: one constant of one dtype, always exactly representable in it; and C++ scalars on their
// way to becoming one.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/dtype/dtype.h"

namespace weft {

class Value {
 public:
  constexpr Value() = default;  // void

  // Converted as a cast would: floats round, integers wrap, floats to integers saturate.
  static Value of(DType dtype, double x);
  static Value of(DType dtype, int64_t x);
  static Value of(DType dtype, uint64_t x);
  static Value of(DType dtype, bool x) { return of(dtype, static_cast<int64_t>(x)); }
  static Value of(DType dtype, int x) { return of(dtype, static_cast<int64_t>(x)); }
  static Value index(int64_t x) { return of(DType::Index, x); }
  static Value boolean(bool x) { return of(DType::Bool, static_cast<int64_t>(x)); }

  // One element as it lies in a buffer.
  static Value load(DType dtype, const void* from);
  void store(void* to) const;

  DType dtype() const { return dtype_; }
  double as_double() const;
  int64_t as_int() const;    // of a float: truncated; of a u64: the same bits
  uint64_t as_uint() const;  // of a signed integer: the same bits
  bool as_bool() const;      // not zero; a NaN is true
  Value cast(DType to) const;

  bool is_nan() const;
  bool is_zero() const { return as_double() == 0; }  // either sign

  // Bit for bit: NaN equals the same NaN, -0.0 differs from 0.0, dtypes must agree.
  friend bool operator==(const Value& a, const Value& b) {
    return a.dtype_ == b.dtype_ && a.bits_ == b.bits_;
  }
  uint64_t hash() const;
  // The canonical 64 bits: of the integer (sign- or zero-extended) or of the float as f64.
  uint64_t raw_bits() const { return bits_; }
  static std::optional<Value> from_raw_bits(DType dtype,
                                            uint64_t bits);  // nothing if not canonical

  // Shortest text that parse() turns back into the same bits: "3", "true", "0.1", "nan", "-inf".
  std::string text() const;
  static std::optional<Value> parse(DType dtype, std::string_view text);

 private:
  Value(DType dtype, uint64_t bits) : dtype_(dtype), bits_(bits) {}

  DType dtype_ = DType::Void;
  uint64_t bits_ = 0;
};

// A C++ number given where a tensor is expected: it has a kind but no width ("weak"), so that
// t + 1 and t * 0.5 keep t's dtype where the kind allows it.
class Scalar {
 public:
  Scalar(bool x) : kind_(Kind::Bool), int_(x) {}  // NOLINT: implicit by purpose
  template <std::floating_point T>
  Scalar(T x) : kind_(Kind::Float), float_(static_cast<double>(x)) {}  // NOLINT
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T x)  // NOLINT
      : kind_(std::signed_integral<T> || sizeof(T) < 8 ? Kind::Int : Kind::Unsigned),
        int_(static_cast<int64_t>(x)) {}

  bool is_float() const { return kind_ == Kind::Float; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  DType default_dtype() const;  // bool, i32 (i64 or u64 when too large), f32
  Value as(DType dtype) const;

 private:
  enum class Kind : uint8_t { Bool, Int, Unsigned, Float };
  Kind kind_;
  union {
    int64_t int_;
    double float_;
  };
};

// The dtype of an operation between a tensor and a weak scalar: the tensor's, unless the scalar's
// kind is higher (bool < integer < float); then the scalar's default.
DType promote_weak(DType tensor, const Scalar& scalar);

}  // namespace weft
