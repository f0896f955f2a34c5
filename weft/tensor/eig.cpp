// Eigenvalues of general matrices: real QR steps with two shifts at a time, until only blocks of
// one and two are left on the diagonal (Francis 1961; Golub and Van Loan, 7.5, with the product of
// the shifted matrices formed); eigenvectors by inverse iteration.
#include <array>

#include "weft/tensor/complex.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/transforms.h"

namespace weft::linalg {

namespace {

// Steps per column: two or three are usual.
constexpr int64_t kStepsPerColumn = 10;
// Every so many steps other shifts are tried: orthogonal matrices stay as they are under theirs.
constexpr int64_t kExceptional = 7;

/// The largest element of rows from r on and columns up to c, for every (r, c).
Tensor below_left(const Tensor& x) { return x.abs().cummax(-1).flip(-2).cummax(-2).flip(-2); }

/// (..., n): whether the matrix splits above row i. It does above row 0; x is at most 1.
Tensor splits(const Tensor& x) {
  const Tensor d = x.diagonal(0, -2, -1).abs(), off = below_left(x).diagonal(-1, -2, -1);
  const int64_t n = x.size(-1);
  const Tensor size =
      d.index({kEllipsis, Slice(0, n - 1)}) + d.index({kEllipsis, Slice(1, n)}) + 1e-3;
  const Tensor small = (off <= size * (4 * precision(x))).cast(DType::I32);
  std::vector<DimPair> front(small.ndim(), DimPair(0, 0));
  front.back() = {1, 0};
  return small.pad(front, 1);
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

/// One step for every matrix that has an active block; `exceptional` is 1 or 0.
Tensor stepped(const Tensor& x, const Tensor& exceptional) {
  const Tensor at = last_active(splits(x)), active = at > 0;
  const Tensor low = active.where(at, 1), up = low - 1;
  const Tensor lower = row(x, low), upper = row(x, up);
  const Tensor a = column(upper, up), b = column(upper, low), c = column(lower, up),
               d = column(lower, low);
  const Tensor size = column(row(below_left(x), low), up);
  const Tensor sum = (exceptional != 0).where(1.5 * size, a + d);
  const Tensor product = (exceptional != 0).where(size * size, a * d - b * c);
  const Tensor shifted = x.matmul(x) - sum * x + product * identity_like(x, x.size(-1));
  const Tensor q = qr(shifted).first;
  return active.where(q.transpose(-2, -1).matmul(x).matmul(q), x);
}

/// Those of the blocks, where `x` has nothing else below its diagonal.
Tensor values_of_blocks(const Tensor& x) {
  const int64_t n = x.size(-1);
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
  const Tensor re = lower.where((mean + root).pad(front), upper.where((mean - root).pad(back), d));
  const Tensor im = lower.where(-turn.pad(front), upper.where(turn.pad(back), 0));
  return joined({re, im});
}

Tensor eigenvalues(const Tensor& x) {
  const int64_t n = x.size(-1);
  if (n == 1) return joined({x.squeeze(-1), x.squeeze(-1).zeros_like()});
  std::vector<int32_t> flags;
  for (int64_t k = 0; k < kStepsPerColumn * n; ++k)
    flags.push_back(k % kExceptional == kExceptional - 1);
  const Tensor which = constant_table(flags, {static_cast<int64_t>(flags.size())}, x);
  const ScanFunction step = [](const Tensors& state, const Tensors& slices) {
    return ScanResult{{stepped(state[0], slices[0])}, {}};
  };
  return values_of_blocks(scan(step, {x}, {which}).carried[0]);
}

/// The real matrix [[re, -im], [im, re]] that multiplies like re + i im.
Tensor real_form(const Complex& x) {
  return Tensor::cat({Tensor::cat({x.re, -x.im}, -1), Tensor::cat({x.im, x.re}, -1)}, -2);
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

/// Two steps of (x - value)^-1 from vectors that are nothing special.
Tensor eigenvectors(const Tensor& x, const Tensor& values) {
  const int64_t n = x.size(-1);
  // A little off the eigenvalue, so that no pivot is 0.
  const Complex value = parts(values);
  const Tensor shift = value.re + 1000 * precision(x);
  const Tensor eye = identity_like(x, n).unsqueeze(-3);
  const Tensor re = x.unsqueeze(-3) - shift.unsqueeze(-1).unsqueeze(-1) * eye;
  const Tensor im = -(value.im.unsqueeze(-1).unsqueeze(-1) * eye);
  const Tensor shifted = real_form({re.expand((re + im).dims()), im});
  std::vector<double> numbers;
  uint64_t state = 1;
  for (int64_t i = 0; i < 2 * n * n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    numbers.push_back(static_cast<double>(state >> 11) * 0x1p-53 + 0.25);
  }
  Tensor v = constant_table(numbers, {n, 2 * n, 1}, x).cast(x.dtype());
  for (int step = 0; step < 2; ++step) {
    v = solve(shifted, v.expand((shifted.sum(-1, true) + v).dims()));
    v = v / length(v, -2);
  }
  const Tensor halves = v.squeeze(-1).unflatten(-1, {2, n});  // (..., value, part, n)
  return normalised(halves.transpose(-1, -3).transpose(-1, -2));
}

// ---- the gradient (Boeddeker, Hanebrink and Haeb-Umbach 2017, "On the Computation of
// Complex-valued Gradients", 4.2), for losses that do not depend on the vectors' phases

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
  const Complex inverse{apart.re / size, -apart.im / size}, turned = times(top, inverse);
  const Complex g = parts(values_grad);
  const Complex middle{eye.where(g.re.unsqueeze(-1), turned.re),
                       eye.where(g.im.unsqueeze(-1), turned.im)};
  return solved(vh, product(middle, vh)).re;
}

Tensors eig_of(const Tensor& x) {
  // Squares of it are formed: they must neither overflow nor vanish.
  const Tensor largest = x.abs().max({-2, -1}, true), none = largest == 0;
  const Tensor size = none.where(1, largest), scaled = x / size;
  const Tensor values = eigenvalues(scaled);
  return {values * size.squeeze(-1).unsqueeze(-1), eigenvectors(scaled, values)};
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
  const Tensors r = with_gradient([](const Tensors& in) { return eig_of(in[0]); },
                                  [](const Tensors&, const Tensors& y, const Tensors& up) {
                                    return Tensors{gradient_of(y[0], y[1], up[0], up[1])};
                                  },
                                  {a});
  return {r[0].cast(given.dtype()), r[1].cast(given.dtype())};
}

}  // namespace weft::linalg
