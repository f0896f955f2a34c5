// Eigenvalues of symmetric matrices: reflections to three diagonals.
#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/reflections.h"
#include "weft/tensor/tracing.h"
#include "weft/tensor/tridiagonal.h"

namespace weft::linalg {

namespace {

/// A matrix of these diagonals between reflections: h1 h2 ... (diagonal, off) ... h2 h1. The last
/// of `off` is 0; without vectors there are no reflections.
struct Tridiagonal {
  Tensor diagonal, off, vectors;
};

/// As many steps as columns from the first one on, each of which works on all of x.
std::pair<Tensor, Tensor> reduced(const Tensor& x, int64_t columns) {
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    const Tensor &a = state[0], &k = slices[0], v = reflector(column(a, k), k + 1);
    const Tensor seen = (a * v.T()).sum(-1, true).contiguous();
    const Tensor by = (seen - v * ((v * seen).sum(-2, true) * 0.5)).contiguous();
    return ScanResult{{a - v * by.T() - by * v.T()}, {v}};
  };
  const auto [last, v] = scan(step, {x.contiguous()}, {step_numbers(x, columns)});
  return {last[0], columns_of_blocks(v[0])};
}

Tridiagonal tridiagonal(const Tensor& a) {
  const int64_t n = a.size(-1);
  Tensor x = a;
  Tensors diagonal, off, vectors;
  for (const int64_t columns : shrinking(n - 2)) {
    const auto [last, v] = reduced(x, columns);
    const auto done = [&](const Tensor& d) { return d.index({kEllipsis, Slice(0, columns)}); };
    diagonal.push_back(done(last.diagonal(0, -2, -1)));
    off.push_back(done(last.diagonal(-1, -2, -1)));
    vectors.push_back(lowered(v, n));
    x = remaining(last, columns);
  }
  diagonal.push_back(x.diagonal(0, -2, -1));
  const Tensor rest = x.diagonal(-1, -2, -1).unsqueeze(-2);
  off.push_back(extended(rest, 1, x.size(-1)).squeeze(-2));
  return {Tensor::cat(diagonal, -1).contiguous(), Tensor::cat(off, -1).contiguous(),
          n > 2 ? Tensor::cat(vectors, -1).contiguous() : Tensor()};
}

Tensors eigen_of(const Tensor& given) {
  const int64_t n = given.size(-1);
  const Tensor lower = given.tril(), size = magnitude(lower);
  const Tridiagonal t = tridiagonal((lower + given.tril(-1).T()) / size);
  const Eigen e = tridiagonal_eigen(t.diagonal, t.off);
  const Tensor vectors = n > 2 ? reflected(t.vectors, e.vectors) : e.vectors;
  // The size of what is not finite is infinite, and 0 times that NaN.
  return {e.values * size.squeeze(-1), vectors + size * 0};
}

/// Giles 2008, "Collected matrix derivative results", 3.1; nothing is asked of how vectors of equal
/// eigenvalues are chosen.
Tensor gradient_of(const Tensor& values, const Tensor& vectors, const Tensor& values_grad,
                   const Tensor& vectors_grad) {
  const Tensor apart = values.unsqueeze(-2) - values.unsqueeze(-1), equal = apart == 0;
  const Tensor mixed = equal.where(0, vectors.T().matmul(vectors_grad) / equal.where(1, apart));
  const Tensor inner = mixed + identity_like(mixed, values.size(-1)) * values_grad.unsqueeze(-1);
  return in_lower_triangle(vectors.matmul(inner).matmul(vectors.T()));
}

Tensors eigh_of(const Tensor& given) {
  const TensorFunction f = [](const Tensors& in) { return eigen_of(in[0]); };
  const GradientFunction gradient = [](const Tensors&, const Tensors& y, const Tensors& up) {
    return Tensors{gradient_of(y[0], y[1], up[0], up[1])};
  };
  const Tensors found = with_gradient(f, gradient, {checked_square("eigh", given)});
  return {found[0].cast(given.dtype()), found[1].cast(given.dtype())};
}

}  // namespace

std::pair<Tensor, Tensor> eigh(const Tensor& given, CallSite at) {
  const CallSiteScope site(at);
  const Tensors made =
      called("eigh", {}, {given}, [](const Tensors& in) { return eigh_of(in[0]); });
  return {made[0], made[1]};
}

}  // namespace weft::linalg
