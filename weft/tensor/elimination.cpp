// Elimination with partial pivoting. Rows stay where they are; which of them were pivots is
// remembered.
#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

namespace {

struct Eliminated {
  Tensor columns;  ///< below the pivots multipliers in the place of zeros
  Tensor used;     ///< bools (..., n, 1): rows that were pivots
  Tensor pivots;   ///< i32 (..., count, 1): their numbers
};

/// Columns lie side by side while they are worked on: a step reads one of them, and finds its
/// pivot by two folds, of which argmax would make one that goes element by element. What it changes
/// are multiples of one row, without a condition; multipliers are divided by their pivots at the
/// end, all at once.
Eliminated eliminated(const Tensor& columns, const Tensor& used) {
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    const Tensor &a = state[0], &done = state[1], &k = slices[0], values = row(a, k);
    const Tensor i = column_numbers(a), j = row_numbers(a);
    const Tensor size = done.where(-1, values.detach().abs()), most = size.max({-1}, true);
    const Tensor at = (size == most).where(i, a.size(-1) - 1).min({-1}, true).contiguous();
    const Tensor pivots = column(a, at), pivot = row(pivots, k), some = (j > k) & (pivot != 0);
    const Tensor by = some.where(pivots / (pivot == 0).where(1, pivot), 0).contiguous();
    const Tensor gone = done | (i == at), taken = gone.where(0, values).contiguous();
    return ScanResult{{a - by * taken, gone}, {at}};
  };
  const Tensors steps{step_numbers(columns, columns.size(-1))};
  const Tensor before = used.T().contiguous();
  const auto [last, stacks] = scan(step, {columns.T().contiguous(), before}, steps);
  const Tensor &x = last[0], order = rows_of_blocks(stacks[0]).contiguous();
  const Tensor j = row_numbers(x), chosen = order == column_numbers(x);
  const Tensor turn = chosen.where(j, 0).max({-2}, true), free = ~last[1] | (turn > j);
  const Tensor pivot = gather_inside(x, -1, order), none = pivot == 0;
  const Tensor factors = x / none.where(1, pivot).contiguous();
  return {(free & ~before).where(factors, x).T(), last[1].T(), order};
}

}  // namespace

namespace {

/// What blocks of columns, one after the other, leave: multipliers, rows above the diagonal and the
/// pivots' numbers, each a stack, and x and which of its rows were pivots.
std::pair<Tensors, Tensors> blocks_eliminated(const Tensor& x, const Tensor& used, int64_t count) {
  const Blocks blocks(x.size(-1), Blocks::kColumns, 0);
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor panel = block_of_columns(state[0], slices[0], blocks).contiguous();
    const Eliminated e = eliminated(panel, state[1]);
    const Tensor order = e.pivots.contiguous(), rows = rows_in_order(state[0], order).contiguous();
    const Tensor square = rows_in_order(e.columns, order).contiguous();
    const Tensor eye = identity_like(square, blocks.size).contiguous();
    const Tensor u = solved_triangle(square, eye, false, true).matmul(rows).contiguous();
    const Tensor l = e.used.where(0, e.columns).contiguous();
    return ScanResult{{state[0] - l.matmul(u), e.used}, {e.columns, u, order}};
  };
  const ScanResult found = scan(step, {x, used}, {step_numbers(x, count)});
  return {found.stacked, found.carried};
}

}  // namespace

std::pair<Tensor, Tensor> packed_factors(const Tensor& a) {
  // Columns that are done with are left out so many times, of matrices with more blocks than these.
  constexpr int64_t kStages = 2, kFewBlocks = 4;
  const int64_t n = a.size(-1);
  const Blocks blocks(n);
  Tensor x = bordered(a, blocks.padded()).contiguous();
  Tensor used = (x.index({kEllipsis, Slice(0, 1)}).zeros_like() != 0).contiguous();
  if (n == 0) return {x, x.sum(-1, true).cast(DType::I32)};
  if (blocks.count == 1) {
    const Eliminated e = eliminated(x, used);
    return {rows_in_order(e.columns, e.pivots), e.pivots};
  }
  const int64_t each = std::max(kFewBlocks, (blocks.count + kStages - 1) / kStages);
  Tensors lower, upper, orders;
  for (int64_t done = 0; done < blocks.count; done += each) {
    const int64_t count = std::min(each, blocks.count - done);
    const auto [made, last] = blocks_eliminated(x, used, count);
    lower.push_back(columns_of_blocks(made[0]));
    upper.push_back(beside_zeros(rows_of_blocks(made[1]), done * blocks.size));
    orders.push_back(rows_of_blocks(made[2]));
    x = last[0].index({kEllipsis, Slice(count * blocks.size, x.size(-1))}).contiguous();
    used = last[1];
  }
  const Tensor order = cropped(Tensor::cat(orders, -2), n, 1).contiguous();
  const Tensor l = cropped(rows_in_order(Tensor::cat(lower, -1).contiguous(), order), n, n);
  return {l.tril(-1) + cropped(Tensor::cat(upper, -2), n, n).triu(), order};
}

namespace {

/// Columns of block k exchanged with the rows of its pivots (Gauss and Jordan): what maps x to y
/// takes these y and gives these x.
ScanResult exchanged(const Tensors& state, const Tensor& k, const Blocks& blocks) {
  const Tensor &x = state[0], panel = block_of_columns(x, k, blocks).contiguous();
  const Eliminated e = eliminated(panel, state[1]);
  const Tensor order = e.pivots.contiguous(), eye = identity_like(x, blocks.size).contiguous();
  const Tensor square = rows_in_order(e.columns, order).contiguous();
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

/// i32 (..., n, 1), a permutation, as the permutation that undoes it.
Tensor undone(const Tensor& order) {
  return order.zeros_like().scatter(-2, order, row_numbers(order).expand(order.dims()));
}

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
