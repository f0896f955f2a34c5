// Singular values: reflections from both sides to two diagonals, then QR steps or eigenvalues.
#include <bit>

#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/reflections.h"
#include "weft/tensor/rotations.h"
#include "weft/tensor/tracing.h"
#include "weft/tensor/tridiagonal.h"

namespace weft::linalg {

namespace {

// QR steps per column: at most 2.3 were seen, for matrices of all kinds.
constexpr int64_t kStepsPerColumn = 3, kMoreSteps = 10;
// Up to so many columns steps take less time than eigenvalues of twice as many.
constexpr int64_t kMostSteps = 32;

/// A square matrix of these diagonals between reflections from the left and the right (Golub and
/// Kahan 1965). The last of `off` is 0.
struct Bidiagonal {
  Tensor diagonal, off, left, right;
};

/// As many steps as columns from the first one on, each of which works on all of x: what is left,
/// and the vectors on both sides.
Tensors reduced(const Tensor& x, int64_t columns) {
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    const Tensor &a = state[0], &k = slices[0], u = reflector(column(a, k), k);
    const Tensor seen = (a * u).sum(-2, true).contiguous();
    const Tensor v = reflector((row(a, k) - row(u, k) * seen).T(), k + 1).T();
    const Tensor held = (a * v).sum(-1, true) - u * (seen * v).sum(-1, true);
    return ScanResult{{a - u * seen - held.contiguous() * v}, {u, v.T()}};
  };
  const auto [last, made] = scan(step, {x.contiguous()}, {step_numbers(x, columns)});
  return {last[0], columns_of_blocks(made[0]), columns_of_blocks(made[1])};
}

Bidiagonal bidiagonal(const Tensor& a) {
  const int64_t n = a.size(-1);
  Tensor x = a;
  Tensors diagonal, off, left, right;
  for (const int64_t columns : shrinking(n - 1)) {
    const Tensors made = reduced(x, columns);
    const auto done = [&](const Tensor& d) { return d.index({kEllipsis, Slice(0, columns)}); };
    diagonal.push_back(done(made[0].diagonal(0, -2, -1)));
    off.push_back(done(made[0].diagonal(1, -2, -1)));
    left.push_back(lowered(made[1], n));
    right.push_back(lowered(made[2], n));
    x = remaining(made[0], columns);
  }
  diagonal.push_back(x.diagonal(0, -2, -1));
  off.push_back(diagonal.back().zeros_like());
  const auto joined = [](const Tensors& parts) { return Tensor::cat(parts, -1).contiguous(); };
  return {joined(diagonal), joined(off), joined(left), joined(right)};
}

/// What the first rotation of a step on this chain is made of, divided by its first element: the
/// square of that, less an eigenvalue of the last two rows of B^T B (Wilkinson 1968); 0 instead of
/// it where an element of the diagonal is 0, which is then at the end after one step (Demmel and
/// Kahan 1990).
Tensor shift_of(const Tensor& diagonal, const Tensor& off, const Chain& chain,
                const Tensor& least) {
  const Tensor i = places(off), inside = (i >= chain.first) & (i <= chain.last);
  const Tensor above = (chain.last - 1).clamp_min(0), head = element(diagonal, chain.first);
  const Tensor none = inside.where(diagonal.abs(), 1).min({-1}, true) <= least;
  const Tensor d = element(diagonal, above), e = element(off, above),
               last = element(diagonal, chain.last);
  const Tensor before = (above > chain.first).where(element(off, (above - 1).clamp_min(0)), 0);
  const Tensor lower = last * last + e * e, product = d * e;
  const Tensor half = (d * d + before * before - lower) * 0.5;
  const Tensor root = (half * half + product * product).sqrt();
  const Tensor sum = half + (half < 0).where(-root, root), flat = sum == 0;
  const Tensor value = lower - flat.where(0, product * product / flat.where(1, sum));
  return none.where(0, value / none.where(1, head));
}

/// One implicit QR step on the last chain (Golub and Van Loan, 4th edition, 8.6.2) of a matrix of
/// size 1; the rows of ut and vt take part.
Tensors stepped(const Tensors& state) {
  const Tensor &diagonal = state[0], &given = state[1], &ut = state[2], &vt = state[3];
  const Tensor least = (diagonal.abs() + given.abs()).max({-1}, true) * (0.5 * precision(ut));
  const Tensor size = diagonal.abs() + next_along(diagonal).abs();
  const Tensor small = given.abs() <= size * precision(ut) + least;
  const Tensor off = small.where(0, given).contiguous();
  const Chain chain = last_chain(off);
  const Tensor i = places(off), on = (i >= chain.first) & (i < chain.last);
  const Tensor shift = shift_of(diagonal, off, chain, least).contiguous();
  const Tensors elems{diagonal, next_along(diagonal), off,         next_along(off),
                      on,       i == chain.first,     starts(off), shift};
  enum { kNext, kLink, kRotated, kBulge, kDone, kBefore, kC, kS, kLeftC, kLeftS, kCount };
  const Tensors made = folded_along(elems, kCount, -1, [](const Tensors& e, const Tensors& last) {
    const Tensor d = e[6].where(e[0], last[kNext]), link = e[6].where(e[2], last[kLink]);
    const Rotation r =
        rotation_of(e[5].where(d - e[7], last[kRotated]), e[5].where(link, last[kBulge]), e[4]);
    const Tensor upper = r.c * d + r.s * link, beside = r.c * link - r.s * d;
    const Rotation l = rotation_of(upper, r.s * e[1], e[4]);
    const Tensor lower = r.c * e[1], rotated = l.c * beside + l.s * lower;
    return Tensors{l.c * lower - l.s * beside,
                   l.c * e[3],
                   rotated,
                   l.s * e[3],
                   e[4].where(l.length, d),
                   (e[4] & ~e[5]).where(r.length, last[kRotated]),
                   r.c,
                   r.s,
                   l.c,
                   l.s};
  });
  return {made[kDone], next_along(made[kBefore]), turned_rows(ut, made[kLeftC], made[kLeftS]),
          turned_rows(vt, made[kC], made[kS])};
}

struct Factors {
  Tensor u, s, vt;
};

/// Of two diagonals, by QR steps.
Factors by_steps(const Bidiagonal& b) {
  const int64_t n = b.diagonal.size(-1);
  const Tensor eye = identity_like(b.diagonal.unsqueeze(-1), n).contiguous();
  Tensors state{b.diagonal, b.off, eye, eye};
  const ScanFunction step = [](const Tensors& x, const Tensors&) {
    return ScanResult{stepped(x), {}};
  };
  if (n > 1) state = scan(step, state, {}, {.count = kStepsPerColumn * n + kMoreSteps}).carried;
  const Tensor sign = (state[0] < 0).where(-1, 1).cast(b.diagonal.dtype()).unsqueeze(-1);
  const auto [s, order] = state[0].abs().sort(-1, true);
  const Tensor at = order.unsqueeze(-1);
  return {rows_in_order(state[2], at).T().contiguous(), s, rows_in_order(state[3] * sign, at)};
}

/// The orthogonal matrix that is nearest column by column, from the first on.
Tensor orthogonalised(const Tensor& x) {
  const auto [q, r] = qr(x);
  const Tensor diagonal = r.diagonal(0, -2, -1);
  return (q * (diagonal < 0).where(-1, 1).cast(x.dtype()).unsqueeze(-2)).contiguous();
}

/// Of two diagonals, which beside a diagonal of zeros have the eigenvalues s and -s; vectors are v
/// and u in turn (Golub and Kahan 1965). Where s is next to 0, vectors of s and -s mix, and u and v
/// are not orthogonal by themselves: made so, they are changed by eps / s, and their product with s
/// by eps.
Factors by_eigenvalues(const Bidiagonal& b) {
  const int64_t n = b.diagonal.size(-1);
  const Tensor off = Tensor::stack({b.diagonal, b.off}, -1).flatten(-2, -1).contiguous();
  const Eigen e = tridiagonal_eigen(off.zeros_like().contiguous(), off);
  const Slice largest(2 * n - 1, n - 1, -1);
  const auto rows = [&](int64_t first) {
    return orthogonalised(e.vectors.index({kEllipsis, Slice(first, 2 * n, 2), largest}));
  };
  const Tensor v = rows(0), u = rows(1);
  return {u, e.values.index({kEllipsis, largest}).clamp_min(0), v.T()};
}

Factors factors_of_square(const Tensor& given) {
  const int64_t n = given.size(-1);
  if (n == 0) return {given, given.sum(-1), given};
  const Tensor size = magnitude(given);
  Bidiagonal b{(given / size).squeeze(-1), Tensor(), Tensor(), Tensor()};
  if (n > 1) b = bidiagonal(given / size);
  const Factors f = n <= kMostSteps ? by_steps(b) : by_eigenvalues(b);
  const Tensor s = f.s * size.squeeze(-1);
  if (n == 1) return {f.u, s, f.vt};
  return {reflected(b.left, f.u), s, reflected(b.right, f.vt.T()).T()};
}

/// Of as many rows as columns, or more.
Factors factors(const Tensor& a, bool full) {
  const int64_t m = a.size(-2), n = a.size(-1);
  if (m == n) return factors_of_square(a);
  const auto [q, r] = qr(a, full);
  const Factors f = factors_of_square(cropped(r, n, n));
  const Tensor u = cropped(q, m, n).matmul(f.u);
  if (!full) return {u, f.s, f.vt};
  return {Tensor::cat({u, q.index({kEllipsis, Slice(n, m)})}, -1), f.s, f.vt};
}

/// Townsend 2016, "Differentiating the singular value decomposition"; nothing is asked of how
/// vectors of equal values are chosen.
Tensor gradient_of(const Factors& f, const Factors& up) {
  const Tensor v = f.vt.T(), s = f.s.unsqueeze(-2), column_s = f.s.unsqueeze(-1);
  const Tensor apart = (s - column_s) * (s + column_s), equal = apart == 0;
  const auto skew = [&](const Tensor& x, const Tensor& grad) {
    const Tensor inner = x.T().matmul(grad);
    return equal.where(0, (inner - inner.T()) / equal.where(1, apart));
  };
  Tensor middle = skew(f.u, up.u) * s + column_s * skew(v, up.vt.T());
  middle = middle + identity_like(middle, f.s.size(-1)) * up.s.unsqueeze(-1);
  Tensor left = f.u.matmul(middle);
  if (f.u.size(-2) > f.u.size(-1)) {
    const Tensor none = s == 0, outside = up.u - f.u.matmul(f.u.T().matmul(up.u));
    left = left + none.where(0, outside / none.where(1, s));
  }
  return left.matmul(f.vt);
}

Tensors svd_of(const Tensor& given, bool full) {
  const Tensor a = checked_matrix("svd", given);
  const int64_t m = a.size(-2), n = a.size(-1);
  if (m < n) {
    const SVD t = svd(a.T(), full);
    return {t.vt.T().cast(given.dtype()), t.s.cast(given.dtype()), t.u.T().cast(given.dtype())};
  }
  const TensorFunction f = [full](const Tensors& in) {
    const Factors made = factors(in[0], full);
    return Tensors{made.u, made.s, made.vt};
  };
  const GradientFunction gradient = [=](const Tensors&, const Tensors& y, const Tensors& up) {
    return Tensors{
        gradient_of({cropped(y[0], m, n), y[1], y[2]}, {cropped(up[0], m, n), up[1], up[2]})};
  };
  const Tensors found = with_gradient(f, gradient, {a});
  return {found[0].cast(given.dtype()), found[1].cast(given.dtype()), found[2].cast(given.dtype())};
}

Tensor pinv_of(const Tensor& given, double rcond) {
  const Tensor checked = checked_matrix("pinv", given);
  if (given.size(-1) == 0 || given.size(-2) == 0) return given.T();
  const TensorFunction f = [rcond](const Tensors& in) {
    const SVD made = svd(in[0], false);
    const Tensor counts = made.s > made.s.max(-1, true) * rcond;
    const Tensor inverse = counts.where(1 / counts.where(made.s, 1), 0);
    return Tensors{(made.vt.T() * inverse.unsqueeze(-2)).matmul(made.u.T())};
  };
  // Golub and Pereyra 1973: of changes that keep the rank.
  const GradientFunction gradient = [](const Tensors& in, const Tensors& y, const Tensors& up) {
    const Tensor &a = in[0], &x = y[0], g = up[0].T(), xt = x.T();
    const Tensor right = g.matmul(x).matmul(xt), left = xt.matmul(x).matmul(g);
    return Tensors{right - a.matmul(x.matmul(right)) + left - left.matmul(x).matmul(a) -
                   xt.matmul(up[0]).matmul(xt)};
  };
  return with_gradient(f, gradient, {checked})[0].cast(given.dtype());
}

}  // namespace

SVD svd(const Tensor& given, bool full, CallSite at) {
  const CallSiteScope site(at);
  const Tensors made =
      called("svd", {full}, {given}, [=](const Tensors& in) { return svd_of(in[0], full); });
  return {made[0], made[1], made[2]};
}

Tensor pinv(const Tensor& given, double rcond, CallSite at) {
  const CallSiteScope site(at);
  return called("pinv", {std::bit_cast<int64_t>(rcond)}, {given},
                [=](const Tensors& in) { return Tensors{pinv_of(in[0], rcond)}; })[0];
}

}  // namespace weft::linalg
