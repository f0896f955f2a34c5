// Symmetric matrices of three diagonals: what eigenvalues and singular values come down to.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::linalg {

/// Eigenvalues (..., n) and eigenvectors in columns (..., n, n).
struct Eigen {
  Tensor values, vectors;
};

/// Of matrices of size 1 with this diagonal and `off` beside it (..., n), whose last element is 0;
/// ascending.
Eigen tridiagonal_eigen(const Tensor& diagonal, const Tensor& off);

/// Of diag(halves) + |link| v v^T, v with 1 at the end of the first half and the sign of link at
/// the beginning of the second: halves are (..., 2, n), link (..., 1), the result (..., 2 n), in no
/// order (Cuppen 1981; Gu and Eisenstat 1995).
Eigen joined(const Eigen& halves, const Tensor& link);

}  // namespace weft::linalg
