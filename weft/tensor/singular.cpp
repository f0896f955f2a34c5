// Singular values by Jacobi rotations of disjoint pairs.
#include <bit>
#include <numeric>

#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/tables.h"

namespace weft::linalg {

namespace {

/// In every round each column meets another one, and in n - 1 (n odd: n) rounds every other: the
/// circle method of tournaments. A column without a partner is its own.
std::vector<Tensor> rounds(const Tensor& x) {
  const int64_t n = x.size(-1), players = n + n % 2;
  std::vector<Tensor> all;
  for (int64_t r = 0; r + 1 < players; ++r) {
    std::vector<int32_t> partner(static_cast<size_t>(n));
    std::iota(partner.begin(), partner.end(), 0);
    auto meet = [&](int64_t a, int64_t b) {
      if (a >= n || b >= n) return;
      partner[static_cast<size_t>(a)] = static_cast<int32_t>(b);
      partner[static_cast<size_t>(b)] = static_cast<int32_t>(a);
    };
    const int64_t circle = players - 1;
    meet(r, circle);
    for (int64_t i = 1; i <= (players - 2) / 2; ++i)
      meet((r + i) % circle, (r - i + circle) % circle);
    all.push_back(constant_table(partner, {1, n}, x));
  }
  return all;
}

/// Jacobi converges quadratically: a few sweeps after the first log2(n).
int64_t sweeps(const Tensor& x) {
  const auto n = static_cast<uint64_t>(x.size(-1));
  return std::bit_width(n) + (x.dtype() == DType::F64 ? 6 : 5);
}

/// New column = kept * column + mixed * partner; both (..., 1, n).
struct Rotation {
  Tensor kept, mixed;
};

/// What makes a pair's product zero: `own` and `other` are the squares (diagonal elements) of the
/// column and its partner, `product` is theirs (Golub and Van Loan, 8.5.2).
Rotation rotation(const Tensor& own, const Tensor& other, const Tensor& product,
                  const Tensor& partner) {
  const Tensor j = Tensor::arange(partner.dim(-1)).to(partner.device()), first = j < partner;
  const Tensor apart = first.where(other - own, own - other);
  const Tensor square = apart * apart + 4 * (product * product), none = square == 0;
  const Tensor size = (apart < 0).where(-apart, apart) + none.where(1, square).sqrt();
  const Tensor tangent = none.where(0, 2 * (apart < 0).where(-product, product) / size);
  const Tensor cosine = (tangent * tangent + 1).rsqrt(), sine = tangent * cosine;
  const Tensor mixed = first.where(-sine, (j > partner).where(sine, 0));
  return {(j == partner).where(1, cosine).contiguous(), mixed.contiguous()};
}

Tensor rotated(const Tensor& x, const Tensor& partner, const Rotation& r) {
  return (r.kept * x + r.mixed * columns_in_order(x, partner)).contiguous();
}

}  // namespace

namespace {

/// Orthogonal columns u = a @ v of a tall matrix, v orthogonal.
std::pair<Tensor, Tensor> orthogonal_columns(const Tensor& a) {
  Tensor u = a.contiguous(), v = identity_like(a, a.size(-1)).contiguous();
  const std::vector<Tensor> pairs = rounds(a);
  const int64_t count = a.size(-1) > 0 ? sweeps(a) : 0;
  for (int64_t sweep = 0; sweep < count; ++sweep) {
    for (const Tensor& partner : pairs) {
      const Tensor own = (u * u).sum(-2, true).contiguous();
      const Tensor product = (u * columns_in_order(u, partner)).sum(-2, true).contiguous();
      const Rotation r = rotation(own, columns_in_order(own, partner), product, partner);
      u = rotated(u, partner, r);
      v = rotated(v, partner, r);
    }
  }
  return {u, v};
}

}  // namespace

SVD svd(const Tensor& given, bool full, CallSite at) {
  const CallSiteScope site(at);
  const Tensor a = checked_matrix("svd", given);
  if (a.size(-2) < a.size(-1)) {
    const SVD t = svd(a.transpose(-1, -2), full);
    return {t.vt.transpose(-1, -2).cast(given.dtype()), t.s.cast(given.dtype()),
            t.u.transpose(-1, -2).cast(given.dtype())};
  }
  const auto [columns, v] = orthogonal_columns(a);
  const auto [s, order] = length(columns, -2).squeeze(-2).sort(-1, true);
  const Tensor at_order = order.unsqueeze(-2);
  // The columns of u times s are orthogonal already: their q has unit columns, where s is 0 too.
  const auto [q, r] = qr(columns_in_order(columns, at_order), full);
  const Tensor signs = (r.diagonal(0, -2, -1).detach() < 0).where(-1, 1).cast(a.dtype());
  const std::vector<DimPair> none(signs.ndim() - 1, DimPair(0, 0));
  std::vector<DimPair> rest = none;
  rest.emplace_back(0, q.dim(-1) - signs.dim(-1));
  const Tensor u = q * signs.pad(rest, 1).unsqueeze(-2);
  return {u.cast(given.dtype()), s.cast(given.dtype()),
          columns_in_order(v, at_order).transpose(-1, -2).cast(given.dtype())};
}

Tensor pinv(const Tensor& given, double rcond, CallSite at) {
  const CallSiteScope site(at);
  const Tensor a = checked_matrix("pinv", given);
  const SVD f = svd(a);
  const Tensor counts = f.s > f.s.max(-1, true) * rcond;
  const Tensor inverse = counts.where(1 / counts.where(f.s, 1), 0);
  return (f.vt.transpose(-1, -2) * inverse.unsqueeze(-2))
      .matmul(f.u.transpose(-1, -2))
      .cast(given.dtype());
}

}  // namespace weft::linalg
