// Eigenvalues of general matrices: reflections to a Hessenberg matrix, then implicit QR steps with
// two shifts at a time, until only blocks of one and two are left on the diagonal (Francis 1961;
// Golub and Van Loan, 4th edition, 7.5); eigenvectors by substitution in what is then triangular.
#include <algorithm>
#include <array>
#include <tuple>

#include "weft/tensor/complex.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/matrices.h"
#include "weft/tensor/reflections.h"
#include "weft/tensor/rotations.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

namespace {

/// QR steps until nothing from row `least` on is active. For each of the rows that are then done
/// 1.6 in f32 and 2.5 in f64 (not 2), beside 16, were enough in the windows of 72 random matrices
/// of 128 columns; all rows of 18,000 matrices of 3 to 256 columns took at most 1.6 and 2.
int64_t most_steps(const Tensor& x, int64_t least) {
  const int64_t n = x.size(-1), rows = n - least;
  return (x.dtype() == DType::F64 ? 3 : 2) * rows + n / 4 + 16;
}
// After so many steps with the same active row other shifts are tried: orthogonal matrices stay as
// they are under theirs.
constexpr int64_t kExceptional = 10;
// Rows that one window has more than the next, at least. Eight windows instead of four are a tenth
// faster from 256 columns on, and twice as much to compile.
constexpr int64_t kWindow = 32, kMostWindows = 4;

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

/// What begins a step in a block whose first row is k, at every k (..., n): the first column of
/// (x - a) (x - d) - bc, a product of two shifted matrices.
struct Start {
  Tensor x0, x1, x2, here;  ///< here: i32, 1 where a block begins
};

Start start_of(const Tensor& x, const Tensor& split, const Tensor& a, const Tensor& d,
               const Tensor& bc) {
  const int64_t n = x.size(-1);
  const auto padded = [&](const Tensor& t) { return extended(t.unsqueeze(-2), 1, n).squeeze(-2); };
  const Tensor main = x.diagonal(0, -2, -1), under = padded(x.diagonal(-1, -2, -1)),
               over = padded(x.diagonal(1, -2, -1));
  return {(main - a) * (main - d) - bc + over * under,
          under * ((main - a) + (next_along(main) - d)), under * next_along(under), split};
}

/// The vector v, v . v = 2, of the reflection that turns x to (x0, 0, 0); 0 where it is that
/// already.
Tensors reflection(const Tensors& x) {
  const Tensor most = x[0].abs().maximum(x[1].abs()).maximum(x[2].abs());
  const Tensor unit = (most == 0).where(1, most), x0 = x[0] / unit, x1 = x[1] / unit,
               x2 = x[2] / unit;
  const Tensor rest = x1 * x1 + x2 * x2, size = (x0 * x0 + rest).sqrt();
  const Tensor none = rest <= negligible(most) * negligible(most);
  const Tensor scale = none.where(0, none.where(1, size * (size + x0.abs())).rsqrt());
  return {(x0 + (x0 < 0).where(-size, size)) * scale, x1 * scale, x2 * scale};
}

/// Three rows while reflection k turns them, and the next row; then `columns`, whose element k is
/// what is then in column k.
Tensors followed(const Tensors& rows, const Tensors& columns, const Tensors& v, const Tensor& k) {
  // The first one is done then, and what it becomes is nothing that a reflection depends on.
  const auto from_left = [](const Tensors& w, const Tensors& by) {
    const Tensor seen = by[0] * w[0] + by[1] * w[1] + by[2] * w[2];
    return Tensors{w[1] - by[1] * seen, w[2] - by[2] * seen, w[3]};
  };
  const Tensor j = column_numbers(rows[0]);
  Tensors seen(3);
  Tensor across;
  for (int64_t m = 0; m < 3; ++m) {
    const Tensor &by = v[static_cast<size_t>(m)], at = (k + m).clamp_max(rows[0].size(-1) - 1);
    Tensors there;
    for (const Tensor& row : rows) there.push_back(column(row, at));
    const Tensors turned = from_left(there, v);
    for (size_t r = 0; r < 3; ++r) seen[r] = m == 0 ? by * turned[r] : seen[r] + by * turned[r];
    const Tensor here = (j == k + m).where(by, 0);
    across = m == 0 ? here : across + here;
  }
  // A fold of one step: what it gives is one kernel's.
  Tensors elems = rows;
  elems.insert(elems.end(), v.begin(), v.end());
  elems.insert(elems.end(), seen.begin(), seen.end());
  elems.push_back(across);
  elems.insert(elems.end(), columns.begin(), columns.end());
  elems.push_back(j == k);
  return folded_along(elems, 6, -2, [&](const Tensors& e, const Tensors&) {
    Tensors made = from_left({e[0], e[1], e[2], e[3]}, {e[4], e[5], e[6]});
    for (size_t r = 0; r < 3; ++r) made[r] = made[r] - e[10] * e[7 + r];
    for (size_t r = 0; r < 3; ++r) made.push_back(e[14].where(made[r], e[11 + r]));
    return made;
  });
}

/// The vectors of the reflections of one step: a part (..., n, 1) for each of the three rows, whose
/// first is that of the place. Three rows at a time are followed down the matrix, by a kernel for
/// each row.
Tensors reflections_of(const Tensor& x, const Start& start) {
  const int64_t n = x.size(-1);
  const auto rows_from = [&](int64_t first, int64_t count) {
    return extended(x, std::max(n, first + count), n)
        .index({kEllipsis, Slice(first, first + count), Slice()})
        .contiguous();
  };
  const Tensor begins =
      Tensor::stack({start.x0, start.x1, start.x2, start.here.cast(x.dtype())}, -1)
          .index({kEllipsis, Slice(0, n - 1), Slice()});
  const ScanFunction step = [](const Tensors& state, const Tensors& given) {
    const Tensor &k = given[2], before = (k - 1).clamp_min(0), begin = given[1].unsqueeze(-2);
    const auto of_begin = [&](int64_t i) { return begin.index({kEllipsis, Slice(i, i + 1)}); };
    Tensors column_before, rows(state.begin(), state.begin() + 3);
    for (size_t i = 0; i < 3; ++i)
      column_before.push_back(
          (of_begin(3) != 0).where(of_begin(static_cast<int64_t>(i)), column(rows[i], before)));
    rows.push_back(given[0].unsqueeze(-2));
    const Tensors columns(state.begin() + 3, state.end());
    return ScanResult{followed(rows, columns, reflection(column_before), k), {}};
  };
  const Tensors xs{rows_as_stack(rows_from(3, n - 1)), rows_as_stack(begins).contiguous(),
                   step_numbers(x, n - 1)};
  const Tensor none = rows_from(0, 1).zeros_like().contiguous();
  const Tensors rows{rows_from(0, 1), rows_from(1, 1), rows_from(2, 1), none, none, none};
  const Tensors before = scan(step, rows, xs).carried;
  // Row k's reflection is of what column k - 1 was when it was its turn.
  const Tensors usual{start.x0, start.x1, start.x2};
  Tensors turned;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor bulge = delayed(before[3 + i].squeeze(-2), static_cast<int64_t>(x.ndim()) - 2, 0);
    turned.push_back((start.here != 0).where(usual[i], bulge));
  }
  Tensors v = reflection(turned);
  for (Tensor& part : v) part = part.unsqueeze(-1);
  return v;
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

/// Two numbers that eigenvalues are near to, as (x - a) (x - d) - bc of a block of two. Real ones
/// count twice, the one that is nearer to d (as LAPACK's xLAHQR).
struct Shifts {
  Tensor a, d, bc;
};

Shifts shifts_of(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d,
                 const Tensor& exceptional) {
  const Tensor half = (a - d) * 0.5, bc = b * c, square = half * half + bc, real = square >= 0;
  const Tensor root = square.clamp_min(0).sqrt(), by = half + (half < 0).where(-root, root);
  const Tensor nearer = d - (by == 0).where(0, bc / (by == 0).where(1, by)), size = c.abs();
  const auto chosen = [&](const Tensor& instead, const Tensor& twice, const Tensor& pair) {
    return exceptional.where(instead, real.where(twice, pair)).squeeze(-1).contiguous();
  };
  // Instead: a sum of 1.5 and a product of 1 (Wilkinson and Reinsch 1971, II/14, hqr).
  return {chosen(0.75 * size, nearer, a), chosen(0.75 * size, nearer, d),
          chosen(-0.4375 * size * size, bc.zeros_like(), bc)};
}

/// One step for every matrix that has an active row from `least` on: of the transposes of a
/// Hessenberg matrix and of what it is seen through, of the last row that was active, for how many
/// steps it has been, and of whether none is: then nothing changes any more.
Tensors stepped(const Tensors& state, int64_t least) {
  const Tensor x = cleared(state[0].T()), split = splits(x), at = last_active(split),
               active = at >= least;
  const Tensor since = (at == state[2]).where(state[3] + 1, 0).contiguous();
  const Tensor low = active.where(at, 1).contiguous(), up = low - 1;
  const Tensor lower = row(x, low), upper = row(x, up);
  const Shifts shifts = shifts_of(column(upper, up), column(upper, low), column(lower, up),
                                  column(lower, low), since % kExceptional == kExceptional - 1);
  Tensors v = reflections_of(x, start_of(x, split, shifts.a, shifts.d, shifts.bc));
  for (Tensor& part : v) part = active.where(part, 0).contiguous();
  // Rows that are read in turn lie side by side.
  const Tensor left = reflected_rows(x, v).T().contiguous();
  return {reflected_rows(left, v), reflected_rows(state[1], v), at, since,
          (at < least).cast(DType::I32)};
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

/// A Hessenberg matrix after such steps until nothing from row `least` on is active, and the
/// transpose of what it is then seen through.
std::pair<Tensor, Tensor> stepped_until(const Tensor& x, int64_t least) {
  const ScanFunction step = [least](const Tensors& state, const Tensors&) {
    return ScanResult{stepped(state, least), {}};
  };
  const Tensor eye = identity_like(x, x.size(-1)).contiguous();
  const Tensor none = last_active(splits(x)).zeros_like().contiguous();
  const Tensors last = scan(step, {x.T().contiguous(), eye, none, none, none}, {},
                            {.count = most_steps(x, least), .until = 4})
                           .carried;
  return {cleared(last[0].T()), last[1]};
}

/// How many rows are looked at once those beyond are done, beginning with all.
std::vector<int64_t> windows(int64_t n) {
  const int64_t count = std::clamp<int64_t>(n / kWindow, 1, kMostWindows);
  std::vector<int64_t> sizes;
  for (int64_t left = count; left > 0; --left) sizes.push_back((n * left + count - 1) / count);
  return sizes;
}

/// x = z t z^T: t with nothing but blocks of one and two on and below its diagonal, and z. Blocks
/// at the end are done first: the first rows and columns are gone on with alone, and what turned
/// them is applied to what is beside them by products.
std::pair<Tensor, Tensor> schur(const Tensor& given) {
  const int64_t n = given.size(-1);
  if (n <= 2) return {given.contiguous(), identity_like(given, n).contiguous()};
  auto [x, vectors] = hessenberg(given);
  const std::vector<int64_t> sizes = windows(n);
  Tensor z;
  for (size_t w = 0; w < sizes.size(); ++w) {
    // A block of two may lie across the end of the next window: nothing changes there any more.
    const int64_t size = sizes[w], least = w + 1 < sizes.size() ? sizes[w + 1] : 1;
    const Slice inside(0, size), beside(size, n);
    const auto [t, zt] = stepped_until(x.index({kEllipsis, inside, inside}), least);
    if (w == 0) {
      x = t, z = zt.T();
      continue;
    }
    const Tensor right = zt.matmul(x.index({kEllipsis, inside, beside}));
    x = Tensor::cat({Tensor::cat({t, right}, -1), x.index({kEllipsis, beside, Slice()})}, -2);
    z = Tensor::cat({z.index({kEllipsis, Slice(), inside}).matmul(zt.T()),
                     z.index({kEllipsis, Slice(), beside})},
                    -1);
  }
  return {x.contiguous(), reflected(vectors, z.contiguous())};
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
