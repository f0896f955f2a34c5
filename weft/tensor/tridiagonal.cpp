// Eigenvalues of three diagonals: QR steps on small matrices, larger ones cut into such (Cuppen
// 1981).
#include "weft/tensor/tridiagonal.h"

#include "weft/tensor/access.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/rotations.h"
#include "weft/tensor/transforms.h"

namespace weft::linalg {

namespace {

// QR steps per column: at most 2.3 were seen, for matrices of all kinds.
constexpr int64_t kStepsPerColumn = 3, kMoreSteps = 10;
// Matrices of up to so many columns are not cut. Others always are in so many parts: each joining
// of halves is kernels of its own, so there are as many kernels however large a matrix is.
constexpr int64_t kMostWhole = 32, kJoinings = 3, kParts = 1 << kJoinings;

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
      diagonal, next_along(diagonal), off,         next_along(off),
      on,       i == chain.first,     starts(off), shift_of(diagonal, off, chain).contiguous()};
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

/// In no order.
Eigen by_steps(const Tensor& diagonal, const Tensor& off) {
  const int64_t n = diagonal.size(-1);
  const Tensor eye = identity_like(diagonal.unsqueeze(-1), n);
  Tensors state{diagonal, off, eye.contiguous()};
  if (n > 1) {
    const ScanFunction step = [](const Tensors& s, const Tensors&) {
      return ScanResult{stepped(s[0], s[1], s[2]), {}};
    };
    state = scan(step, state, {}, {.count = kStepsPerColumn * n + kMoreSteps}).carried;
  }
  return {state[0], state[2].T()};
}

/// Parts of equal size, in no order: more rows at the end have eigenvalues beyond the others.
Eigen by_parts(const Tensor& given, const Tensor& beside) {
  const int64_t n = given.size(-1), size = (n + kParts - 1) / kParts;
  const Tensor most = (given.abs().max({-1}, true) + beside.abs().max({-1}, true) * 2);
  const Tensor inside = Tensor::arange(size * kParts).to(given.device()) < n;
  const auto longer = [&](const Tensor& x) {
    return extended(x.unsqueeze(-2), 1, size * kParts).squeeze(-2);
  };
  const Tensor d = inside.where(longer(given), most * 2);
  const Tensor off = longer(beside).unflatten(-1, {kParts, size}).contiguous();
  const Tensor links = off.index({kEllipsis, Slice(size - 1, size)});
  const Tensor after = links.abs(),
               before = delayed(after, static_cast<int64_t>(after.ndim()) - 2, 0);
  const Tensor i = Tensor::arange(size).to(given.device());
  const Tensor cut =
      d.unflatten(-1, {kParts, size}) - (i == 0).where(before, 0) - (i == size - 1).where(after, 0);
  Eigen e = by_steps(cut.contiguous(), (i == size - 1).where(0, off).contiguous());
  for (int64_t level = 0; level < kJoinings; ++level) {
    const int64_t pairs = kParts >> (level + 1), at = (int64_t{1} << level) - 1;
    const Tensor link = links.unflatten(-2, {pairs, 2 << level}).index({kEllipsis, at, Slice()});
    e = joined({e.values.unflatten(-2, {pairs, 2}), e.vectors.unflatten(-3, {pairs, 2})},
               link.contiguous());
  }
  return {e.values.squeeze(-2), e.vectors.squeeze(-3)};
}

}  // namespace

Eigen tridiagonal_eigen(const Tensor& diagonal, const Tensor& off) {
  const int64_t n = diagonal.size(-1);
  const Eigen e = n <= kMostWhole ? by_steps(diagonal, off) : by_parts(diagonal, off);
  const auto [values, order] = e.values.sort(-1);
  const Tensor some = order.index({kEllipsis, Slice(0, n)});
  const Tensor vectors = rows_in_order(e.vectors.T(), some.unsqueeze(-1));
  return {values.index({kEllipsis, Slice(0, n)}), cropped(vectors, n, n).T().contiguous()};
}

}  // namespace weft::linalg
