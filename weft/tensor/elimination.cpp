// Elimination with partial pivoting. Inside of a panel of columns rows stay where they are, and
// which of them were pivots is remembered; between halves they are put in order.
#include <limits>

#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

namespace {

// Columns that are worked on together: what a step changes of them lies in L1.
constexpr int64_t kFew = 8;
// All columns of so few rows are.
constexpr int64_t kFewRows = 32;
constexpr int64_t kMostInPanel = 64;
// More columns are halved, and their halves: rows and columns that are done with are left out, and
// most work is products of large matrices.
constexpr int64_t kMostWhole = 32;
constexpr int kHalvings = 2;
// When a row became a pivot that is none yet.
constexpr int32_t kNever = std::numeric_limits<int32_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Columns that lie side by side, in the memory of rows, while they are worked on.
struct FewEliminated {
  Tensor columns;  ///< (..., n, m): below the pivots multipliers in the place of zeros
  Tensor used;     ///< bools (..., 1, m): rows that were pivots
  Tensor pivots;   ///< i32 (..., n, 1): their numbers
};

/// A step reads one column, and finds its pivot by two folds, of which argmax would make one that
/// goes element by element. What it changes are multiples of one row, without a condition;
/// multipliers are divided by their pivots at the end, all at once. A NaN is larger than all
/// numbers, so that it is in all that depends on it.
FewEliminated few_eliminated(const Tensor& columns, const Tensor& before) {
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    const Tensor &a = state[0], &turn = state[1], &k = slices[0], values = row(a, k);
    const Tensor i = column_numbers(a), j = row_numbers(a), known = values.detach().abs();
    const Tensor size = (turn < kNever).where(-1, (known == known).where(known, kInfinity));
    const Tensor most = size.max({-1}, true);
    const Tensor at = (size == most).where(i, a.size(-1) - 1).min({-1}, true).contiguous();
    const Tensor pivots = column(a, at), pivot = row(pivots, k), some = (j > k) & (pivot != 0);
    const Tensor by = some.where(pivots / (pivot == 0).where(1, pivot), 0);
    const Tensor next = (i == at).where(k, turn);
    const Tensor taken = (next < kNever).where(0, values).contiguous();
    return ScanResult{{a - by * taken, next}, {}};
  };
  const Tensors steps{step_numbers(columns, columns.size(-2))};
  const Tensor begin = before.where(-1, kNever).contiguous();
  const Tensors last = scan(step, {columns, begin}, steps).carried;
  const Tensor &x = last[0], &turn = last[1], j = row_numbers(x);
  const Tensor order = (turn == j).where(column_numbers(x), 0).max({-1}, true).contiguous();
  const Tensor pivot = gather_inside(x, -1, order);
  const Tensor factors = x / (pivot == 0).where(1, pivot).contiguous();
  return {(turn > j).where(factors, x), turn < kNever, order};
}

/// What elimination leaves of m rows and n columns.
struct Eliminated {
  Tensor lower;   ///< (..., m, n): multipliers, in rows that became pivots later or never
  Tensor upper;   ///< (..., n, n): on the diagonal and above it, the rows of the pivots
  Tensor used;    ///< bools (..., m, 1): rows that were pivots
  Tensor pivots;  ///< i32 (..., n, 1): their numbers
};

/// Of a panel, a few columns after the others.
Eliminated panel_eliminated(const Tensor& panel, const Tensor& before) {
  const Blocks blocks(panel.size(-1), kFew, panel.size(-2) <= kFewRows ? kFewRows : kFew);
  const Tensor x = panel.T().contiguous(), used = before.T().contiguous();
  if (blocks.count == 1) {
    const FewEliminated e = few_eliminated(x, used);
    const Tensor lower = e.columns.T();
    return {lower, rows_in_order(lower, e.pivots), e.used.T(), e.pivots};
  }
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor& rest = state[0];
    const Tensor few = block_of_rows(rest, slices[0], blocks).contiguous();
    const FewEliminated e = few_eliminated(few, state[1]);
    const Tensor order = e.pivots.T().contiguous();
    const Tensor square = columns_in_order(e.columns, order).T().contiguous();
    const Tensor rows = columns_in_order(rest, order).T().contiguous();
    const Tensor upper = solved_triangle(square, rows, false, true).contiguous();
    const Tensor lower = e.used.where(0, e.columns).contiguous();
    return ScanResult{{rest - upper.T().matmul(lower), e.used}, {e.columns, upper, e.pivots}};
  };
  const auto [last, made] = scan(step, {x, used}, {step_numbers(x, blocks.count)});
  return {rows_of_blocks(made[0]).T(), rows_of_blocks(made[1]), last[1].T(),
          rows_of_blocks(made[2])};
}

/// Of many columns, a panel after the others.
Eliminated panels_eliminated(const Tensor& x) {
  const Blocks blocks(x.size(-1), Blocks::kColumns, kMostInPanel);
  const Tensor unused = (x.index({kEllipsis, Slice(0, 1)}).zeros_like() != 0).contiguous();
  if (blocks.count == 1) return panel_eliminated(x, unused);
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor panel = block_of_columns(state[0], slices[0], blocks).contiguous();
    const Eliminated e = panel_eliminated(panel, state[1]);
    const Tensor order = e.pivots.contiguous(), rows = rows_in_order(state[0], order).contiguous();
    const Tensor square = rows_in_order(e.lower, order).contiguous();
    const Tensor eye = identity_like(square, blocks.size).contiguous();
    const Tensor u = solved_triangle(square, eye, false, true).matmul(rows).contiguous();
    const Tensor l = e.used.where(0, e.lower).contiguous();
    return ScanResult{{state[0] - l.matmul(u), e.used}, {e.lower, u, order}};
  };
  const auto [last, made] = scan(step, {x, unused}, {step_numbers(x, blocks.count)});
  return {columns_of_blocks(made[0]), rows_of_blocks(made[1]), last[1], rows_of_blocks(made[2])};
}

Tensor packed_square(const Tensor& lower, const Tensor& upper) {
  return lower.tril(-1) + upper.triu();
}

/// i32 (..., n, 1), a permutation, as the permutation that undoes it.
Tensor undone(const Tensor& order) {
  return order.zeros_like().scatter(-2, order, row_numbers(order).expand(order.dims()));
}

/// The numbers of all rows, those of the pivots first.
Tensor pivots_first(const Eliminated& e) {
  const int64_t n = e.pivots.size(-2);
  if (n == e.used.size(-2)) return e.pivots;
  const Tensor chosen = e.pivots.T() == row_numbers(e.used);
  const Tensor turn = chosen.where(column_numbers(e.pivots.T()), 0).max({-1}, true);
  const Tensor rank = (~e.used).cast(DType::I32).cumsum(-2) + static_cast<int32_t>(n - 1);
  return undone(e.used.where(turn, rank).contiguous()).contiguous();
}

/// L and U in one, (..., m, n), and the numbers of the rows in their order.
struct Factors {
  Tensor packed, order;
};

Factors factored_whole(const Tensor& x) {
  const int64_t m = x.size(-2), n = x.size(-1);
  const Eliminated e = panels_eliminated(x);
  const Tensor order = pivots_first(e), lower = rows_in_order(e.lower, order).contiguous();
  const Tensor square = packed_square(part(lower, Slice(0, n), Slice()), e.upper);
  return {m == n ? square : Tensor::cat({square, part(lower, Slice(n, m), Slice())}, -2), order};
}

/// Toledo 1997, "Locality of reference in LU decomposition with partial pivoting".
Factors factored(const Tensor& x, int halvings) {
  const int64_t m = x.size(-2), n = x.size(-1), half = first_half(n);
  if (n <= kMostWhole || halvings == 0) return factored_whole(x);
  const Factors left = factored(part(x, Slice(), Slice(0, half)), halvings - 1);
  const Tensor top = part(left.packed, Slice(0, half), Slice()),
               below = part(left.packed, Slice(half, m), Slice());
  const Tensor others = rows_in_order(part(x, Slice(), Slice(half, n)), left.order).contiguous();
  const auto solved = halvings == kHalvings ? solved_triangle : solved_whole;
  const Tensor beside =
      solved(top, part(others, Slice(0, half), Slice()), false, true).contiguous();
  const Tensor rest = part(others, Slice(half, m), Slice()) - below.matmul(beside);
  const Factors right = factored(rest.contiguous(), halvings - 1);
  const Tensor upper = Tensor::cat({top, beside}, -1);
  const Tensor lower = Tensor::cat({rows_in_order(below, right.order), right.packed}, -1);
  const Tensor order = rows_in_order(part(left.order, Slice(half, m), Slice()), right.order);
  return {Tensor::cat({upper, lower}, -2).contiguous(),
          Tensor::cat({part(left.order, Slice(0, half), Slice()), order}, -2).contiguous()};
}

}  // namespace

std::pair<Tensor, Tensor> packed_factors(const Tensor& a) {
  const int64_t n = a.size(-1);
  if (n == 0) return {a, a.sum(-1, true).cast(DType::I32)};
  // Halved, no part of these has more than a panel.
  const bool in_panels = n <= kMostInPanel << kHalvings;
  const Blocks blocks = in_panels ? Blocks(n, kFew, kFewRows) : Blocks(n);
  const Factors f = factored(bordered(a, blocks.padded()).contiguous(), kHalvings);
  return {cropped(f.packed, n, n), cropped(f.order, n, 1).contiguous()};
}

namespace {

/// Columns of block k exchanged with the rows of its pivots (Gauss and Jordan): what maps x to y
/// takes these y and gives these x.
ScanResult exchanged(const Tensors& state, const Tensor& k, const Blocks& blocks) {
  const Tensor &x = state[0], panel = block_of_columns(x, k, blocks).contiguous();
  const Eliminated e = panel_eliminated(panel, state[1]);
  const Tensor order = e.pivots.contiguous(), eye = identity_like(x, blocks.size).contiguous();
  const Tensor square = packed_square(rows_in_order(e.lower, order), e.upper).contiguous();
  const Tensor inverse =
      solved_triangle(square, solved_triangle(square, eye, false, true), true, false).contiguous();
  const Tensor place = column_numbers(x) - k * static_cast<int32_t>(blocks.size);
  const Tensor inside = (place >= 0) & (place < static_cast<int32_t>(blocks.size));
  const Tensor own = (place == row_numbers(eye)).cast(x.dtype());
  const Tensor rows = inverse.matmul(inside.where(own, rows_in_order(x, order)).contiguous());
  const Tensor pivots = e.used & ~state[1];
  const Tensor here = (row_numbers(x) == order.T()).cast(x.dtype());
  const Tensor factors = pivots.where(-here, panel).contiguous();
  const Tensor rest = (inside | pivots).where(0, x) - factors.matmul(rows.contiguous());
  return {{rest, e.used}, {order}};
}

}  // namespace

Tensor inverse_by_exchange(const Tensor& a) {
  const int64_t n = a.size(-1);
  const Blocks blocks(n);
  const Tensor x = bordered(a, blocks.padded()).contiguous();
  const Tensor unused = (x.index({kEllipsis, Slice(0, 1)}).zeros_like() != 0).contiguous();
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    return exchanged(state, slices[0], blocks);
  };
  const auto [last, orders] = scan(step, {x, unused}, {step_numbers(x, blocks.count)});
  const Tensor order = rows_of_blocks(orders[0]).contiguous();
  return cropped(permuted(rows_in_order(last[0], order), -1, order.T().expand(x.dims())), n, n);
}

namespace {

/// 1 or -1: the determinant of a permutation, by the inversions in it.
Tensor sign_of(const Tensor& order, DType dtype) {
  const Tensor inversions = (order > order.T()).cast(DType::I32).triu(1).sum({-2, -1});
  return (1 - 2 * (inversions % 2)).cast(dtype);
}

/// Zeros on the diagonal made small: derivatives of a determinant exist without an inverse.
Tensor without_zeros(const Tensor& u) {
  if (u.size(-1) == 0) return u;
  const Tensor size = u.abs().max({-2, -1}, true) * precision(u);
  return u + identity_like(u, u.size(-1)) * (u == 0).where((size == 0).where(1, size), 0);
}

/// de Hoog, Anderssen and Lukas 2011, "Differentiation of matrix functionals using triangular
/// factorization".
Tensor gradient_of_factors(const Tensor& packed, const Tensor& order, const Tensor& grad) {
  const Tensor u = without_zeros(packed.triu()), l = packed.tril(-1) + identity_like(u, u.size(-1));
  const Tensor lower = l.T().matmul(grad.tril(-1)), upper = grad.triu().matmul(u.T());
  const Tensor inner = lower.tril(-1) + upper.triu();
  const Tensor left = inverse_of_triangle(l, false, true).T().matmul(inner);
  return rows_in_order(left.matmul(inverse_of_triangle(u, true, false).T()), undone(order));
}

}  // namespace

namespace {

Tensors lu_of(const Tensor& given) {
  const TensorFunction f = [](const Tensors& in) {
    const auto [packed, order] = packed_factors(in[0]);
    return Tensors{packed, order};
  };
  const GradientFunction gradient = [](const Tensors&, const Tensors& y, const Tensors& up) {
    return Tensors{gradient_of_factors(y[0], y[1], up[0])};
  };
  const Tensors found = with_gradient(f, gradient, {checked_square("lu", given)});
  return {found[0].cast(given.dtype()), found[1].squeeze(-1), sign_of(found[1], given.dtype())};
}

}  // namespace

LU lu(const Tensor& given, CallSite at) {
  const CallSiteScope site(at);
  const Tensors made = called("lu", {}, {given}, [](const Tensors& in) { return lu_of(in[0]); });
  return {made[0], made[1], made[2]};
}

}  // namespace weft::linalg
