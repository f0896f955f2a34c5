// Triangular systems and Cholesky's factor. Squares of a few rows are written out, element by
// element; loops over those do larger ones, and large ones are halved once or twice, so that most
// work is products of large matrices (Gustavson 1997, "Recursion leads to automatic variable
// blocking for dense linear-algebra algorithms"). However large a matrix is, its graph is the same.
#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/rotations.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

namespace {

// Rows of a block.
constexpr int64_t kRows = 8;

// Larger matrices are halved, and factors of large halves; these are done in blocks of columns.
constexpr int64_t kMostFactored = 64, kMostByRows = 128, kMostSolved = 256;
constexpr int kHalvings = 2;

Blocks row_blocks(int64_t n) { return {n, kRows, kRows}; }

/// x of t @ x = b for a small lower triangle t: a fold along its rows, which carries the rows of x
/// that are known.
Tensor substituted_down(const Tensor& t, const Tensor& b, bool unit) {
  const auto n = static_cast<size_t>(t.size(-1));
  Tensors elems{b, row_numbers(t), t.diagonal(0, -2, -1).unsqueeze(-1)};
  for (size_t j = 0; j + 1 < n; ++j)
    elems.push_back(
        t.index({kEllipsis, Slice(static_cast<int64_t>(j), static_cast<int64_t>(j) + 1)}));
  return folded_along(elems, n, -2, [&](const Tensors& e, const Tensors& known) {
    Tensor x = e[0];
    for (size_t j = 0; j + 1 < n; ++j)
      x = x - (e[1] > static_cast<int32_t>(j)).where(e[3 + j], 0) * known[j];
    if (!unit) x = x / e[2];
    Tensors next;
    for (size_t j = 0; j + 1 < n; ++j)
      next.push_back((e[1] == static_cast<int32_t>(j)).where(x, known[j]));
    next.push_back(x);
    return next;
  })[n - 1];
}

Tensor substituted_rows(const Tensor& t, const Tensor& b, bool upper, bool unit) {
  if (!upper) return substituted_down(t, b, unit);
  return substituted_down(t.flip({-2, -1}), b.flip({-2}), unit).flip({-2});
}

/// Of rows in blocks, block k as it is in `rows`, what is before it (after it for `upwards`) as it
/// is in x, and the others as in `rest`.
Tensor with_block(const Tensor& x, const Tensor& k, const Tensor& rows, const Tensor& rest,
                  bool upwards) {
  const auto size = static_cast<int32_t>(rows.size(-2));
  const Tensor place = row_numbers(x) - k * size;
  const Tensor inside = (place >= 0) & (place < size), done = upwards ? place >= size : place < 0;
  return inside.where(rows_in_order(rows, place.clamp(0, size - 1)), done.where(x, rest));
}

/// x of t @ x = rows for triangular t, some rows at a time.
Tensor substituted(const Tensor& given, const Tensor& rows, bool upper, bool unit) {
  const int64_t n = given.size(-1);
  const Blocks blocks = row_blocks(n);
  if (n == 0) return rows;
  if (blocks.count == 1) return substituted_rows(given, rows, upper, unit);
  const Tensor t = bordered(given, blocks.padded()).contiguous();
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor &b = state[0], &k = slices[0], columns = block_of_columns(t, k, blocks);
    const Tensor square = block_of_rows(columns, k, blocks);
    const Tensor x =
        substituted_rows(square, block_of_rows(b, k, blocks), upper, unit).contiguous();
    return ScanResult{{with_block(b, k, x, b - columns.matmul(x), upper)}, {}};
  };
  const Tensor right = extended(rows, blocks.padded(), rows.size(-1)).contiguous();
  const ScanOptions order{.reversed = upper};
  const Tensor x = scan(step, {right}, {step_numbers(t, blocks.count)}, order).carried[0];
  return cropped(x, n, rows.size(-1));
}

/// The rows of the upper factor u, u.T() @ u = a, that begin in row and column `first` (i32 ()) of
/// a: kRows rows, or all of a small matrix. The square on the diagonal is written out, element by
/// element.
Tensor factor_rows(const Tensor& a, const Tensor& first) {
  const auto n = static_cast<size_t>(std::min(kRows, a.size(-1)));
  Tensors elems;
  for (size_t i = 0; i < n; ++i) elems.push_back(row(a, first + static_cast<int32_t>(i)));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i; j < n; ++j)
      elems.push_back(column(elems[i], first + static_cast<int32_t>(j)));
  const Tensors made = folded_along(elems, n, -2, [&](const Tensors& e, const Tensors&) {
    std::vector<Tensors> u(n, Tensors(n));
    Tensors x(n);
    size_t next = n;
    for (size_t i = 0; i < n; ++i) {
      const auto reduced = [&](Tensor to, FunctionRef<Tensor(size_t)> factor) {
        for (size_t k = 0; k < i; ++k) to = to - u[k][i] * factor(k);
        return to;
      };
      for (size_t j = i; j < n; ++j)
        u[i][j] = reduced(e[next++], [&](size_t k) { return u[k][j]; });
      const Tensor inverse = 1 / u[i][i].sqrt();
      for (size_t j = i + 1; j < n; ++j) u[i][j] = u[i][j] * inverse;
      x[i] = reduced(e[i], [&](size_t k) { return x[k]; }) * inverse;
    }
    return x;
  });
  return Tensor::cat(made, -2);
}

/// The upper triangular u of u.T() @ u = a, some rows at a time.
Tensor factor_by_rows(const Tensor& a) {
  const int64_t n = a.size(-1);
  const Blocks blocks = row_blocks(n);
  if (blocks.count == 1) return factor_rows(a, number(a, 0)).triu();
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor &x = state[0], &k = slices[0];
    const Tensor u = factor_rows(x, k * static_cast<int32_t>(kRows)).contiguous();
    return ScanResult{{with_block(x, k, u, x - u.T().matmul(u), false)}, {}};
  };
  const Tensor x = bordered(a, blocks.padded()).contiguous();
  return cropped(scan(step, {x}, {step_numbers(x, blocks.count)}).carried[0], n, n).triu();
}

/// Rows of a matrix, the first of which has its diagonal in column `first` (i32 ()), as those of u,
/// one by one.
Tensor row_reduced(const Tensor& rows, const Tensor& first) {
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor &a = state[0], &k = slices[0], at = first + k;
    // What is below the diagonal is not to be read: it is the same beside it.
    const Tensor pivots = row(a, k), beside = columns_in_order(pivots, first + row_numbers(a).T());
    const Tensor factor = beside.T() / column(pivots, at);
    return ScanResult{{(row_numbers(a) > k).where(a - factor * pivots, a)}, {}};
  };
  const Tensor reduced = scan(step, {rows}, {step_numbers(rows, rows.size(-2))}).carried[0];
  const Tensor diagonal = columns_in_order(reduced, first + row_numbers(reduced));
  return reduced / diagonal.sqrt();
}

/// The upper triangular u of u.T() @ u = a, of a matrix that is not halved.
Tensor factor_by_blocks(const Tensor& a) {
  const int64_t n = a.size(-1);
  if (n == 0) return a;
  if (n <= kMostByRows) return factor_by_rows(a);
  const Blocks blocks(n);
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor &x = state[0], &k = slices[0];
    const Tensor rows = block_of_rows(x, k, blocks).contiguous();
    const Tensor u = row_reduced(rows, k * static_cast<int32_t>(blocks.size)).contiguous();
    return ScanResult{{x - u.T().matmul(u)}, {u}};
  };
  const Tensor x = bordered(a, blocks.padded()).contiguous();
  const Tensor stack = scan(step, {x}, {step_numbers(x, blocks.count)}).stacked[0];
  return cropped(rows_of_blocks(stack), n, n).triu();
}

/// The inverses of the squares of t on its diagonal, (count, ..., size, size). Many right sides are
/// products with them, where substitution goes over all once for every few rows.
Tensor inverse_squares(const Tensor& t, const Blocks& blocks, bool upper, bool unit) {
  const int64_t n = blocks.size;
  const Tensor columns = blocks_of_columns(t, blocks).unflatten(-2, {blocks.count, n});
  const Tensor square = movedim(columns.diagonal(0, 0, -3), -1, 0).contiguous();
  return substituted(square, identity_like(square, n).contiguous(), upper, unit).contiguous();
}

}  // namespace

/// A block of rows at a time, which all others are freed of.
Tensor solved_whole(const Tensor& given, const Tensor& b, bool upper, bool unit) {
  const int64_t n = given.size(-1);
  const Blocks blocks(n);
  if (blocks.count == 1) return substituted(given.contiguous(), b.contiguous(), upper, unit);
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor rows = block_of_rows(state[0], slices[2], blocks).contiguous();
    const Tensor x = slices[1].matmul(rows).contiguous();
    return ScanResult{{state[0] - slices[0].matmul(x)}, {x}};
  };
  const Tensor t = bordered(given, blocks.padded()).contiguous();
  const Tensors xs{blocks_of_columns(t, blocks).contiguous(),
                   inverse_squares(t, blocks, upper, unit), step_numbers(t, blocks.count)};
  const ScanOptions order{.reversed = upper};
  const Tensor right = extended(b, blocks.padded(), b.size(-1)).contiguous();
  return cropped(rows_of_blocks(scan(step, {right}, xs, order).stacked[0]), n, b.size(-1));
}

namespace {

/// The upper triangular u of u.T() @ u = a, of which the upper triangle is read.
Tensor upper_factor(const Tensor& a, int halvings = kHalvings) {
  const int64_t n = a.size(-1), half = first_half(n);
  if (n <= kMostFactored || halvings == 0) return factor_by_blocks(a);
  const Slice first(0, half), second(half, n);
  const Tensor u = upper_factor(part(a, first, first), halvings - 1).contiguous();
  const auto solved = halvings == kHalvings ? solved_triangle : solved_whole;
  const Tensor right = solved(u.T(), part(a, first, second), false, false).contiguous();
  const Tensor rest = part(a, second, second) - right.T().matmul(right);
  const Tensor lower = upper_factor(rest.contiguous(), halvings - 1);
  return Tensor::cat({Tensor::cat({u, right}, -1), beside_zeros(lower, half)}, -2).contiguous();
}

Tensor triangle(const Tensor& x, bool upper, bool unit) {
  return upper ? x.triu(unit ? 1 : 0) : x.tril(unit ? -1 : 0);
}

}  // namespace

Tensor solved_triangle(const Tensor& t, const Tensor& b, bool upper, bool unit) {
  const int64_t n = t.size(-1), half = first_half(n);
  if (n <= kMostSolved) return solved_whole(t, b, upper, unit);
  const Slice first(0, half), second(half, n), begin = upper ? second : first,
                                               end = upper ? first : second;
  const Tensor x = solved_whole(part(t, begin, begin), part(b, begin, Slice()), upper, unit);
  const Tensor left = part(b, end, Slice()) - part(t, end, begin).matmul(x.contiguous());
  const Tensor y = solved_whole(part(t, end, end), left, upper, unit);
  return Tensor::cat({upper ? y : x, upper ? x : y}, -2).contiguous();
}

Tensor inverse_of_triangle(const Tensor& t, bool upper, bool unit) {
  const GradientFunction gradient = [=](const Tensors&, const Tensors& y, const Tensors& up) {
    return Tensors{triangle(-y[0].T().matmul(up[0]).matmul(y[0].T()), upper, unit)};
  };
  const TensorFunction f = [=](const Tensors& in) {
    return Tensors{solved_triangle(in[0], identity_like(in[0], in[0].size(-1)), upper, unit)};
  };
  return with_gradient(f, gradient, {t})[0];
}

Tensor solution_of_triangle(const Tensor& t, const Tensor& b, bool upper, bool unit) {
  const GradientFunction gradient = [=](const Tensors& in, const Tensors& x, const Tensors& up) {
    const Tensor right = in[2].T().matmul(up[0]);
    return Tensors{triangle(-right.matmul(x[0].T()), upper, unit), right, Tensor()};
  };
  const TensorFunction f = [=](const Tensors& in) {
    return Tensors{solved_triangle(in[0], in[1], upper, unit)};
  };
  return with_gradient(f, gradient, {t, b, inverse_of_triangle(t, upper, unit)})[0];
}

namespace {

Tensor cholesky_of(const Tensor& given) {
  const TensorFunction f = [](const Tensors& in) { return Tensors{upper_factor(in[0].T()).T()}; };
  // Murray 2016, "Differentiation of the Cholesky decomposition"
  const GradientFunction gradient = [](const Tensors&, const Tensors& l, const Tensors& up) {
    const Tensor inverse = inverse_of_triangle(l[0], false, false);
    const Tensor inner = l[0].T().matmul(up[0].tril()), half = inner.tril() + inner.tril(-1).T();
    return Tensors{in_lower_triangle(inverse.T().matmul(half).matmul(inverse) * 0.5)};
  };
  return with_gradient(f, gradient, {checked_square("cholesky", given)})[0].cast(given.dtype());
}

}  // namespace

Tensor cholesky(const Tensor& given, CallSite at) {
  const CallSiteScope site(at);
  return called("cholesky", {}, {given},
                [](const Tensors& in) { return Tensors{cholesky_of(in[0])}; })[0];
}

}  // namespace weft::linalg
