// Eigenvalues of a diagonal matrix changed by a rank of one: between each two of the diagonal there
// is one root of 1 + sum_j w_j / (d_j - x) (Cuppen 1981), all of which are found at once. Vectors
// are those of the matrix that has exactly the roots found, and so are orthogonal (Gu and Eisenstat
// 1994, "A stable and efficient algorithm for the rank-one modification of the symmetric
// eigenproblem").
#include "weft/tensor/access.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/rotations.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/transforms.h"
#include "weft/tensor/tridiagonal.h"

namespace weft::linalg {

namespace {

// Where the other roots see a pole whose root is the pole itself: its terms vanish beside those of
// a matrix of size 1. The square is a finite f32.
constexpr double kFar = 1e18;

/// d, ascending, and w, 0 where `fixed`: there the root is d itself, and `seen`, where the other
/// roots see d, is kFar. Where it is not, no two of d are equal.
struct Poles {
  Tensor d, w, fixed, seen;
};

/// Roots as origin + offset, of which one is a pole: differences from poles have small errors.
struct Roots {
  Tensor origin, offset;
};

/// Equal ones a last digit apart: there is a root between any two.
Tensor spread(const Tensor& d, const Tensor& fixed) {
  const double eps = precision(d);
  const Tensors elems{d, fixed, places(d) == 0};
  return folded_along(elems, 2, -1, [=](const Tensors& e, const Tensors& carried) {
    const Tensor last = e[2].where(-kFar, carried[0]);
    const Tensor apart = e[0].maximum(last + last.abs() * (2 * eps) + eps * eps);
    return Tensors{e[1].where(last, apart), e[1].where(e[0], apart)};
  })[1];
}

/// The next pole that is not fixed, kFar if there is none.
Tensor next_of(const Poles& p) {
  const Tensors elems{p.d.flip({-1}), p.fixed.flip({-1}), places(p.d) == 0};
  const Tensors made = folded_along(elems, 2, -1, [](const Tensors& e, const Tensors& carried) {
    const Tensor last = e[2].where(kFar, carried[0]);
    return Tensors{e[1].where(last, e[0]), last};
  });
  return made[1].flip({-1}).contiguous();
}

/// The function whose roots are searched, for one x = origin + offset near each pole.
Tensor value_at(const Poles& p, const Tensor& origin, const Tensor& offset) {
  const Tensor apart = p.seen.unsqueeze(-1) - origin.unsqueeze(-2) - offset.unsqueeze(-2);
  return (p.w.unsqueeze(-1) / apart).sum(-2) + 1;
}

/// The bits of a positive number below the sign, from the highest on, as data.
Tensor bits_of(const Tensor& like) {
  const auto powers = [&]<class T>(T count) {
    std::vector<T> out;
    for (T k = count; k > 0; --k) out.push_back(T{1} << (k - 1));
    return constant_table(out, {static_cast<int64_t>(count)}, like);
  };
  return like.dtype() == DType::F64 ? powers(uint64_t{63}) : powers(uint32_t{31});
}

/// One in each gap, from the nearer pole: a bit of its distance is set as long as the root is not
/// passed. The order of positive numbers is that of their bits.
Roots roots_of(const Poles& p) {
  const Tensor next = next_of(p), inner = next < kFar;
  const Tensor width = inner.where(next - p.d, p.w.sum(-1, true)).contiguous();
  const Tensor half = width * 0.5, above = inner & (value_at(p, p.d, half) < 0);
  const Tensor origin = above.where(next, p.d).contiguous();
  const Tensor side = above.where(-1, 1).cast(p.d.dtype()).contiguous();
  const Tensor most = inner.where(half, width).contiguous();
  const Tensor powers = bits_of(p.d);
  const ScanFunction step = [&](const Tensors& state, const Tensors& slices) {
    const Tensor longer = state[0] | slices[0], distance = longer.bitcast(p.d.dtype());
    const Tensor before = (distance <= most) & (value_at(p, origin, side * distance) * side < 0);
    return ScanResult{{before.where(longer, state[0])}, {}};
  };
  const Tensor none = (places(p.d) * 0).cast(powers.dtype()).expand(p.d.dims()).contiguous();
  const Tensor found = scan(step, {none}, {powers}).carried[0].bitcast(p.d.dtype());
  return {p.fixed.where(p.d, origin), p.fixed.where(0, side * found).contiguous()};
}

/// The sizes of the vector for which these are the roots (Loewner's formula).
Tensor vector_of(const Poles& p, const Roots& r) {
  const Tensor pole = p.seen.unsqueeze(-1), other = p.seen.unsqueeze(-2);
  const Tensor root = p.fixed.where(kFar, r.origin).unsqueeze(-2);
  const Tensor own = places(p.d).unsqueeze(-1) == places(p.d).unsqueeze(-2);
  const Tensor ratio = (root - pole + r.offset.unsqueeze(-2)) / own.where(1, other - pole);
  return p.fixed.where(0, ratio.prod(-1).abs().sqrt());
}

/// Vectors in columns; poles are in this order in their rows.
Tensor vectors_of(const Poles& p, const Roots& r, const Tensor& z, const Tensor& order) {
  const Tensor sizes = vector_of(p, r);
  const Tensor size = permuted((z < 0).where(-sizes, sizes), -1, order);
  const Tensor pole = permuted(p.seen, -1, order).unsqueeze(-1).contiguous();
  const Tensor along =
      size.contiguous().unsqueeze(-1) / (pole - r.origin.unsqueeze(-2) - r.offset.unsqueeze(-2));
  const Tensor own = places(p.d).unsqueeze(-1) == order.unsqueeze(-2);
  const Tensor fixed = p.fixed.unsqueeze(-2), x = fixed.where(own.cast(z.dtype()), along);
  return x * (x * x).sum(-2, true).rsqrt();
}

}  // namespace

Eigen joined(const Eigen& halves, const Tensor& link) {
  const int64_t half = halves.values.size(-1);
  const Tensor &v = halves.vectors, strength = link.abs();
  const Tensor last = v.index({kEllipsis, 0, half - 1, Slice()});
  const Tensor first = v.index({kEllipsis, 1, 0, Slice()});
  const Tensor ends = Tensor::cat({last, (link < 0).where(-first, first)}, -1);
  const Tensor values = halves.values.flatten(-2, -1).contiguous();
  const Tensor order = order_by_pairs(values), d = gather_inside(values, -1, order);
  const Tensor z = gather_inside(ends, -1, order).contiguous();
  const Tensor size = d.abs().max({-1}, true).maximum(strength) + negligible(d);
  const Tensor fixed = (strength * z.abs() <= size * precision(d)).contiguous();
  const Tensor apart = spread(d, fixed).contiguous();
  const Poles p{apart, fixed.where(0, strength * z * z).contiguous(), fixed,
                fixed.where(kFar, apart).contiguous()};
  const Roots r = roots_of(p);
  const Tensor inner = vectors_of(p, r, z, order).unflatten(-2, {2, half}).contiguous();
  return {r.origin + r.offset, v.matmul(inner).flatten(-3, -2)};
}

}  // namespace weft::linalg
