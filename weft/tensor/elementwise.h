// The longer bodies of derived.def's rows. Floats are f32 or f64 here (f16 and bf16 run in f32).
#pragma once

#include <functional>
#include <initializer_list>
#include <span>

#include "weft/tensor/tensor.h"

namespace weft::elementwise {

/// f(x) as one node (tracing.h): f depends on nothing but x and these numbers.
Tensor traced(const char* name, const Tensor& x, std::initializer_list<double> numbers,
              const std::function<Tensor(const Tensor&)>& f);

/// a * b + c, rounded once.
Tensor multiply_add(const Tensor& a, const Tensor& b, const Tensor& c);
/// The same, rounded once where the target has an operation for that.
Tensor add_product(const Tensor& a, const Tensor& b, const Tensor& c);

/// Horner's rule, highest coefficient first, of such steps.
Tensor horner(const Tensor& x, std::span<const double> coefficients);

/// floor(x / y), exact while it has no more digits than the dtype that both run in, also where x /
/// y is rounded up to a whole number.
Tensor floored_quotient(const Operand& a, const Operand& b, DType run);
/// What floor(x / y) leaves of x, and what trunc(x / y) does: exact whatever the quotient; of the
/// sign of y, and of x, 0 included.
Tensor floored_rest(const Operand& a, const Operand& b, DType dtype);
Tensor truncated_rest(const Operand& a, const Operand& b, DType dtype);
Tensor divided(const Tensor& x, const Operand& other, Rounding rounding);
Tensor fmod_of(const Tensor& x, const Operand& other);
Tensor signbit_of(const Tensor& x);
/// Of floats, without the sign bit. Bits have no derivative: for values that have a slope of their
/// own.
Tensor size_by_bits(const Tensor& x);
Tensor copysign_of(const Tensor& x, const Operand& other);
/// Floats as they are; of integers floats, whose differences do not wrap.
Tensor measured(const Tensor& x);
/// other, a number in the dtype in which it meets x.
Tensor beside(const Tensor& x, const Operand& other);
/// A whole number as an integer where x has such ones, which then need not become floats.
Operand weak(const Tensor& x, double number);

/// f(x) where x is not 0, else 0: powers whose slope at 0 would be infinite have the slope 0.
template <class F>
Tensor zero_or(const Tensor& x, F f) {
  const Tensor none = x == 0;
  return none.where(0, f(none.where(1, x)));
}

/// Whether other is not 0.
Tensor truth_of(const Tensor& x, const Operand& other);
/// `extreme` of both, or the one that is no NaN.
Tensor of_numbers(const Tensor& x, const Operand& other, const Tensor& extreme);
Tensor finite_of(const Tensor& x, double nan, double high, double low);

/// Of floats, to the nearest, halves to even.
Tensor round_of(const Tensor& x);
Tensor expm1_of(const Tensor& x);
Tensor log1p_of(const Tensor& x);
/// log(1 + x) of x in [0, 1].
Tensor log1p_of_fraction(const Tensor& x);
Tensor logaddexp_of(const Tensor& x, const Operand& other);
Tensor logaddexp2_of(const Tensor& x, const Operand& other);
Tensor xlogy_of(const Tensor& x, const Operand& other);
Tensor asin_of(const Tensor& x);
Tensor acos_of(const Tensor& x);
Tensor hypot_of(const Tensor& x, const Operand& other);
Tensor atan2_of(const Tensor& x, const Operand& other);
Tensor atan_of(const Tensor& x);
Tensor sinh_of(const Tensor& x);
Tensor cosh_of(const Tensor& x);
Tensor asinh_of(const Tensor& x);
Tensor acosh_of(const Tensor& x);
Tensor atanh_of(const Tensor& x);
Tensor tanh_of(const Tensor& x);
Tensor erf_of(const Tensor& x);
Tensor erfc_of(const Tensor& x);
Tensor erfinv_of(const Tensor& x);
Tensor lgamma_of(const Tensor& x);
Tensor digamma_of(const Tensor& x);

}  // namespace weft::elementwise
