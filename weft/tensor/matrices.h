// Inside linear algebra: matrices by rows and columns whose numbers are data, so that every step of
// an algorithm is the same kernel.
#pragma once

#include "weft/tensor/access.h"

namespace weft::linalg {

/// Row (column) `at` of each matrix, kept as an axis of size 1; `at` is i32 of shape () or (..., 1,
/// 1).
Tensor row(const Tensor& x, const Tensor& at);
Tensor column(const Tensor& x, const Tensor& at);
/// Rows (columns) in the order of `at`: i32 (..., n, 1) for rows, (..., 1, n) for columns.
Tensor rows_in_order(const Tensor& x, const Tensor& at);
Tensor columns_in_order(const Tensor& x, const Tensor& at);
/// Row numbers (n, 1) and column numbers (1, n) of x.
Tensor row_numbers(const Tensor& x);
Tensor column_numbers(const Tensor& x);
/// A number as data, on x's device.
Tensor number(const Tensor& x, int64_t value);
/// 0, 1, ... count - 1 as data: what loops over columns go over.
Tensor step_numbers(const Tensor& like, int64_t count);

/// The distance from 1 to the next number.
double precision(const Tensor& x);
/// The power of 2 that is next below the largest element along these axes, kept; the least normal
/// number where all are below it.
/// What is divided by it has size 1, and may be squared.
Tensor magnitude(const Tensor& x, const Axes& axes = {-2, -1});
/// Nothing in a matrix of size 1; its square is a number like others.
double negligible(const Tensor& x);
/// In the dtype that it runs in; an error for what is no matrix of floats.
Tensor checked_matrix(const char* tag, const Tensor& a);
Tensor checked_square(const char* tag, const Tensor& a);
Tensor identity_like(const Tensor& x, int64_t n);
/// The gradient of a function that reads a symmetric matrix from its lower triangle: the upper
/// one's share belongs to the lower one.
Tensor in_lower_triangle(const Tensor& grad);
/// (sum over axis of x^2)^(1/2), kept, whose slope at 0 is 0.
Tensor length(const Tensor& x, int64_t axis);

// ---- blocks of rows or columns

/// How n columns are worked through. Matrices of up to two blocks are one.
struct Blocks {
  explicit Blocks(int64_t n) : Blocks(n, kColumns, 2 * kColumns) {}
  /// In blocks of `columns`; of up to `most` columns in one.
  Blocks(int64_t n, int64_t columns, int64_t most)
      : count(n <= most ? 1 : (n + columns - 1) / columns), size(count == 1 ? n : columns) {}
  int64_t padded() const { return count * size; }

  static constexpr int64_t kColumns = 32;
  int64_t count, size;
};
/// How many of n rows or columns are in the first half of a large matrix: whole blocks.
int64_t first_half(int64_t n);
/// Block k (i32 ()) of the rows (columns).
Tensor block_of_rows(const Tensor& x, const Tensor& k, const Blocks& blocks);
Tensor block_of_columns(const Tensor& x, const Tensor& k, const Blocks& blocks);
/// (count, ..., rows, size), and back.
Tensor blocks_of_columns(const Tensor& x, const Blocks& blocks);
Tensor columns_of_blocks(const Tensor& stack);
/// (rows, ..., columns): the rows as the slices of a scan.
Tensor rows_as_stack(const Tensor& x);
/// (count, ..., size, columns) as (..., count * size, columns).
Tensor rows_of_blocks(const Tensor& stack);
/// With zeros below and to the right; square with n rows, more ones on the diagonal; the first of
/// them again.
Tensor extended(const Tensor& x, int64_t rows, int64_t columns);
Tensor bordered(const Tensor& x, int64_t n);
/// With columns of zeros to the left.
Tensor beside_zeros(const Tensor& x, int64_t columns);
Tensor cropped(const Tensor& x, int64_t rows, int64_t columns);
/// A copy, so that what is computed with it is the same kernel wherever it was.
Tensor part(const Tensor& x, const Slice& rows, const Slice& columns);

// ---- triangles. What has a gradient has one that is products with an inverse (Giles 2008,
// "Collected matrix derivative results").

/// x of t @ x = b, of equal batch axes: in halves where t is large, never in halves (for halves
/// themselves), and with a gradient.
Tensor solved_triangle(const Tensor& t, const Tensor& b, bool upper, bool unit);
Tensor solved_whole(const Tensor& t, const Tensor& b, bool upper, bool unit);
Tensor solution_of_triangle(const Tensor& t, const Tensor& b, bool upper, bool unit);
Tensor inverse_of_triangle(const Tensor& t, bool upper, bool unit);
/// The inverse, without a gradient, in the place of the matrix: a third of the work that its
/// factors and equations with them are.
Tensor inverse_by_exchange(const Tensor& a);
/// L and U of lu() in one and the rows in order, i32 (..., n, 1), without a gradient.
std::pair<Tensor, Tensor> packed_factors(const Tensor& a);

}  // namespace weft::linalg
