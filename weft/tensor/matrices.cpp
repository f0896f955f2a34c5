// Matrices by rows, columns and blocks of them, whose numbers are data.
#include "weft/tensor/matrices.h"

#include <limits>
#include <numeric>

#include "weft/tensor/reductions.h"
#include "weft/tensor/tables.h"

namespace weft::linalg {

namespace {

Tensor picked(const Tensor& x, const Tensor& at, int64_t axis) {
  Dims shape = x.dims();
  const auto a = static_cast<size_t>(static_cast<int64_t>(x.ndim()) + axis);
  shape[a] = at.ndim() == 0 ? Dim(1) : at.dim(axis);
  return gather_inside(x, axis, at.expand(shape));
}

}  // namespace

Tensor row(const Tensor& x, const Tensor& at) { return picked(x, at, -2); }
Tensor column(const Tensor& x, const Tensor& at) { return picked(x, at, -1); }
Tensor rows_in_order(const Tensor& x, const Tensor& at) { return picked(x, at, -2); }
Tensor columns_in_order(const Tensor& x, const Tensor& at) { return picked(x, at, -1); }
Tensor row_numbers(const Tensor& x) {
  return Tensor::arange(x.dim(-2)).unsqueeze(1).to(x.device());
}
Tensor column_numbers(const Tensor& x) {
  return Tensor::arange(x.dim(-1)).unsqueeze(0).to(x.device());
}
Tensor number(const Tensor& x, int64_t value) {
  return constant_table(std::vector<int32_t>{static_cast<int32_t>(value)}, {}, x);
}

Tensor checked_matrix(const char* tag, const Tensor& a) {
  require_float(tag, a);
  if (a.ndim() < 2)
    fail(tag, "takes matrices: got shape {}; give at least 2 axes", a.dims().text());
  return a.cast(sum_dtype(a.dtype()));
}

Tensor checked_square(const char* tag, const Tensor& a) {
  const Tensor x = checked_matrix(tag, a);
  if (a.size(-1) != a.size(-2)) fail(tag, "takes square matrices: got shape {}", a.dims().text());
  return x;
}

Tensor identity_like(const Tensor& x, int64_t n) {
  Dims shape = x.dims();
  shape[shape.size() - 2] = shape.back() = n;
  return Tensor::eye(n, x.dtype()).to(x.device()).expand(shape);
}

Tensor in_lower_triangle(const Tensor& grad) {
  return (grad + grad.T()).tril() - grad * identity_like(grad, grad.size(-1));
}

Tensor length(const Tensor& x, int64_t axis) { return vector_norm(x, 2, axis, true); }

double precision(const Tensor& x) {
  return x.dtype() == DType::F64 ? std::numeric_limits<double>::epsilon()
                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
}

double negligible(const Tensor& x) { return precision(x) * 1e-8; }

Tensor magnitude(const Tensor& x, const Axes& axes) {
  if (x.size(-1) == 0 || x.size(-2) == 0) return x.sum(axes, true) + 1;
  const bool wide = x.dtype() == DType::F64;
  const int64_t exponent = wide ? 0x7FF0000000000000 : 0x7F800000;
  // Subnormal numbers, too, are made large enough to be squared.
  const double least = wide ? std::numeric_limits<double>::min()
                            : static_cast<double>(std::numeric_limits<float>::min());
  const Tensor bits = x.detach().abs().max(axes, true).bitcast(wide ? DType::I64 : DType::I32);
  const Tensor power = (bits & exponent).bitcast(x.dtype());
  return power.maximum(least).contiguous();
}

// ---- blocks

namespace {

Ints moved_axis(const Tensor& x, int64_t from, int64_t to) {
  Ints order;
  for (int64_t i = 0; i < static_cast<int64_t>(x.ndim()); ++i)
    if (i != from) order.push_back(i);
  order.insert(static_cast<size_t>(to), from);
  return order;
}

std::vector<DimPair> nothing(const Tensor& x) {
  return std::vector<DimPair>(x.ndim(), DimPair(0, 0));
}

}  // namespace

Tensor step_numbers(const Tensor& like, int64_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return constant_table(numbers, {count}, like);
}

int64_t first_half(int64_t n) {
  constexpr int64_t kEach = Blocks::kColumns;
  return (n / 2 + kEach - 1) / kEach * kEach;
}

Tensor block_of_rows(const Tensor& x, const Tensor& k, const Blocks& blocks) {
  return picked(x.unflatten(-2, {blocks.count, blocks.size}), k, -3).squeeze(-3);
}
Tensor block_of_columns(const Tensor& x, const Tensor& k, const Blocks& blocks) {
  return picked(x.unflatten(-1, {blocks.count, blocks.size}), k, -2).squeeze(-2);
}

Tensor blocks_of_columns(const Tensor& x, const Blocks& blocks) {
  const Tensor split = x.unflatten(-1, {blocks.count, blocks.size});
  return split.permute(moved_axis(split, static_cast<int64_t>(split.ndim()) - 2, 0));
}
Tensor rows_as_stack(const Tensor& x) {
  return x.permute(moved_axis(x, static_cast<int64_t>(x.ndim()) - 2, 0));
}
Tensor rows_of_blocks(const Tensor& stack) {
  return stack.permute(moved_axis(stack, 0, static_cast<int64_t>(stack.ndim()) - 3))
      .flatten(-3, -2);
}
Tensor columns_of_blocks(const Tensor& stack) {
  return stack.permute(moved_axis(stack, 0, static_cast<int64_t>(stack.ndim()) - 2))
      .flatten(-2, -1);
}

Tensor extended(const Tensor& x, int64_t rows, int64_t columns) {
  std::vector<DimPair> by = nothing(x);
  by[by.size() - 2] = {0, rows - x.size(-2)};
  by.back() = {0, columns - x.size(-1)};
  return x.pad(by);
}
Tensor bordered(const Tensor& x, int64_t n) {
  if (x.size(-1) == n) return x;
  const Tensor i = Tensor::arange(n).unsqueeze(1).to(x.device()), j = i.T();
  return ((i == j) & (i >= x.size(-1))).where(1, extended(x, n, n));
}
Tensor beside_zeros(const Tensor& x, int64_t columns) {
  std::vector<DimPair> by = nothing(x);
  by.back() = {columns, 0};
  return x.pad(by);
}
Tensor part(const Tensor& x, const Slice& rows, const Slice& columns) {
  return x.index({kEllipsis, rows, columns}).contiguous();
}
Tensor cropped(const Tensor& x, int64_t rows, int64_t columns) {
  return x.index({kEllipsis, Slice(0, rows), Slice(0, columns)});
}

}  // namespace weft::linalg
