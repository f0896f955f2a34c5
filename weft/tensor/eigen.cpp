// Eigenvalues of symmetric matrices: reflections to three diagonals, then QR steps on these.
#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/reflections.h"
#include "weft/tensor/rotations.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

namespace {

// QR steps per column: at most 2.3 were seen, for matrices of all kinds.
constexpr int64_t kStepsPerColumn = 3, kMoreSteps = 10;

/// A matrix of these diagonals between reflections: h1 h2 ... (diagonal, off) ... h2 h1. The last
/// of `off` is 0; without vectors there are no reflections.
struct Tridiagonal {
  Tensor diagonal, off, vectors;
};

Tridiagonal tridiagonal(const Tensor& a) {
  const int64_t n = a.size(-1);
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    const Tensor &x = state[0], &k = slices[0], v = reflector(column(x, k), k + 1);
    const Tensor seen = (x * v.T()).sum(-1, true).contiguous();
    const Tensor by = (seen - v * ((v * seen).sum(-2, true) * 0.5)).contiguous();
    return ScanResult{{x - v * by.T() - by * v.T()}, {v}};
  };
  Tensor x = a, vectors;
  if (n > 2) {
    const auto [last, v] = scan(step, {a.contiguous()}, {step_numbers(a, n - 2)});
    x = last[0], vectors = columns_of_blocks(v[0]).contiguous();
  }
  const Tensor off = extended(x.diagonal(-1, -2, -1).unsqueeze(-2), 1, n).squeeze(-2);
  return {x.diagonal(0, -2, -1).contiguous(), off.contiguous(), vectors};
}

/// The eigenvalue of the last two rows of a chain that is nearer to its last element (Wilkinson
/// 1968).
Tensor shift_of(const Tensor& diagonal, const Tensor& off, const Chain& chain) {
  const Tensor above = (chain.last - 1).clamp_min(0);
  const Tensor d = element(diagonal, chain.last), e = element(off, above);
  const Tensor half = (element(diagonal, above) - d) * 0.5, root = (half * half + e * e).sqrt();
  const Tensor sum = half + (half < 0).where(-root, root), none = sum == 0;
  return d - none.where(0, e * e / none.where(1, sum));
}

/// One implicit QR step on the last chain of a matrix of size 1 (Golub and Van Loan, 4th edition,
/// 8.3.2); z's rows take part.
Tensors stepped(const Tensor& diagonal, const Tensor& given, const Tensor& z) {
  const Tensor size = diagonal.abs() + next_along(diagonal).abs();
  const Tensor small = given.abs() <= size * precision(z) + 8 * negligible(z);
  const Tensor off = small.where(0, given).contiguous();
  const Chain chain = last_chain(off);
  const Tensor i = places(off), on = (i >= chain.first) & (i < chain.last);
  const Tensors elems{
      diagonal, next_along(diagonal), off,    next_along(off),
      on,       i == chain.first,     i == 0, shift_of(diagonal, off, chain).contiguous()};
  enum { kNext, kLink, kBulge, kRotated, kBefore, kC, kS, kDone, kCount };
  const Tensors made = folded_along(elems, kCount, -1, [](const Tensors& e, const Tensors& last) {
    const Tensor d = e[6].where(e[0], last[kNext]), link = e[6].where(e[2], last[kLink]);
    const Rotation r =
        rotation_of(e[5].where(d - e[7], last[kRotated]), e[5].where(link, last[kBulge]), e[4]);
    const Tensor apart = d - e[1], moved = r.s * (2 * r.c * link - r.s * apart);
    const Tensor rotated = (r.c * r.c - r.s * r.s) * link - r.c * r.s * apart;
    const Tensor before = (e[4] & ~e[5]).where(r.length, last[kRotated]);
    return Tensors{e[1] - moved, r.c * e[3], r.s * e[3], rotated, before, r.c, r.s, d + moved};
  });
  return {made[kDone], next_along(made[kBefore]), turned_rows(z, made[kC], made[kS])};
}

Tensors eigen_of(const Tensor& given) {
  const int64_t n = given.size(-1);
  const Tensor size = magnitude(given), eye = identity_like(given, n);
  const Tridiagonal t = tridiagonal((given.tril() + given.tril(-1).T()) / size);
  Tensors state{t.diagonal, t.off, eye.contiguous()};
  if (n > 1)
    state = scan([](const Tensors& s,
                    const Tensors&) { return ScanResult{stepped(s[0], s[1], s[2]), {}}; },
                 state, {}, {.count = kStepsPerColumn * n + kMoreSteps})
                .carried;
  const auto [values, order] = state[0].sort(-1);
  const Tensor inner = rows_in_order(state[2], order.unsqueeze(-1)).T().contiguous();
  return {values * size.squeeze(-1), n > 2 ? reflected(t.vectors, inner) : inner};
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
