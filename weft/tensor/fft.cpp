#include "weft/tensor/fft.h"

#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "weft/base/format.h"
#include "weft/tensor/access.h"
#include "weft/tensor/butterflies.h"
#include "weft/tensor/complex.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/tracing.h"

namespace weft::fft {

namespace {

/// exp(sign * 2 pi i t / n) for t < n.
std::vector<std::complex<double>> circle(int64_t n, int sign) {
  std::vector<std::complex<double>> turns;
  for (int64_t t = 0; t < n; ++t)
    turns.push_back(std::polar(
        1.0, sign * 2 * std::numbers::pi * static_cast<double>(t) / static_cast<double>(n)));
  return turns;
}

/// exp(sign * 2 pi i turn(r, c) / n), reduced before it is rounded: a matrix, or a vector for one
/// row. `what` says which turns.
template <class Turn>
Complex roots(const Tensor& like, const char* what, int64_t rows, int64_t columns, int64_t n,
              int sign, Turn turn) {
  require_table("fft", rows * columns);
  const auto part = [&](const char* name, double (*function)(double), double by) {
    return known_table(strformat("fft {} {} {} {} {}", what, name, n, rows, by), rows * columns,
                       rows == 1 ? Dims{columns} : Dims{rows, columns}, like, [&](int64_t i) {
                         const auto t = static_cast<double>(turn(i / columns, i % columns) % n);
                         return by * function(2 * std::numbers::pi * t / static_cast<double>(n));
                       });
  };
  return {part("cos", std::cos, 1), part("sin", std::sin, sign)};
}

// Elements of a step, as a product; of a whole transform, or of a prime factor.
constexpr int64_t kMostDense = 16, kMostAtOnce = 32;
// Of a step as sums and differences, whose numbers are in registers.
constexpr int64_t kMostAlone = 8;
// Elements side by side from which on steps are of whole vectors.
constexpr int64_t kVector = 16;
// Columns that are filled up with zeros, at least, until vectors divide them: a block of columns
// that lies across two matrices is put together one by one (4 x 500 x 500: 12.4 -> 5.4 ms).
constexpr int64_t kFewFilled = 64;

/// A factor for one step of a transform of n elements, up to `most`: about the root that makes all
/// steps equal; 1 where all factors are longer.
int64_t factor_of(int64_t n, int64_t most) {
  const double size = std::log2(static_cast<double>(n));
  const double steps = std::ceil(size / std::log2(static_cast<double>(most)));
  const auto equal = static_cast<int64_t>(std::round(std::exp2(size / steps)));
  for (int64_t f = equal; f <= most; ++f)
    if (n % f == 0) return f;
  for (int64_t f = std::min(equal, most); f > 1; --f)
    if (n % f == 0) return f;
  return 1;
}

/// For a step that is a product: n itself where that is short, a longer factor where there is no
/// other.
int64_t product_factor(int64_t n) {
  if (n <= kMostAtOnce) return n;
  const int64_t found = factor_of(n, kMostDense);
  for (int64_t f = kMostDense + 1; found == 1 && f <= kMostAtOnce; ++f)
    if (n % f == 0) return f;
  return found;
}

// ---- steps: (..., rest, parts, done) to (..., rest / f, 2, f done)

/// 1 for real parts, -1 for imaginary ones, which lie along an axis.
Tensor signs(const Tensor& x, int64_t axis) {
  Dims sides{2};
  for (int64_t after = axis + 1; after < 0; ++after) sides.push_back(1);
  return (1 - Tensor::arange(2) * 2).cast(x.dtype()).reshape(sides);
}

Tensor conjugate(const Tensor& x, int64_t axis) { return x * signs(x, axis); }

/// Complex numbers whose parts lie along an axis, times t, which has 1 there.
Tensor turned(const Tensor& x, int64_t axis, const Complex& t) {
  return x * t.re - x.flip(axis) * (signs(x, axis) * t.im);
}

/// Element (j, t, part, row) of the matrices by which a step takes positions t, real and imaginary
/// parts, to frequencies k < f: ((C, -S), (S, C)) of exp(sign * 2 pi i k (t m + j) / n) = C + i S.
/// Real numbers have the first half alone.
Tensor step_matrices(const Tensor& like, int64_t f, int64_t m, int sign) {
  const int64_t n = f * m, parts = like.size(-2);
  std::vector<std::complex<double>> turns;
  const auto element = [&](int64_t at) {
    if (turns.empty()) turns = circle(n, sign);
    const int64_t row = at % (2 * f), part = at / (2 * f) % parts, t = at / (2 * f * parts) % f;
    const int64_t k = row % f, to = row / f, j = at / (2 * f * parts * f);
    const std::complex<double> turn = turns[static_cast<size_t>(k * (t * m + j) % n)];
    return part == to ? turn.real() : (to == 0 ? -turn.imag() : turn.imag());
  };
  return known_table(strformat("fft step {}", sign), m * f * parts * 2 * f, {m, f, parts, 2 * f},
                     like, element);
}

/// A product for each of the m positions that are left, whose matrix turns as well.
Tensor turning_step(const Tensor& x, int64_t f, int sign) {
  const int64_t m = x.size(-3) / f;
  const Tensor matrices = step_matrices(x, f, m, sign).permute({0, 3, 1, 2}).unsqueeze(-1);
  const Tensor split = movedim(x.unflatten(-3, {f, m}), -4, -3).unsqueeze(-4);
  const Tensor made = (matrices * split).sum({-3, -2}).contiguous();
  return made.unflatten(-2, {2, f}).flatten(-2, -1);
}

/// One product for all, and the turns after it.
Tensor step_and_turns(const Tensor& x, int64_t f, int sign) {
  const int64_t n = x.size(-3), m = n / f;
  const Tensor matrix = step_matrices(x, f, 1, sign).permute({0, 3, 2, 1}).flatten(-2, -1)[0];
  const Tensor split = movedim(x, -2, -3).unflatten(-2, {f, m}).flatten(-2, -1).flatten(-3, -2);
  const Tensor made = matrix.matmul(split).unflatten(-2, {2, f}).unflatten(-1, {m, x.size(-1)});
  const Complex t = roots(x, "product", f, m, n, sign, [](int64_t k, int64_t j) {
                      return k * j;
                    }).each([](const Tensor& r) { return r.unsqueeze(-1); });
  return movedim(m == 1 ? made : turned(made, -4, t), -2, -4).contiguous().flatten(-2, -1);
}

/// A step of f with a matrix for each position that is left, where those are less than what they
/// multiply and not large.
bool turns_with_product(int64_t f, int64_t rest, int64_t done) {
  constexpr int64_t kMostElements = int64_t{1} << 18;
  return 2 * f <= done && 4 * f * rest <= kMostElements;
}

// ---- steps as sums and differences of whole vectors

/// The parts of numbers k < f, (..., m, done) each: real and imaginary ones side by side.
struct Outputs {
  Tensors re, im;

  /// (..., m, 2, f done)
  Tensor as_step() const {
    Tensors all = re;
    all.insert(all.end(), im.begin(), im.end());
    const auto f = static_cast<int64_t>(re.size());
    return Tensor::stack(all, -2).contiguous().unflatten(-2, {2, f}).flatten(-2, -1);
  }
  /// (..., f done, 2, rows), where m is 1 and transforms of `rows` lie side by side
  Tensor in_order(int64_t rows) const {
    const auto along = [rows](const Tensors& values) {
      Tensors some;
      for (const Tensor& x : values)
        some.push_back(x.squeeze(-2).unflatten(-1, {x.size(-1) / rows, rows}));
      return Tensor::stack(some, -3);
    };
    return Tensor::stack({along(re), along(im)}, -2).contiguous().flatten(-4, -3);
  }
};

/// A step whose innermost axis fills vectors: sums and differences, and the turns after them.
Outputs butterflies(const Complex& x, int64_t f, int sign) {
  const int64_t n = x.re.size(-2), m = n / f;
  Numbers given;
  for (int64_t t = 0; t < f; ++t)
    given.push_back(x.each([&](const Tensor& part) {
      return part.unflatten(-2, {f, m}).index({kEllipsis, t, Slice(), Slice()});
    }));
  const Numbers made = transform_of(given, sign);
  const Complex turns =
      roots(x.re, "product", f, m, n, sign, [](int64_t k, int64_t j) { return k * j; });
  Outputs out;
  for (int64_t k = 0; k < f; ++k) {
    Complex y = made[static_cast<size_t>(k)];
    if (!y.im.defined()) y.im = y.re.zeros_like();
    const auto turn = [k](const Tensor& t) { return t.index({k}).unsqueeze(-1); };
    if (m > 1 && k > 0) y = times(turns.each(turn), y);
    out.re.push_back(y.re), out.im.push_back(y.im);
  }
  return out;
}

/// What lies side by side in the last axis but one: nothing but real parts, or both.
Complex parts_of(const Tensor& x) {
  const auto part = [&](int64_t which) { return x.index({kEllipsis, which, Slice()}); };
  return {part(0), x.size(-2) == 2 ? part(1) : Tensor()};
}
Tensor in_parts(const Complex& x) {
  return x.im.defined() ? Tensor::stack({x.re, x.im}, -2).contiguous() : x.re.unsqueeze(-2);
}

Tensor prime_step(const Tensor& x, int sign);

/// One step as a product, or all that are left.
Tensor product_step(const Tensor& x, int sign) {
  const int64_t rest = x.size(-3), f = product_factor(rest);
  if (f == 1) return prime_step(x, sign);
  return turns_with_product(f, rest, x.size(-1)) ? turning_step(x, f, sign)
                                                 : step_and_turns(x, f, sign);
}

/// Of (rest, parts, done) elements the first axis is still position, the last frequency. A step
/// takes positions t m + j to frequencies k < f and leaves j: transforms of f, turns by k j / rest,
/// k in front of the frequencies that are done. All are in order at the end, and every product is
/// as long as the first. (Stockham, in Cochran et al., What is the fast Fourier transform?, 1967.)
/// The result is (..., all, 2, rows) of parts (..., all, rows).
Tensor steps(const Complex& given, int sign) {
  const int64_t n = given.re.size(-2), rows = given.re.size(-1);
  Tensor x;
  for (int64_t rest = n; rest > 1; rest = x.size(-3)) {
    const int64_t side_by_side = x.defined() ? x.size(-1) : rows;
    const int64_t f = side_by_side < kVector ? 1 : factor_of(rest, kMostAlone);
    if (f == 1) {
      x = product_step(x.defined() ? x : in_parts(given), sign);
      continue;
    }
    const Outputs made = butterflies(x.defined() ? parts_of(x) : given, f, sign);
    if (f == rest && rows >= kVector) return made.in_order(rows);
    x = made.as_step();
  }
  if (n == 1) x = in_parts(given);
  return movedim(x.squeeze(-3).unflatten(-1, {n, rows}), -2, -3);
}
Tensor steps(const Tensor& x, int sign) { return steps(parts_of(x), sign); }

/// The transform of what a power of two of numbers are, on the host: to frequencies in order, a
/// factor of two a pass.
std::vector<std::complex<double>> spectrum(std::vector<std::complex<double>> x) {
  const size_t n = x.size();
  const auto turns = circle(static_cast<int64_t>(n), -1);
  std::vector<std::complex<double>> next(n);
  for (size_t half = n / 2, done = 1; half > 0; half /= 2, done *= 2) {
    for (size_t at = 0; at < n / 2; ++at) {
      const size_t j = at / done, k = at % done;
      const auto a = x[at], b = x[at + n / 2];
      next[2 * j * done + k] = a + b;
      next[(2 * j + 1) * done + k] = (a - b) * turns[j * done];
    }
    x.swap(next);
  }
  return x;
}

/// The spectrum of the conjugate chirp of n numbers, at t and at -t of `size`: (size, 1).
Complex chirp_spectrum(const Tensor& like, int64_t n, int64_t size, int sign) {
  std::vector<std::complex<double>> found;
  const auto element = [&](int64_t at) {
    if (!found.empty()) return found[static_cast<size_t>(at)];
    const auto turns = circle(2 * n, -sign);
    for (int64_t t = 0; t < size; ++t) {
      const int64_t distance = std::min(t, size - t);
      found.push_back(turns[static_cast<size_t>(distance * distance % (2 * n))]);
    }
    found = spectrum(std::move(found));
    return found[static_cast<size_t>(at)];
  };
  const auto part = [&](const char* name, FunctionRef<double(int64_t)> number) {
    return known_table(strformat("fft chirp {} {} {}", name, n, sign), size, {size, 1}, like,
                       number);
  };
  return {part("re", [&](int64_t at) { return element(at).real(); }),
          part("im", [&](int64_t at) { return element(at).imag(); })};
}

/// A last step whose length has no short factors. kt = (k^2 + t^2 - (k - t)^2) / 2 makes it a
/// convolution with a chirp, which a longer transform of a power of two does (Bluestein).
Tensor prime_step(const Tensor& x, int sign) {
  const int64_t n = x.size(-3);
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
  const auto lengthened = [](const Tensor& t, int64_t axis, int64_t by) {
    std::vector<DimPair> amounts(t.ndim(), DimPair(0, 0));
    amounts[t.ndim() - static_cast<size_t>(-axis)] = {0, by};
    return t.pad(amounts);
  };
  const auto column = [](const Tensor& t) { return t.unsqueeze(-1); };
  const auto square = [](int64_t, int64_t t) { return t * t; };
  const Complex chirp = roots(x, "chirp", 1, n, 2 * n, sign, square).each(column);
  const Tensor both = lengthened(x, -2, 2 - x.size(-2));
  const Tensor given = turned(both, -2, chirp.each(column));
  const Tensor forward = steps(lengthened(given, -3, size - n).contiguous(), -1);
  const Tensor mixed = turned(forward, -2, chirp_spectrum(x, n, size, sign).each(column));
  const Tensor back = steps(mixed.contiguous(), 1);
  const Tensor kept = back.index({kEllipsis, Slice(0, n), Slice(), Slice()});
  const Tensor made = turned(kept, -2, chirp.each(column)) / static_cast<double>(size);
  return movedim(made, -2, -3).contiguous().flatten(-2, -1).unsqueeze(-3);
}

// ---- whole transforms

/// Many transforms side by side: the innermost axis is theirs, so that every product is one of
/// whole vectors, however short they are. One transform after the other where they are few.
struct Rows {
  explicit Rows(const Tensor& x) : shape(x.dims()), length(x.size(-2)) {
    Dims outer = shape;
    outer.erase(outer.size() - 1);
    outer.erase(outer.size() - 1);
    const Dim all = outer.product();
    if (all.is_static() && all.value() >= kVector) count = all.value();
    shape.back() = 2;
  }
  /// (..., n, parts) to (blocks, n, parts, rows), or to (..., n, parts, 1).
  Tensor last(const Tensor& x) const {
    if (count == 1 && x.size(-1) == 1) return x.unsqueeze(-1);
    if (count == 1) return x.transpose(-1, -2).contiguous().transpose(-1, -2).unsqueeze(-1);
    return x.reshape({count / block(), block(), length, x.dim(-1)})
        .permute({0, 2, 3, 1})
        .contiguous();
  }
  /// (..., n, 2, rows) to (..., n, 2).
  Tensor first(const Tensor& x) const {
    if (count == 1) return x.squeeze(-1);
    return x.permute({0, 3, 1, 2}).reshape(shape);
  }
  /// Transforms side by side, which fit the caches of a core.
  int64_t block() const { return count % kVector == 0 ? kVector : count; }

  Dims shape;
  int64_t length, count = 1;
};

/// `more` zeros behind an axis, the last one of which is 1.
Tensor with_zeros(const Tensor& x, size_t from_last, int64_t more) {
  std::vector<DimPair> by(x.ndim(), DimPair(0, 0));
  by[x.ndim() - from_last] = {0, more};
  return x.pad(by);
}

/// Columns of zeros to fill the last vector of each matrix of x, (..., columns, n, parts).
int64_t filling(const Tensor& x) {
  if (x.ndim() < 3 || !x.dims().is_static() || x.size(-3) < kFewFilled) return 0;
  const int64_t all = x.numel() / (x.size(-2) * x.size(-1));
  return all % kVector == 0 ? (kVector - x.size(-3) % kVector) % kVector : 0;
}

/// Of x, (..., n, parts), the transform (..., n, 2).
Tensor transformed(const Tensor& x, int sign) {
  const Rows rows(x);
  if (rows.length > 1) return rows.first(steps(rows.last(x), sign));
  return x.size(-1) == 2 ? x : Tensor::cat({x, x.zeros_like()}, -1);
}

// ---- axes and sizes

/// The same where in memory the n are not neighbours. `moved`: they lie as another transform has
/// left them, in groups of lanes; else rows with zeros behind them are copied first, before masks
/// are in the way of such groups (4 x 500 x 500: 2.3 -> 0.8 ms of 4.9).
Tensor transformed_apart(const Tensor& x, int sign, bool moved) {
  const int64_t more = filling(x);
  if (more == 0) return transformed(x, sign);
  const Tensor filled = with_zeros(x, 3, more);
  const Tensor y = transformed(moved ? filled : filled.contiguous(), sign);
  return y.index({kEllipsis, Slice(0, x.size(-3)), Slice(), Slice()});
}

/// (..., n, parts) of x, (..., parts), with an axis of n elements.
Tensor prepared(const Tensor& x, int64_t axis, int64_t n) {
  const Tensor y = movedim(x, axis, -2).cast(sum_dtype(x.dtype()));
  return n == y.size(-2) ? y : with_zeros(y, 2, n - y.size(-2));
}

int64_t checked_size(const char* tag, int64_t n, int64_t otherwise) {
  if (n < 0 || (n == 0 && otherwise < 1))
    fail(tag, "a transform of {} elements: give at least 1", n == 0 ? otherwise : n);
  if (n > INT32_MAX) fail(tag, "a transform of {} elements: at most {} are done", n, INT32_MAX);
  return n == 0 ? otherwise : n;
}

/// Its real part, whose axes are those that are counted.
Tensor checked_real(const char* tag, const Tensor& x) {
  require_float(tag, x);
  if (x.ndim() < 2 || !(x.dim(-1) == Dim(2)))
    fail(tag, "takes complex numbers, whose last axis has size 2: got shape {}", x.dims().text());
  return x.index({kEllipsis, 0});
}

double scale(Norm norm, int64_t n, bool inverse) {
  const auto size = static_cast<double>(n);
  if (norm == Norm::Ortho) return 1 / std::sqrt(size);
  return inverse == (norm == Norm::Backward) ? 1 / size : 1;
}

Tensor scaled(const Tensor& x, double by) { return by == 1 ? x : x * by; }

/// With the axis back in its place.
Tensor placed(const Tensor& x, int64_t axis, double by, DType dtype) {
  return movedim(scaled(x, by), -2, axis).cast(dtype);
}

/// `moved`: `given` lies in the order of another transform.
Tensor complex_transform(const char* tag, const Tensor& given, int64_t n, int64_t axis, Norm norm,
                         bool inverse, bool moved = false) {
  const Ints options{n, axis, static_cast<int64_t>(norm), moved};
  return called(tag, options, {given}, [=](const Tensors& in) {
    const Tensor& x = in[0];
    const int64_t a = sized_axis(tag, axis, checked_real(tag, x));
    const int64_t size = checked_size(tag, n, x.size(a));
    const bool apart = moved || a + 2 < static_cast<int64_t>(x.ndim());
    const Tensor rows = prepared(x, a, size);
    const int sign = inverse ? 1 : -1;
    const Tensor made = apart ? transformed_apart(rows, sign, moved) : transformed(rows, sign);
    return Tensors{placed(made, a, scale(norm, size, inverse), x.dtype())};
  })[0];
}

Tensor over_axes(const char* tag, const Tensor& x, const Axes& axes, Norm norm, bool inverse) {
  Tensor y = x;
  bool moved = false;
  for (const int64_t a : checked_axes(tag, axes, checked_real(tag, x)))
    y = complex_transform(inverse ? "ifft" : "fft", y, 0, a, norm, inverse,
                          std::exchange(moved, true));
  return y;
}

}  // namespace

Tensor fft(const Tensor& x, int64_t n, int64_t axis, Norm norm, CallSite at) {
  const CallSiteScope site(at);
  return complex_transform("fft", x, n, axis, norm, false);
}
Tensor ifft(const Tensor& x, int64_t n, int64_t axis, Norm norm, CallSite at) {
  const CallSiteScope site(at);
  return complex_transform("ifft", x, n, axis, norm, true);
}
Tensor fftn(const Tensor& x, const Axes& axes, Norm norm, CallSite at) {
  const CallSiteScope site(at);
  return over_axes("fftn", x, axes, norm, false);
}
Tensor ifftn(const Tensor& x, const Axes& axes, Norm norm, CallSite at) {
  const CallSiteScope site(at);
  return over_axes("ifftn", x, axes, norm, true);
}

namespace {

/// Of an even number of real numbers, (..., n, 1), the frequencies up to the half, (..., n / 2 + 1,
/// 2): two in turn are one complex number of a transform of half the length (Cooley, Lewis and
/// Welch 1970, "The fast Fourier transform algorithm: programming considerations in the calculation
/// of sine, cosine and Laplace transforms").
Tensor half_of_real(const Tensor& x) {
  const int64_t n = x.size(-2), m = n / 2;
  const Tensor pairs = x.squeeze(-1).unflatten(-1, {m, 2});
  Rows rows(pairs);
  const Tensor z = steps(rows.last(pairs), -1);  // (..., m, 2, rows)
  // near + far are twice the frequencies of the even elements, near - far i times those of the odd.
  const auto column = [](const Tensor& t) { return t.unsqueeze(-1).unsqueeze(-1); };
  const Tensor near = z.index({kEllipsis, Slice(1, m), Slice(), Slice()});
  const Tensor far = conjugate(near.flip(-3), -2);
  const Complex turn = roots(z, "half", 1, m - 1, n, -1, [](int64_t, int64_t k) { return k + 1; });
  const Tensor odd = turned(near - far, -2, {column(turn.im), column(-turn.re)});
  // The ends have no imaginary parts.
  const Tensor ends = z.index({kEllipsis, Slice(0, 1), Slice(), Slice()});
  const Tensor first = ends.sum(-2, true), last = conjugate(ends, -2).sum(-2, true);
  rows.shape[rows.shape.size() - 2] = m + 1;
  const auto real = [](const Tensor& t) { return Tensor::cat({t, t.zeros_like()}, -2); };
  return rows.first(
      Tensor::cat({real(first), (near + far + odd) * 0.5, real(last)}, -3).contiguous());
}

Tensor rfft_of(const Tensor& x, int64_t n, int64_t axis, Norm norm) {
  require_float("rfft", x);
  const int64_t a = sized_axis("rfft", axis, x);
  const int64_t size = checked_size("rfft", n, x.size(a));
  const Tensor given = prepared(x.unsqueeze(-1), a, size);
  const Tensor half =
      size % 2 == 0 && size > 2
          ? half_of_real(given)
          : transformed(given, -1).index({kEllipsis, Slice(0, size / 2 + 1), Slice()});
  return placed(half, a, scale(norm, size, false), x.dtype());
}

/// An even number of real numbers from the frequencies up to the half, (..., n / 2 + 1, 2), by the
/// same way back. Without the factor 1 / n; (..., n / 2, 2).
Tensor real_from_half(const Tensor& half) {
  const int64_t m = half.size(-2) - 1;
  const Tensor x = Rows(half).last(half);  // (..., m + 1, 2, rows)
  const auto part = [&](int64_t begin, int64_t which) {
    return x.index({kEllipsis, Slice(begin, begin + m), which, Slice()});
  };
  // The ends have no imaginary parts: what is there is not looked at.
  const Tensor at = Tensor::arange(m).unsqueeze(-1).to(x.device());
  const Complex near{part(0, 0), (at == 0).where(0, part(0, 1))};
  const Complex far{part(1, 0).flip(-2), (at == 0).where(0, part(1, 1).flip(-2))};
  const Complex even{near.re + far.re, near.im - far.im}, odd{near.re - far.re, near.im + far.im};
  const Complex turn = roots(x, "halves", 1, m, 2 * m, 1, [](int64_t, int64_t k) { return k; });
  const Complex turned = times(turn.each([](const Tensor& r) { return r.unsqueeze(-1); }), odd);
  const Complex z{even.re - turned.im, even.im + turned.re};
  const Rows shorter(half.index({kEllipsis, Slice(0, m), Slice()}));
  return shorter.first(steps(z, 1));
}

Tensor irfft_of(const Tensor& x, int64_t n, int64_t axis, Norm norm) {
  const int64_t a = sized_axis("irfft", axis, checked_real("irfft", x));
  const int64_t size = checked_size("irfft", n, 2 * (x.size(a) - 1));
  const Tensor half = prepared(x, a, size / 2 + 1);
  if (size % 2 == 0)
    return movedim(scaled(real_from_half(half).flatten(-2, -1), scale(norm, size, true)), -1, a)
        .cast(x.dtype());
  // Frequency n - k is the conjugate of k.
  const Complex mirrored =
      parts(half.index({kEllipsis, Slice(1, (size + 1) / 2), Slice()}).flip(-2));
  const Tensor all = Tensor::cat({half, joined(Complex{mirrored.re, -mirrored.im})}, -2);
  const Tensor y = scaled(transformed(all, 1).index({kEllipsis, 0}), scale(norm, size, true));
  return movedim(y, -1, a).cast(x.dtype());
}

}  // namespace

Tensor rfft(const Tensor& x, int64_t n, int64_t axis, Norm norm, CallSite at) {
  const CallSiteScope site(at);
  return called("rfft", {n, axis, static_cast<int64_t>(norm)}, {x},
                [=](const Tensors& in) { return Tensors{rfft_of(in[0], n, axis, norm)}; })[0];
}

Tensor irfft(const Tensor& x, int64_t n, int64_t axis, Norm norm, CallSite at) {
  const CallSiteScope site(at);
  return called("irfft", {n, axis, static_cast<int64_t>(norm)}, {x},
                [=](const Tensors& in) { return Tensors{irfft_of(in[0], n, axis, norm)}; })[0];
}

// ---- frequencies

Tensor fftshift(const Tensor& x, const Axes& axes, CallSite at) {
  const CallSiteScope site(at);
  Tensor y = x;
  for (const int64_t a : checked_axes("fftshift", axes, x)) y = y.roll(x.size(a) / 2, a);
  return y;
}
Tensor ifftshift(const Tensor& x, const Axes& axes, CallSite at) {
  const CallSiteScope site(at);
  Tensor y = x;
  for (const int64_t a : checked_axes("ifftshift", axes, x)) y = y.roll(-(x.size(a) / 2), a);
  return y;
}

Tensor fftfreq(int64_t n, double spacing, CallSite at) {
  const CallSiteScope site(at);
  const int64_t size = checked_size("fftfreq", n, 0);
  const Tensor k = Tensor::arange(Dim(size));
  return (k < (size + 1) / 2).where(k, k - size) / (static_cast<double>(size) * spacing);
}
Tensor rfftfreq(int64_t n, double spacing, CallSite at) {
  const CallSiteScope site(at);
  const int64_t size = checked_size("rfftfreq", n, 0);
  return Tensor::arange(Dim(size / 2 + 1)) / (static_cast<double>(size) * spacing);
}

}  // namespace weft::fft
