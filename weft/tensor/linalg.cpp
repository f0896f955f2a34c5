// What follows from factorisations: solutions, determinants, powers.
#include "weft/tensor/linalg.h"

#include "weft/tensor/matrices.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

// ---- elimination

namespace {

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

Tensor as_given(const Equations& e, const Tensor& x, DType dtype) {
  return (e.vector ? x.squeeze(-1) : x).cast(dtype);
}

/// x of a @ x = b, without a gradient.
Tensor solution_of(const Tensor& a, const Tensor& b) {
  const auto [packed, order] = packed_factors(a);
  const Tensor y = solved_triangle(packed, rows_in_order(b, order), false, true);
  return solved_triangle(packed, y, true, false);
}

Tensor inverse_of(const Tensor& a) {
  const TensorFunction f = [](const Tensors& in) {
    const int64_t n = in[0].size(-1);
    return Tensors{Blocks(n).count > 1 ? inverse_by_exchange(in[0])
                                       : solution_of(in[0], identity_like(in[0], n))};
  };
  const GradientFunction gradient = [](const Tensors&, const Tensors& y, const Tensors& up) {
    return Tensors{-y[0].T().matmul(up[0]).matmul(y[0].T())};
  };
  return with_gradient(f, gradient, {a})[0];
}

Tensor solve_of(const Tensor& a, const Tensor& b) {
  const Equations e = equations("solve", a, b, checked_square("solve", a));
  const TensorFunction f = [](const Tensors& in) { return Tensors{solution_of(in[0], in[1])}; };
  const GradientFunction gradient = [](const Tensors& in, const Tensors& x, const Tensors& up) {
    const Tensor right = in[2].T().matmul(up[0]);
    return Tensors{-right.matmul(x[0].T()), right, Tensor()};
  };
  return as_given(e, with_gradient(f, gradient, {e.a, e.b, inverse_of(e.a)})[0], b.dtype());
}

Tensor det_of(const Tensor& a) {
  const LU f = lu(checked_square("det", a));
  return (f.packed.diagonal(0, -2, -1).prod(-1) * f.sign).cast(a.dtype());
}

Tensors slogdet_of(const Tensor& a) {
  const LU f = lu(checked_square("slogdet", a));
  const Tensor pivots = f.packed.diagonal(0, -2, -1);
  return {(pivots.detach().sign().prod(-1) * f.sign).cast(a.dtype()),
          pivots.abs().log().sum(-1).cast(a.dtype())};
}

Tensor lstsq_of(const Tensor& a, const Tensor& b) {
  const Equations e = equations("lstsq", a, b, checked_matrix("lstsq", a));
  const bool tall = a.size(-2) >= a.size(-1);
  const auto [q, r] = qr(tall ? e.a : e.a.transpose(-1, -2));
  const Tensor x = tall ? solution_of_triangle(r, q.T().matmul(e.b), true, false)
                        : q.matmul(solution_of_triangle(r.T(), e.b, false, false));
  return as_given(e, x, b.dtype());
}

}  // namespace

Tensor triangular_solve(const Tensor& a, const Tensor& b, bool upper, bool unit, CallSite at) {
  const CallSiteScope site(at);
  return called("triangular_solve", {upper, unit}, {a, b}, [=](const Tensors& in) {
    const Tensor square = checked_square("triangular_solve", in[0]);
    const Equations e = equations("triangular_solve", in[0], in[1], square);
    return Tensors{as_given(e, solution_of_triangle(e.a, e.b, upper, unit), in[1].dtype())};
  })[0];
}

Tensor inv(const Tensor& a, CallSite at) {
  const CallSiteScope site(at);
  return called("inv", {}, {a}, [](const Tensors& in) {
    return Tensors{inverse_of(checked_square("inv", in[0])).cast(in[0].dtype())};
  })[0];
}

Tensor solve(const Tensor& a, const Tensor& b, CallSite at) {
  const CallSiteScope site(at);
  return called("solve", {}, {a, b},
                [](const Tensors& in) { return Tensors{solve_of(in[0], in[1])}; })[0];
}

Tensor det(const Tensor& a, CallSite at) {
  const CallSiteScope site(at);
  return called("det", {}, {a}, [](const Tensors& in) { return Tensors{det_of(in[0])}; })[0];
}

std::pair<Tensor, Tensor> slogdet(const Tensor& a, CallSite at) {
  const CallSiteScope site(at);
  const Tensors made =
      called("slogdet", {}, {a}, [](const Tensors& in) { return slogdet_of(in[0]); });
  return {made[0], made[1]};
}

Tensor lstsq(const Tensor& a, const Tensor& b, CallSite at) {
  const CallSiteScope site(at);
  return called("lstsq", {}, {a, b},
                [](const Tensors& in) { return Tensors{lstsq_of(in[0], in[1])}; })[0];
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
