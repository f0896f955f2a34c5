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

/// In the dtype that it runs in; an error for what is no matrix of floats.
Tensor checked_matrix(const char* tag, const Tensor& a);
Tensor checked_square(const char* tag, const Tensor& a);
Tensor identity_like(const Tensor& x, int64_t n);
/// (sum over axis of x^2)^(1/2), kept, whose slope at 0 is 0.
Tensor length(const Tensor& x, int64_t axis);

}  // namespace weft::linalg
