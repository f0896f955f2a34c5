// Factorisations that work through a matrix column by column, and what follows from them.
#include "weft/tensor/linalg.h"

#include "weft/tensor/matrices.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/tables.h"

namespace weft::linalg {

// ---- rows and columns

namespace {

Tensor picked(const Tensor& x, const Tensor& at, int64_t axis) {
  Dims shape = x.dims();
  const auto a = static_cast<size_t>(static_cast<int64_t>(x.ndim()) + axis);
  shape[a] = at.ndim() == 0 ? Dim(1) : at.dim(axis);
  return x.gather(axis, at.expand(shape));
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

Tensor length(const Tensor& x, int64_t axis) { return vector_norm(x, 2, axis, true); }

// ---- elimination

namespace {

/// One column of Gaussian elimination: the pivot's row comes to row k, its multiples go.
LU eliminated(const LU& f, const Tensor& k) {
  const Tensor& a = f.packed;
  const Tensor i = row_numbers(a), j = column_numbers(a);
  const Tensor size = column(a, k).detach().abs();
  const Tensor pivot_at = (i >= k).where(size, -1).argmax(-2, true).contiguous();
  const Tensor order = (i == k).where(pivot_at, (i == pivot_at).where(k, i));
  const Tensor swapped = rows_in_order(a, order), pivot_row = row(a, pivot_at);
  const Tensor pivot = column(pivot_row, k), none = pivot == 0;
  const Tensor factor = none.where(0, column(swapped, k) / none.where(1, pivot));
  const Tensor below = (j > k).where(swapped - factor * pivot_row, (j == k).where(factor, swapped));
  const Tensor flipped = (pivot_at == k).where(1, -1).squeeze(-1).squeeze(-1).cast(a.dtype());
  return {(i > k).where(below, swapped).contiguous(), rows_in_order(f.rows, order).contiguous(),
          (f.sign * flipped).contiguous()};
}

/// The matrix and right sides with equal batch axes; a vector becomes a column.
struct Equations {
  Tensor a, b;
  bool vector;
};

Equations equations(const char* tag, const Tensor& a, const Tensor& b, const Tensor& checked) {
  require_float(tag, b);
  const bool vector = b.ndim() == 1;
  const Tensor right = (vector ? b.unsqueeze(1) : b).cast(checked.dtype());
  if (!(right.dim(-2) == checked.dim(-2)))
    fail(tag, "matrices {} and right sides {} do not fit: both must have the same number of rows",
         a.dims().text(), b.dims().text());
  // Batch axes broadcast by multiplying what has one element per matrix.
  const Tensor one = (checked.index({kEllipsis, Slice(0, 1), Slice(0, 1)}) * 0 +
                      right.index({kEllipsis, Slice(0, 1), Slice(0, 1)}) * 0)
                         .detach();
  Dims left_shape = one.dims(), right_shape = one.dims();
  for (const int64_t axis : {2, 1}) {
    left_shape[one.ndim() - static_cast<size_t>(axis)] = checked.dim(-axis);
    right_shape[one.ndim() - static_cast<size_t>(axis)] = right.dim(-axis);
  }
  return {checked.expand(left_shape), right.expand(right_shape), vector};
}

/// b with x[k] known in row k and taken out of the rows that come later.
Tensor substituted(const Tensor& a, const Tensor& b, const Tensor& k, bool upper, bool unit) {
  const Tensor i = row_numbers(a), multiples = column(a, k);
  const Tensor x = unit ? row(b, k) : row(b, k) / row(multiples, k);
  const Tensor later = upper ? i < k : i > k;
  return (i == k).where(x, later.where(b - multiples * x, b)).contiguous();
}

Tensor solved_triangle(const Tensor& a, Tensor b, bool upper, bool unit) {
  const int64_t n = a.size(-1);
  for (int64_t step = 0; step < n; ++step)
    b = substituted(a, b, number(a, upper ? n - 1 - step : step), upper, unit);
  return b;
}

Tensor as_given(const Equations& e, const Tensor& x, DType dtype) {
  return (e.vector ? x.squeeze(-1) : x).cast(dtype);
}

}  // namespace

LU lu(const Tensor& given, CallSite at) {
  const CallSiteScope site(at);
  const Tensor a = checked_square("lu", given);
  Dims batch = a.dims(), rows = a.dims();
  batch.erase(batch.size() - 1), batch.erase(batch.size() - 1);
  rows.back() = 1;
  LU f{a.contiguous(), row_numbers(a).expand(rows).contiguous(),
       Tensor::ones(batch, a.dtype()).to(a.device())};
  for (int64_t k = 0; k < a.size(-1); ++k) f = eliminated(f, number(a, k));
  return {f.packed.cast(given.dtype()), f.rows.squeeze(-1), f.sign.cast(given.dtype())};
}

Tensor triangular_solve(const Tensor& a, const Tensor& b, bool upper, bool unit, CallSite at) {
  const CallSiteScope site(at);
  const Equations e = equations("triangular_solve", a, b, checked_square("triangular_solve", a));
  return as_given(e, solved_triangle(e.a, e.b, upper, unit), b.dtype());
}

Tensor solve(const Tensor& a, const Tensor& b, CallSite at) {
  const CallSiteScope site(at);
  const Equations e = equations("solve", a, b, checked_square("solve", a));
  const LU f = lu(e.a);
  const Tensor ordered = rows_in_order(e.b, f.rows.unsqueeze(-1));
  const Tensor y = solved_triangle(f.packed, ordered.contiguous(), false, true);
  return as_given(e, solved_triangle(f.packed, y, true, false), b.dtype());
}

Tensor inv(const Tensor& a, CallSite at) {
  const CallSiteScope site(at);
  const Tensor x = checked_square("inv", a);
  return solve(x, identity_like(x, a.size(-1))).cast(a.dtype());
}

Tensor det(const Tensor& a, CallSite at) {
  const CallSiteScope site(at);
  const LU f = lu(checked_square("det", a));
  return (f.packed.diagonal(0, -2, -1).prod(-1) * f.sign).cast(a.dtype());
}

std::pair<Tensor, Tensor> slogdet(const Tensor& a, CallSite at) {
  const CallSiteScope site(at);
  const LU f = lu(checked_square("slogdet", a));
  const Tensor pivots = f.packed.diagonal(0, -2, -1);
  return {(pivots.detach().sign().prod(-1) * f.sign).cast(a.dtype()),
          pivots.abs().log().sum(-1).cast(a.dtype())};
}

Tensor cholesky(const Tensor& given, CallSite at) {
  const CallSiteScope site(at);
  Tensor a = checked_square("cholesky", given).contiguous();
  const Tensor j = column_numbers(a);
  for (int64_t step = 0; step < a.size(-1); ++step) {
    const Tensor k = number(a, step), values = column(a, k);
    const Tensor l = values / row(values, k).sqrt();
    const Tensor rest = a - l * l.transpose(-1, -2);
    a = (j == k).where(l, (j > k).where(rest, a)).contiguous();
  }
  return a.tril().cast(given.dtype());
}

// ---- reflections

namespace {

struct Reflected {
  Tensor q, r;
};

/// r with zeros below row k of column k, and q @ r as before.
Reflected reflected(const Reflected& f, const Tensor& k) {
  const Tensor i = row_numbers(f.r), values = (i >= k).where(column(f.r, k), 0);
  const Tensor size = length(values, -2), head = row(values, k);
  // Away from cancellation: the head grows.
  const Tensor v = (values + (i == k).where((head < 0).where(-size, size), 0)).contiguous();
  const Tensor square = (v * v).sum(-2, true), none = square == 0;
  const Tensor scale = none.where(0, 2 / none.where(1, square)).contiguous();
  const Tensor along = v.transpose(-1, -2);
  const Tensor seen = (v * f.r).sum(-2, true).contiguous();
  const Tensor held = (f.q * along).sum(-1, true).contiguous();
  return {(f.q - held * (scale * along)).contiguous(), (f.r - v * (scale * seen)).contiguous()};
}

}  // namespace

std::pair<Tensor, Tensor> qr(const Tensor& given, bool full, CallSite at) {
  const CallSiteScope site(at);
  const Tensor a = checked_matrix("qr", given);
  const int64_t m = a.size(-2), n = a.size(-1), kept = full ? m : std::min(m, n);
  Reflected f{identity_like(a, m).contiguous(), a.contiguous()};
  for (int64_t k = 0; k < std::min(m - 1, n); ++k) f = reflected(f, number(a, k));
  const Tensor q = f.q.index({kEllipsis, Slice(0, kept)});
  const Tensor r = f.r.triu().index({kEllipsis, Slice(0, kept), Slice()});
  return {q.cast(given.dtype()), r.cast(given.dtype())};
}

Tensor lstsq(const Tensor& a, const Tensor& b, CallSite at) {
  const CallSiteScope site(at);
  const Equations e = equations("lstsq", a, b, checked_matrix("lstsq", a));
  const bool tall = a.size(-2) >= a.size(-1);
  const auto [q, r] = qr(tall ? e.a : e.a.transpose(-1, -2));
  const Tensor x =
      tall ? solved_triangle(r, q.transpose(-1, -2).matmul(e.b).contiguous(), true, false)
           : q.matmul(solved_triangle(r.transpose(-1, -2), e.b.contiguous(), false, false));
  return as_given(e, x, b.dtype());
}

// ---- products

Tensor matrix_power(const Tensor& a, int64_t n, CallSite at) {
  const CallSiteScope site(at);
  Tensor square = checked_square("matrix_power", a);
  if (n < 0) square = inv(square);
  Tensor result = identity_like(square, a.size(-1));
  for (uint64_t left = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n); left > 0;
       left /= 2) {
    if (left % 2 != 0) result = result.matmul(square);
    if (left > 1) square = square.matmul(square);
  }
  return result.cast(a.dtype());
}

Tensor trace(const Tensor& a, CallSite at) {
  const CallSiteScope site(at);
  if (a.ndim() < 2) fail("trace", "takes matrices: got shape {}", a.dims().text());
  return a.diagonal(0, -2, -1).sum(-1);
}

Tensor newton_schulz(const Tensor& given, int64_t steps, const std::vector<double>& coefficients,
                     double eps, CallSite at) {
  const CallSiteScope site(at);
  const Tensor a = checked_matrix("newton_schulz", given);
  if (steps < 0 || steps > 1000)  // every one is a part of the graph
    fail("newton_schulz", "{} steps: give at least 0 and at most 1000", steps);
  const bool tall = a.size(-2) > a.size(-1);
  Tensor g = a / (vector_norm(a, 2, {-2, -1}, true) + eps);
  if (tall) g = g.T();
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor square = g.matmul(g.T()).contiguous();
    Tensor power = g, sum = g * 0;
    for (size_t i = 0; i < coefficients.size(); ++i) {
      if (i > 0) power = square.matmul(power).contiguous();
      sum = i == 0 ? power * coefficients[0] : sum + power * coefficients[i];
    }
    g = sum.contiguous();
  }
  return (tall ? g.T() : g).cast(given.dtype());
}

}  // namespace weft::linalg
