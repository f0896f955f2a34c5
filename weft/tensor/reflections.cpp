// Householder reflections, many as one product: I - V T V^T, where T is the inverse of what lies on
// and above the diagonal of V^T V (Schreiber and Van Loan 1989; Puglisi 1992).
#include "weft/tensor/reflections.h"

#include <tuple>

#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

Tensor reflector(const Tensor& x, const Tensor& at) {
  const Tensor i = row_numbers(x), below = (i > at).where(x, 0), head = row(x, at);
  const Tensor rest = (below * below).sum(-2, true), none = rest <= negligible(x) * negligible(x);
  const Tensor size = (head * head + rest).sqrt();
  // Away from cancellation: the head grows.
  const Tensor grown = head + (head < 0).where(-size, size);
  const Tensor square = none.where(1, size * (size + head.abs()));
  const Tensor scale = none.where(0, square.rsqrt()).contiguous();
  return ((i == at).where(grown, below) * scale).contiguous();
}

Tensor inverse_kernel(const Tensor& v) {
  const Tensor products = v.T().matmul(v).triu(1);
  return products + identity_like(products, v.size(-1));
}

Tensor reflected(const Tensor& v, const Tensor& x) {
  const Tensor seen = v.T().matmul(x).contiguous();
  return x - v.matmul(solved_triangle(inverse_kernel(v), seen, true, true));
}

std::vector<int64_t> shrinking(int64_t columns) {
  // Below, launches take longer than work.
  constexpr int64_t kMostAtOnce = 64, kStages = 4;
  std::vector<int64_t> counts;
  const int64_t each = columns <= kMostAtOnce ? columns : (columns + kStages - 1) / kStages;
  for (int64_t left = columns; left > 0; left -= counts.back())
    counts.push_back(std::min(each, left));
  return counts;
}

Tensor remaining(const Tensor& x, int64_t without) {
  return x.index({kEllipsis, Slice(without, x.size(-2)), Slice(without, x.size(-1))});
}

Tensor lowered(const Tensor& x, int64_t rows) {
  std::vector<DimPair> by(x.ndim(), DimPair(0, 0));
  by[by.size() - 2] = {rows - x.size(-2), 0};
  return x.pad(by);
}

namespace {

/// Columns with zeros below the diagonal, whose first element is in row `first` (i32 ()), and the
/// vectors of the reflections that made them.
std::pair<Tensor, Tensor> with_zeros(const Tensor& columns, const Tensor& first) {
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor &a = state[0], &k = slices[0], v = reflector(column(a, k), first + k);
    const Tensor seen = (v * a).sum(-2, true).contiguous();
    return ScanResult{{a - v * seen}, {v}};
  };
  const auto [last, v] = scan(step, {columns}, {step_numbers(columns, columns.size(-1))});
  return {last[0], columns_of_blocks(v[0])};
}

/// x after the transposes of the reflections with vectors v, of which T is the kernel.
Tensor reflected_back(const Tensor& v, const Tensor& t, const Tensor& x) {
  return x - v.matmul(t.T().matmul(v.T().matmul(x).contiguous()).contiguous());
}

struct Factors {
  Tensor q, r;
};

/// Of one block: all of its columns at once, then those that are to its right.
Factors factors_of_block(const Tensor& a, int64_t kept) {
  const int64_t m = a.size(-2), n = a.size(-1), size = std::min(m, n);
  const Tensor left = cropped(a, m, size).contiguous();
  const auto [columns, v] = with_zeros(left, number(a, 0));
  const Tensor vectors = v.contiguous();
  const Tensor q = reflected(vectors, cropped(identity_like(a, m), m, kept));
  if (n == size) return {q, columns};
  const Tensor right = a.index({kEllipsis, Slice(size, n)});
  const Tensor eye = identity_like(a, size);
  const Tensor t = solved_triangle(inverse_kernel(vectors), eye, true, true);
  return {q, Tensor::cat({columns, reflected_back(vectors, t, right)}, -1)};
}

Factors factors_of_blocks(const Tensor& a, const Blocks& blocks, int64_t kept) {
  const int64_t m = a.size(-2), n = a.size(-1);
  const ScanFunction forwards = [&](const Tensors& state, const Tensors& slices) {
    const Tensor left = cropped(state[0], m, blocks.padded());
    const Tensor panel = block_of_columns(left, slices[0], blocks).contiguous();
    const Tensor first = slices[0] * static_cast<int32_t>(blocks.size);
    const Tensor v = with_zeros(panel, first).second.contiguous();
    const Tensor eye = identity_like(v, blocks.size);
    const Tensor t = solved_triangle(inverse_kernel(v), eye, true, true).contiguous();
    return ScanResult{{reflected_back(v, t, state[0])}, {v, t}};
  };
  const Tensor x = extended(a, m, std::max(n, blocks.padded())).contiguous();
  const auto [last, made] = scan(forwards, {x}, {step_numbers(a, blocks.count)});
  const ScanFunction backwards = [](const Tensors& state, const Tensors& slices) {
    return ScanResult{{reflected_back(slices[0], slices[1].T(), state[0])}, {}};
  };
  const Tensor eye = cropped(identity_like(a, m), m, kept).contiguous();
  const Tensor q = scan(backwards, {eye}, made, {.reversed = true}).carried[0];
  return {q, cropped(last[0], m, n)};
}

Tensors factors(const Tensor& given, int64_t kept) {
  const Tensor size = magnitude(given, {-2}), a = given / size;  // column by column
  const Blocks blocks(std::min(a.size(-2), a.size(-1)));
  const Factors f =
      blocks.count == 1 ? factors_of_block(a, kept) : factors_of_blocks(a, blocks, kept);
  return {f.q, cropped(f.r, kept, a.size(-1)).triu() * size};
}

/// Walter and Lehmann 2018, "Algorithmic differentiation of linear algebra functions with
/// application in optimum experimental design"; r is square.
Tensor gradient_of_factors(const Tensor& q, const Tensor& r, const Tensor& q_grad,
                           const Tensor& r_grad) {
  const Tensor m = r.matmul(r_grad.triu().T()) - q_grad.T().matmul(q);
  const Tensor both = m.tril() + m.tril(-1).T();
  return (q_grad + q.matmul(both)).matmul(inverse_of_triangle(r, true, false).T());
}

/// As many rows as columns, or more.
std::pair<Tensor, Tensor> thin_factors(const Tensor& a) {
  const TensorFunction f = [](const Tensors& in) { return factors(in[0], in[0].size(-1)); };
  const GradientFunction gradient = [](const Tensors&, const Tensors& y, const Tensors& up) {
    return Tensors{gradient_of_factors(y[0], y[1], up[0], up[1])};
  };
  const Tensors found = with_gradient(f, gradient, {a});
  return {found[0], found[1]};
}

Tensors qr_of(const Tensor& given, bool full) {
  const Tensor a = checked_matrix("qr", given);
  const int64_t m = a.size(-2), n = a.size(-1);
  Tensor q, r;
  if (m < n) {
    const auto [square, upper] = thin_factors(cropped(a, m, m));
    const Tensor right = square.T().matmul(a.index({kEllipsis, Slice(m, n)}));
    q = square, r = Tensor::cat({upper, right}, -1);
  } else if (full && m > n) {
    // The other columns of q depend on how they are made: their gradients are those of the steps.
    const Tensors found = factors(a, m);
    q = found[0], r = found[1];
  } else {
    std::tie(q, r) = thin_factors(a);
  }
  return {q.cast(given.dtype()), r.cast(given.dtype())};
}

}  // namespace

std::pair<Tensor, Tensor> qr(const Tensor& given, bool full, CallSite at) {
  const CallSiteScope site(at);
  const Tensors made =
      called("qr", {full}, {given}, [=](const Tensors& in) { return qr_of(in[0], full); });
  return {made[0], made[1]};
}

}  // namespace weft::linalg
