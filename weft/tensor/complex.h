// Complex numbers as two real tensors: what the transforms and the eigenvectors compute with.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// Without `im` the numbers are real.
struct Complex {
  Tensor re, im;

  template <class F>
  Complex each(F f) const {
    return {f(re), im.defined() ? f(im) : Tensor()};
  }
};

/// Real and imaginary parts of numbers in a last axis of 2.
inline Complex parts(const Tensor& z) { return {z.index({kEllipsis, 0}), z.index({kEllipsis, 1})}; }

/// Both parts side by side in a new last axis.
inline Tensor joined(const Complex& z) { return Tensor::stack({z.re, z.im}, -1); }

/// a b, element by element; `a` may be real.
inline Complex times(const Complex& a, const Complex& b) {
  if (!a.im.defined()) return {a.re * b.re, a.re * b.im};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// The product of matrices; `a` may be real.
inline Complex product(const Complex& a, const Complex& b) {
  if (!a.im.defined()) return {a.re.matmul(b.re), a.re.matmul(b.im)};
  return {a.re.matmul(b.re) - a.im.matmul(b.im), a.re.matmul(b.im) + a.im.matmul(b.re)};
}

/// The conjugate transpose.
inline Complex adjoint(const Complex& a) {
  return {a.re.transpose(-2, -1), -a.im.transpose(-2, -1)};
}

}  // namespace weft
