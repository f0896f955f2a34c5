// Linear algebra on matrices (..., rows, columns), any number of batch axes. Floats; f16 and bf16
// run in f32. Matrices are worked through column by column: a graph of as many steps as columns,
// whose kernels are the same for every column. Everything is differentiable. Values are not known
// when the graph is built: what has no result (a singular matrix to be inverted) gives infinities
// or NaN.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::linalg {

struct LU {
  Tensor packed;  ///< L below the diagonal, which is 1, and U from it on
  Tensor rows;    ///< i32 (..., n): row i of L @ U is row rows[i] of the matrix
  Tensor sign;    ///< (...): 1 or -1, the determinant of the permutation
};
/// Gaussian elimination with partial pivoting of square matrices (Golub and Van Loan, 4th
/// edition, 3.4.1).
LU lu(const Tensor& a, CallSite = CallSite::here());
/// x of a @ x = b for square a: b (..., n, columns), or (n) if it is 1-D.
Tensor solve(const Tensor& a, const Tensor& b, CallSite = CallSite::here());
Tensor inv(const Tensor& a, CallSite = CallSite::here());
Tensor det(const Tensor& a, CallSite = CallSite::here());
/// The determinant's sign (0 if singular) and the logarithm of its size.
std::pair<Tensor, Tensor> slogdet(const Tensor& a, CallSite = CallSite::here());
/// solve() for triangular a, of which only that triangle is read; with unit its diagonal counts
/// as 1.
Tensor triangular_solve(const Tensor& a, const Tensor& b, bool upper, bool unit = false,
                        CallSite = CallSite::here());
/// Lower triangular l with l @ l.T() = a, of which only the lower triangle is read; NaN where a is
/// not positive definite.
Tensor cholesky(const Tensor& a, CallSite = CallSite::here());

/// (q, r): q @ r = a, q with orthonormal columns, r upper triangular: Householder reflections with
/// LAPACK's signs, in blocks. q is (m, k) and r (k, n) for k = min(m, n), or q (m, m) and r (m, n)
/// if full.
std::pair<Tensor, Tensor> qr(const Tensor& a, bool full = false, CallSite = CallSite::here());
/// x of least |x| among those of least |a @ x - b|, for a of full rank; b as in solve().
Tensor lstsq(const Tensor& a, const Tensor& b, CallSite = CallSite::here());

/// Eigenvalues (..., n), ascending, and eigenvectors in columns, of symmetric matrices, of which
/// the lower triangle is read: reflections to three diagonals, then 3 n + 10 QR steps (Golub and
/// Van Loan, 4th edition, 8.3), of an eighth of the rows where these are more than 32; halves are
/// joined (Gu and Eisenstat 1995). Gradients are of losses that see no signs, and of the vectors of
/// equal eigenvalues only the space that they span (v f(w) v.T sees more of it as they part).
std::pair<Tensor, Tensor> eigh(const Tensor& a, CallSite = CallSite::here());
/// Eigenvalues (..., n, 2) and, in columns, eigenvectors (..., n, n, 2) of length 1 of general real
/// matrices; the last axis holds real and imaginary parts. In no order, but conjugates side by
/// side; each vector's largest element is real. Reflections to a Hessenberg matrix, implicit QR
/// steps with two shifts (Francis 1961), 2 n + 16 in f32 and 2.5 n + 16 in f64, then substitution:
/// the error is some eps |a|. Gradients are of losses that do not depend on the vectors' phases, of
/// matrices whose eigenvalues are all different. Of up to 1400 columns in f32 and 1250 in f64:
/// steps are n kernels each.
std::pair<Tensor, Tensor> eig(const Tensor& a, CallSite = CallSite::here());
struct SVD {
  Tensor u, s, vt;  ///< u @ diag(s) @ vt = a, s descending
};
/// Reflections to two diagonals (Golub and Kahan 1965), then 3 k + 10 QR steps, or for k > 32 the
/// eigenvalues of these beside zeros. u is (m, k) and vt
/// (k, n) for k = min(m, n), or both square if full. Gradients are of losses that do not depend on
/// how the vectors of equal values, further columns, and signs, are chosen.
SVD svd(const Tensor& a, bool full = false, CallSite = CallSite::here());
/// The Moore-Penrose inverse; singular values up to `rcond` times the largest count as 0. Gradients
/// are of changes that keep the rank.
Tensor pinv(const Tensor& a, double rcond = 1e-6, CallSite = CallSite::here());
/// x to the n-th power by squaring; negative powers of the inverse.
Tensor matrix_power(const Tensor& a, int64_t n, CallSite = CallSite::here());
Tensor trace(const Tensor& a, CallSite = CallSite::here());
/// Towards the nearest orthogonal matrix: g = a / |a|, then `steps` times g = sum_i coefficients[i]
/// (g g.T)^i g (Muon: Jordan et al. 2024).
Tensor newton_schulz(const Tensor& a, int64_t steps = 5,
                     const std::vector<double>& coefficients = {3.4445, -4.775, 2.0315},
                     double eps = 1e-7, CallSite = CallSite::here());

}  // namespace weft::linalg
