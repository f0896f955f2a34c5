// Products besides Tensor's matmul and einsum.h: outer, inner and Kronecker products, contractions,
// distances.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// (n) and (m), after flattening, to (n, m): all products.
Tensor outer(const Tensor& x, const Tensor& other, CallSite = CallSite::here());
/// Sums of products over the last axes, which are equal: (..., n) and (..., n) to (..., ...).
Tensor inner(const Tensor& x, const Tensor& other, CallSite = CallSite::here());
/// Sums of products over axes of x and as many of other, one by one of equal size; the result has
/// the other axes of x, then those of other. A number means the last ones of x with the first ones.
Tensor tensordot(const Tensor& x, const Tensor& other, const Ints& x_axes, const Ints& other_axes,
                 CallSite = CallSite::here());
Tensor tensordot(const Tensor& x, const Tensor& other, int64_t axes = 2,
                 CallSite = CallSite::here());
/// Each element of x in the place of a tensor: itself times other; sizes are products.
Tensor kron(const Tensor& x, const Tensor& other, CallSite = CallSite::here());
/// The vector product along an axis of size 3; the other axes broadcast.
Tensor cross(const Tensor& x, const Tensor& other, int64_t axis = -1, CallSite = CallSite::here());

/// |x - other|_p of all rows (..., n, d) with all rows (..., m, d), to (..., n, m); floats.
Tensor cdist(const Tensor& x, const Tensor& other, double p = 2, CallSite = CallSite::here());
/// |x - other|_p of all elements as one vector.
Tensor dist(const Tensor& x, const Tensor& other, double p = 2, CallSite = CallSite::here());

}  // namespace weft
