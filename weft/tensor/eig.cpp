// Eigenvalues of general matrices: reflections to a Hessenberg matrix, then real QR steps with two
// shifts at a time, until only blocks of one and two are left on the diagonal (Francis 1961; Golub
// and Van Loan, 4th edition, 7.5, with the product of the shifted matrices formed); eigenvectors by
// substitution in what is then triangular.
#include <array>
#include <tuple>

#include "weft/tensor/complex.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/reflections.h"
#include "weft/tensor/rotations.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

namespace {

// Steps per column: one or two are usual.
constexpr int64_t kStepsPerColumn = 4;
// Every so many steps other shifts are tried: orthogonal matrices stay as they are under theirs.
constexpr int64_t kExceptional = 7;

/// (..., n): 1 where the matrix splits above a row. It does above row 0; x is at most 1.
Tensor splits(const Tensor& x) {
  const Tensor off = x.diagonal(-1, -2, -1);
  std::vector<DimPair> front(off.ndim(), DimPair(0, 0));
  front.back() = {1, 0};
  return (off == 0).cast(DType::I32).pad(front, 1);
}

/// Without what lies below the two diagonals of a Hessenberg matrix, and without what is small on
/// the second one.
Tensor cleared(const Tensor& x) {
  const Tensor i = row_numbers(x), j = column_numbers(x), d = x.diagonal(0, -2, -1).abs();
  const Tensor size = d.unsqueeze(-2) + d.unsqueeze(-1) + 1e-3;
  const Tensor small = (x.abs() <= size * precision(x)) & (i == j + 1);
  return ((i > j + 1) | small).where(0, x).contiguous();
}

constexpr int64_t kSingle = 0, kLower = 1, kUpper = 2;  // what a row is

/// What row i of a matrix with these splits is, from the last row upwards: alone, or of a block of
/// two. Above a block that is larger nothing is told apart.
Tensor blocks(const Tensor& split) {
  const OpScope scope(split, CallSite::here());
  Graph& g = scope.g;
  const auto axis = static_cast<int64_t>(split.ndim()) - 1;
  const NodeRef elems[] = {split.flip(-1).node()};
  const NodeRef inits[] = {g.constant(Value::of(DType::I32, kSingle))};
  const auto number = [&](int64_t v) { return g.constant(Value::of(DType::I32, v)); };
  const std::array<int64_t, 1> salt{axis};
  const auto made = build::loop(g, elems, inits, axis, true, salt, [&](auto in, auto carried) {
    NodeRef begun = g.eq(carried[0], number(kLower)), alone = g.eq(in[0], number(1));
    return std::vector<NodeRef>{
        g.where(begun, number(kUpper), g.where(alone, number(kSingle), number(kLower)))};
  });
  return scope.result(made[0]).flip(-1);
}

/// (..., 1, 1): the last row that is neither alone nor of a block of two; 0 where all are.
Tensor last_active(const Tensor& split) {
  const Tensor kind = blocks(split), row = Tensor::arange(split.dim(-1)).to(split.device());
  // An upper row that does not split off ends a larger block in the row below it.
  const Tensor unsplit = (kind == kUpper) & (split == 0);
  return unsplit.where(row + 1, 0).max({-1}, true).unsqueeze(-1);
}

// ---- reflections of three rows, one row after the other

/// The vectors v, v . v = 2, of those that make a matrix with two diagonals below the main one
/// triangular: a part (..., n) for each of the three rows, whose first is that of the place.
Tensors reflections_of(const Tensor& x) {
  const int64_t n = x.size(-1);
  const Tensor head = cropped(x, 2, n).contiguous();
  const Tensor next = extended(x.index({kEllipsis, Slice(2, n), Slice()}), n - 1, n);
  const Tensor slices = rows_as_stack(next).contiguous();
  const ScanFunction step = [](const Tensors& state, const Tensors& given) {
    const Tensor &k = given[1], i = row_numbers(state[0]);
    const Tensor a = cropped(state[0], 1, state[0].size(-1)),
                 b = state[0].index({kEllipsis, Slice(1, 2), Slice()}), c = given[0].unsqueeze(-2);
    const Tensor y0 = column(a, k), y1 = column(b, k), y2 = column(c, k);
    const Tensor most = y0.abs().maximum(y1.abs()).maximum(y2.abs());
    const Tensor unit = (most == 0).where(1, most), x0 = y0 / unit, x1 = y1 / unit, x2 = y2 / unit;
    const Tensor rest = x1 * x1 + x2 * x2, size = (x0 * x0 + rest).sqrt();
    const Tensor none = rest <= negligible(a) * negligible(a);
    const Tensor scale = none.where(0, none.where(1, size * (size + x0.abs())).rsqrt());
    const Tensor v0 = (x0 + (x0 < 0).where(-size, size)) * scale, v1 = x1 * scale, v2 = x2 * scale;
    const Tensor seen = v0 * a + v1 * b + v2 * c;
    return ScanResult{{(i == 0).where(b - v1 * seen, c - v2 * seen)}, {v0, v1, v2}};
  };
  Tensors parts = scan(step, {head}, {slices, step_numbers(x, n - 1)}).stacked;
  for (Tensor& v : parts) v = extended(rows_of_blocks(v), n, 1).contiguous();
  return parts;
}

/// x (..., n, columns) after reflections of these vectors, the first one first.
Tensor reflected_rows(const Tensor& x, const Tensors& v) {
  const Tensor second = next_along(x, -2), i = row_numbers(x);
  const Tensors elems{x, second, next_along(second, -2), v[0], v[1], v[2], i == 0};
  return folded_along(elems, 3, -2, [](const Tensors& e, const Tensors& last) {
    const Tensor a = e[6].where(e[0], last[0]), b = e[6].where(e[1], last[1]);
    const Tensor seen = e[3] * a + e[4] * b + e[5] * e[2];
    return Tensors{b - e[4] * seen, e[2] - e[5] * seen, a - e[3] * seen};
  })[2];
}

/// One step for every matrix that has an active block: of a Hessenberg matrix and of the transpose
/// of what it is seen through. `exceptional` is 1 or 0.
Tensors stepped(const Tensor& given, const Tensor& zt, const Tensor& exceptional) {
  const int64_t n = given.size(-1);
  const Tensor x = cleared(given), at = last_active(splits(x)), active = at > 0;
  const Tensor low = active.where(at, 1).contiguous(), up = low - 1;
  const Tensor lower = row(x, low), upper = row(x, up);
  const Tensor a = column(upper, up), b = column(upper, low), c = column(lower, up),
               d = column(lower, low);
  const Tensor size = c.abs(), other = exceptional != 0;
  const Tensor sum = other.where(1.5 * size, a + d).contiguous();
  const Tensor product = other.where(size * size, a * d - b * c).contiguous();
  const Tensor shifted = x.matmul(x) - sum * x + product * identity_like(x, n);
  Tensors v = reflections_of(shifted.contiguous());
  for (Tensor& part : v) part = active.where(part, 0).contiguous();
  const Tensor both = reflected_rows(Tensor::cat({x, zt}, -1), v);
  const Tensor left = cropped(both, n, n).T();
  return {reflected_rows(left, v).T(), both.index({kEllipsis, Slice(n, 2 * n)})};
}

/// A matrix with nothing below the second diagonal, and the vectors of the reflections that lead
/// there.
std::pair<Tensor, Tensor> hessenberg(const Tensor& a) {
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    const Tensor &x = state[0], &k = slices[0], v = reflector(column(x, k), k + 1);
    const Tensor left = (x - v * (x * v).sum(-2, true).contiguous()).contiguous();
    return ScanResult{{left - (left * v.T()).sum(-1, true).contiguous() * v.T()}, {v}};
  };
  const auto [last, v] = scan(step, {a.contiguous()}, {step_numbers(a, a.size(-1) - 2)});
  return {last[0], columns_of_blocks(v[0]).contiguous()};
}

/// Those of the blocks, where `x` has nothing else below its diagonal.
Tensor values_of_blocks(const Tensor& x) {
  const int64_t n = x.size(-1);
  if (n == 1) return joined({x.squeeze(-1), x.squeeze(-1).zeros_like()});
  const Tensor kind = blocks(splits(x)), d = x.diagonal(0, -2, -1);
  const Tensor first = d.index({kEllipsis, Slice(0, n - 1)}),
               second = d.index({kEllipsis, Slice(1, n)});
  const Tensor half = (first - second) * 0.5;
  const Tensor under = half * half + x.diagonal(1, -2, -1) * x.diagonal(-1, -2, -1);  // the root
  const Tensor root = under.clamp_min(0).sqrt(), turn = (-under).clamp_min(0).sqrt();
  const Tensor mean = (first + second) * 0.5;
  std::vector<DimPair> front(mean.ndim(), DimPair(0, 0)), back = front;
  front.back() = {1, 0}, back.back() = {0, 1};
  const Tensor lower = kind == kLower, upper = kind == kUpper;
  // The upper one's distance from the lower element is then a sum without cancellation.
  const Tensor by = (half < 0).where(-root, root);
  const Tensor re = lower.where((mean - by).pad(front), upper.where((mean + by).pad(back), d));
  const Tensor im = lower.where(-turn.pad(front), upper.where(turn.pad(back), 0));
  return joined({re, im});
}

/// x = z t z^T: t with nothing but blocks of one and two on and below its diagonal, and z.
std::pair<Tensor, Tensor> schur(const Tensor& given) {
  const int64_t n = given.size(-1);
  Tensor x = given, vectors, zt = identity_like(given, n).contiguous();
  if (n > 2) std::tie(x, vectors) = hessenberg(given);
  std::vector<int32_t> flags;
  for (int64_t k = 0; k < kStepsPerColumn * n; ++k)
    flags.push_back(k % kExceptional == kExceptional - 1);
  const Tensor which = constant_table(flags, {static_cast<int64_t>(flags.size())}, x);
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    return ScanResult{stepped(state[0], state[1], slices[0]), {}};
  };
  if (n > 2) {
    const Tensors last = scan(step, {x, zt}, {which}).carried;
    x = cleared(last[0]), zt = last[1];
  }
  const Tensor z = zt.T().contiguous();
  return {x.contiguous(), vectors.defined() ? reflected(vectors, z) : z};
}

/// Complex vectors (..., n, k, 2) of length 1 along n, their largest element real.
Tensor normalised(const Tensor& v) {
  const Tensor squares = (v * v).sum(-1, true), scaled = v / squares.sum(-3, true).sqrt();
  const Tensor at = squares.argmax(-3, true).expand(v.sum(-3, true).dims());
  const Complex largest = parts(scaled.gather(-3, at));
  const Tensor size = (largest.re * largest.re + largest.im * largest.im).sqrt();
  const Complex turn{largest.re / size, -largest.im / size};
  return joined(times(parts(scaled), turn));
}

/// The unitary matrix that makes the blocks of two of t triangular, the upper one's value first.
Complex turns_of(const Tensor& t, const Complex& value) {
  const Tensor kind = blocks(splits(t)), upper = kind == kUpper, lower = kind == kLower;
  const Tensor d = next_along(t.diagonal(0, -2, -1)), under = t.diagonal(-1, -2, -1);
  const Tensor c = extended(under.unsqueeze(-2), 1, t.size(-1)).squeeze(-2), re = value.re - d;
  const Tensor size = upper.where((re * re + value.im * value.im + c * c).sqrt(), 1);
  const Tensor g = upper.where(re / size, 1), gi = upper.where(value.im / size, 0),
               h = upper.where(c / size, 0);
  const Tensor at = places(g), before = (at - 1).clamp_min(0).expand(g.dims());
  const auto above = [&](const Tensor& x) { return gather_inside(x, -1, before); };
  const Tensor i = row_numbers(t), j = column_numbers(t);
  const auto on = [&](const Tensor& x) { return x.unsqueeze(-2); };
  const Tensor main = on(lower.where(above(g), g)), im = on(lower.where(-above(gi), gi));
  const Tensor beside = (i == j + 1).where(on(h), (j == i + 1).where(-on(above(h)), 0));
  return {(i == j).where(main, beside), (i == j).where(im, 0)};
}

/// Eigenvectors of a triangular matrix, in columns, from the last row to the first; columns that
/// grow are made smaller.
Complex triangular_vectors(const Complex& t, const Complex& value) {
  const Tensor eye = identity_like(t.re, t.re.size(-1)).contiguous();
  const Complex diagonal = value.each([](const Tensor& x) { return x.unsqueeze(-2).contiguous(); });
  const ScanFunction step = [&](const Tensors& state, const Tensors& given) {
    const Complex x{state[0], state[1]};
    const Tensor re = given[0].unsqueeze(-1), im = given[1].unsqueeze(-1), &k = given[2];
    const Tensor i = row_numbers(x.re), j = column_numbers(x.re);
    const Complex sum{(re * x.re - im * x.im).sum(-2, true).contiguous(),
                      (re * x.im + im * x.re).sum(-2, true).contiguous()};
    const Complex apart{diagonal.re - column(diagonal.re, k), diagonal.im - column(diagonal.im, k)};
    const Tensor square = apart.re * apart.re + apart.im * apart.im;
    const Tensor near = square <= precision(re) * precision(re), by = near.where(1, square);
    const Complex inverse{near.where(1 / precision(re), apart.re / by),
                          near.where(0, -apart.im / by)};
    const Complex row = times(sum, inverse);
    const Tensor size = (row.re * row.re + row.im * row.im).sqrt();
    const Tensor scale = ((j > k) & (size > 1)).where(1 / size.maximum(1), 1);
    const Tensor here = (i == k) & (j > k);
    return ScanResult{{here.where(row.re, x.re) * scale, here.where(row.im, x.im) * scale}, {}};
  };
  const Tensors xs{rows_as_stack(t.re.triu(1)).contiguous(),
                   rows_as_stack(t.im.triu(1)).contiguous(), step_numbers(t.re, t.re.size(-1))};
  const Tensors found =
      scan(step, {eye, eye.zeros_like().contiguous()}, xs, {.reversed = true}).carried;
  return {found[0], found[1]};
}

Tensor eigenvectors(const Tensor& t, const Tensor& z, const Tensor& values) {
  const Complex value = parts(values), turns = turns_of(t, value);
  const Complex seen = product(adjoint(turns), product(Complex{t, Tensor()}, turns));
  const Complex inner = product(turns, triangular_vectors(seen, value));
  const Tensor vectors = normalised(joined(product(Complex{z, Tensor()}, inner)));
  const Tensor real = (value.im == 0).unsqueeze(-2).unsqueeze(-1);
  const Tensor part = Tensor::arange(2).to(z.device());
  const Tensor cut = (real & (part == 1)).where(0, vectors);
  return cut / (cut * cut).sum({-3, -1}, true).sqrt();
}

// ---- the gradient (Boeddeker, Hanebrink and Haeb-Umbach 2017, "On the Computation of
// Complex-valued Gradients", 4.2), for losses that do not depend on the vectors' phases

/// The real matrix [[re, -im], [im, re]] that multiplies like re + i im.
Tensor real_form(const Complex& x) {
  return Tensor::cat({Tensor::cat({x.re, -x.im}, -1), Tensor::cat({x.im, x.re}, -1)}, -2);
}

/// x of a @ x = b.
Complex solved(const Complex& a, const Complex& b) {
  const int64_t n = a.re.size(-1);
  const Tensor x = solve(real_form(a), Tensor::cat({b.re, b.im}, -2));
  return {x.index({kEllipsis, Slice(0, n), Slice()}),
          x.index({kEllipsis, Slice(n, 2 * n), Slice()})};
}

Tensor gradient_of(const Tensor& values, const Tensor& vectors, const Tensor& values_grad,
                   const Tensor& vectors_grad) {
  const Complex v = parts(vectors), vh = adjoint(v), l = parts(values);
  const Complex inner = product(vh, parts(vectors_grad)), gram = product(vh, v);
  const Tensor diagonal = inner.re.diagonal(0, -2, -1).unsqueeze(-2);
  const Complex top{inner.re - gram.re * diagonal, inner.im - gram.im * diagonal};
  // conj(l_j - l_i), with 1 on the diagonal
  const Tensor eye = identity_like(v.re, v.re.size(-1)) != 0;
  const Complex apart{eye.where(1, l.re.unsqueeze(-2) - l.re.unsqueeze(-1)),
                      eye.where(0, l.im.unsqueeze(-1) - l.im.unsqueeze(-2))};
  const Tensor size = apart.re * apart.re + apart.im * apart.im;
  const Complex inverse{apart.re / size, -apart.im / size}, scaled = times(top, inverse);
  const Complex g = parts(values_grad);
  const Complex middle{eye.where(g.re.unsqueeze(-1), scaled.re),
                       eye.where(g.im.unsqueeze(-1), scaled.im)};
  return solved(vh, product(middle, vh)).re;
}

Tensors eig_of(const Tensor& x) {
  // Squares of it are formed: they must neither overflow nor vanish.
  const Tensor largest = x.abs().max({-2, -1}, true), none = largest == 0;
  const Tensor size = none.where(1, largest), scaled = x / size;
  const auto [t, z] = schur(scaled);
  const Tensor values = values_of_blocks(t);
  return {values * size.squeeze(-1).unsqueeze(-1), eigenvectors(t, z, values)};
}

}  // namespace

std::pair<Tensor, Tensor> eig(const Tensor& given, CallSite at) {
  const CallSiteScope site(at);
  const Tensor a = checked_square("eig", given);
  if (a.size(-1) == 0 || a.dims().product() == Dim(0)) {
    Dims values = a.dims(), vectors = a.dims();
    values.back() = 2, vectors.push_back(2);
    return {Tensor::zeros(values, a.dtype()), Tensor::zeros(vectors, a.dtype())};
  }
  const GradientFunction gradient = [](const Tensors&, const Tensors& y, const Tensors& up) {
    return Tensors{gradient_of(y[0], y[1], up[0], up[1])};
  };
  const Tensors r = called("eig", {}, {a}, [&](const Tensors& in) {
    return with_gradient([](const Tensors& x) { return eig_of(x[0]); }, gradient, in);
  });
  return {r[0].cast(given.dtype()), r[1].cast(given.dtype())};
}

}  // namespace weft::linalg
