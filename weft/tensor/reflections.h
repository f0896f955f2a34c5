// Householder reflections I - v v^T, v . v = 2 (or v = 0), one by one and many at once.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::linalg {

/// The v (..., m, 1) whose reflection leaves 0 below row `at` (i32 ()) of x (..., m, 1); 0 in the
/// rows above, and everywhere where nothing is to be done. x is part of a matrix of size 1.
Tensor reflector(const Tensor& x, const Tensor& at);
/// The inverse of T, unit upper triangular, for the product I - V T V^T of the reflections with
/// the columns of v (..., m, k), the first of which is leftmost.
Tensor inverse_kernel(const Tensor& v);
/// x (..., m, columns) after these.
Tensor reflected(const Tensor& v, const Tensor& x);

/// How many of so many columns are taken at once where each of them changes the whole rest of a
/// matrix: what is done with is then left out, few times, so that graphs stay short.
std::vector<int64_t> shrinking(int64_t columns);
/// A square matrix without its first rows and columns.
Tensor remaining(const Tensor& x, int64_t without);
/// Columns of such a rest as those of a matrix with `rows` rows.
Tensor lowered(const Tensor& x, int64_t rows);

}  // namespace weft::linalg
