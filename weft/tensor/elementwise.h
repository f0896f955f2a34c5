// The longer bodies of derived.def's rows. Floats are f32 or f64 here (f16 and bf16 run in f32).
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::elementwise {

Tensor divided(const Tensor& x, const Operand& other, Rounding rounding);
Tensor fmod_of(const Tensor& x, const Operand& other);
Tensor signbit_of(const Tensor& x);
Tensor copysign_of(const Tensor& x, const Operand& other);

Tensor expm1_of(const Tensor& x);
Tensor log1p_of(const Tensor& x);
Tensor atan_of(const Tensor& x);
Tensor sinh_of(const Tensor& x);
Tensor asinh_of(const Tensor& x);
Tensor acosh_of(const Tensor& x);
Tensor atanh_of(const Tensor& x);
Tensor erf_of(const Tensor& x);

}  // namespace weft::elementwise
