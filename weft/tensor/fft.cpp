#include "weft/tensor/fft.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "weft/base/format.h"
#include "weft/tensor/access.h"
#include "weft/tensor/complex.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/tracing.h"

namespace weft::fft {

namespace {

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

/// A factor for one step of a transform of n elements: about the root that makes all steps equal;
/// n itself where that is short, 1 where all factors are too long.
int64_t factor_of(int64_t n) {
  if (n <= kMostAtOnce) return n;
  const double steps = std::ceil(std::log2(static_cast<double>(n)) / std::log2(kMostDense));
  const auto equal = static_cast<int64_t>(std::round(std::pow(static_cast<double>(n), 1 / steps)));
  for (int64_t f = equal; f <= kMostDense; ++f)
    if (n % f == 0) return f;
  for (int64_t f = std::min(equal, kMostDense); f > 1; --f)
    if (n % f == 0) return f;
  for (int64_t f = kMostDense + 1; f <= kMostAtOnce; ++f)
    if (n % f == 0) return f;
  return 1;
}

Complex transformed(const Complex& x, int sign);

/// kt = (k^2 + t^2 - (k - t)^2) / 2 makes the transform a convolution with a chirp, which a longer
/// transform of a power of two does.
Complex bluestein(const Complex& x, int sign) {
  const int64_t n = x.re.size(-1);
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
  const auto square = [](int64_t, int64_t t) { return t * t; };
  const Complex chirp = roots(x.re, "chirp", 1, n, 2 * n, sign, square);
  const auto lengthened = [&](const Tensor& t) {
    std::vector<DimPair> by(t.ndim(), DimPair(0, 0));
    by.back() = {0, size - n};
    return t.pad(by);
  };
  // The conjugate chirp at t and at -t.
  const Complex back = roots(x.re, "around", 1, size, 2 * n, -sign, [&](int64_t, int64_t t) {
    const int64_t distance = std::min(t, size - t);
    return distance * distance;
  });
  const Complex spectrum =
      times(transformed(times(x, chirp).each(lengthened), -1), transformed(back, -1));
  const Complex all = transformed(spectrum, 1).each([&](const Tensor& t) {
    return t.index({kEllipsis, Slice(0, n)}) / static_cast<double>(size);
  });
  return times(all, chirp);
}

/// Numbers as (..., parts, n): real ones alone, or real and imaginary parts.
Tensor in_parts(const Complex& x) {
  return x.im.defined() ? Tensor::stack({x.re, x.im}, -2) : x.re.unsqueeze(-2);
}
Complex of_parts(const Tensor& x) {
  return {x.index({kEllipsis, 0, Slice()}), x.index({kEllipsis, 1, Slice()})};
}

/// (..., parts, f, rest) to (..., 2, f, rest): transforms of f, as one product of real matrices.
Tensor short_transforms(const Tensor& x, int sign) {
  const int64_t f = x.size(-2), columns = x.size(-3) * f;
  // ((C, -S), (S, C)) of exp(i angle) = C + i S; real numbers have the first half alone.
  const auto element = [&](int64_t at) {
    const int64_t row = at / columns, column = at % columns, turn = row % f * (column % f) % f;
    const double angle = 2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(f);
    if (row / f == column / f) return std::cos(angle);
    return (row < f ? -sign : sign) * std::sin(angle);
  };
  const Tensor matrix =
      known_table(strformat("fft {}", sign), 2 * f * columns, {2 * f, columns}, x, element);
  return matrix.matmul(x.flatten(-3, -2)).unflatten(-2, {2, f});
}

int64_t by_product(int64_t r, int64_t c) { return r * c; }

/// Complex numbers in axis -4, of 2 parts, times exp(sign * 2 pi i k j / n) for (k, j) in the next
/// two.
Tensor twiddled(const Tensor& x, int64_t n, int sign) {
  const Complex t =
      roots(x, "product", x.size(-3), x.size(-2), n, sign, by_product).each([](const Tensor& r) {
        return r.unsqueeze(-1);
      });
  const Tensor side = (Tensor::arange(2) * 2 - 1).cast(x.dtype()).reshape({2, 1, 1, 1});
  return x * t.re + x.flip(-4) * (side * t.im);
}

/// Transforms of prime length, along axis -2 of (..., parts, rest, done).
Tensor prime_transforms(const Tensor& x, int sign) {
  const auto rows = [](const Tensor& t) { return t.transpose(-1, -2); };
  const Complex given = {
      rows(x.index({kEllipsis, 0, Slice(), Slice()})),
      x.size(-3) == 1 ? Tensor() : rows(x.index({kEllipsis, 1, Slice(), Slice()}))};
  const Complex found = bluestein(given, sign).each(rows);
  return Tensor::stack({found.re, found.im}, -3);
}

/// Many transforms side by side: the innermost axis is theirs, so that every product is one of
/// whole vectors, however short they are. One transform after the other where they are few.
struct Rows {
  explicit Rows(const Complex& x) : shape(x.re.dims()) {
    shape.erase(shape.size() - 1);
    const Dim all = shape.product();
    if (all.is_static() && all.value() >= kLeast) count = all.value();
  }
  Tensor last(const Tensor& x) const {
    if (count == 1) return x.contiguous();
    return x.reshape({count, x.dim(-2), x.dim(-1)}).permute({1, 2, 0}).contiguous().flatten(1, 2);
  }
  Tensor first(const Tensor& x) const {
    if (count == 1) return x;
    Dims whole = shape;
    whole.push_back(2);
    whole.push_back(x.size(-1) / count);
    return x.unflatten(-1, {whole.back(), count}).permute({2, 0, 1}).reshape(whole);
  }

  static constexpr int64_t kLeast = 16;  // a vector
  Dims shape;
  int64_t count = 1;
};

/// Of (rest, done) elements the first axis is still position, the second frequency. A step takes
/// positions j1 m + j2 to frequencies k < f and leaves j2: transforms of f, turns by k j2 / rest, k
/// in front of the frequencies that are done. All are in order at the end, and every product is as
/// long as the first. (Stockham, in Cochran et al., What is the fast Fourier transform?, 1967.)
Complex transformed(const Complex& given, int sign) {
  const int64_t n = given.re.size(-1);
  if (n == 1) return {given.re, given.im.defined() ? given.im : given.re.zeros_like()};
  const Rows rows(given);
  Tensor x = rows.last(in_parts(given));
  for (int64_t rest = n, done = rows.count; rest > 1;) {
    const int64_t f = factor_of(rest), m = rest / f;
    if (f == 1) {
      x = prime_transforms(x.unflatten(-1, {rest, done}), sign);
      return of_parts(rows.first(x.flatten(-2, -1)));
    }
    x = short_transforms(x.unflatten(-1, {f, m * done}), sign);
    if (m > 1) x = twiddled(x.unflatten(-1, {m, done}), rest, sign).transpose(-3, -2).contiguous();
    x = x.flatten(m > 1 ? -3 : -2, -1);
    rest = m;
    done *= f;
  }
  return of_parts(rows.first(x));
}

// ---- axes and sizes

/// x with axis last, of n elements.
Tensor prepared(const Tensor& x, int64_t axis, int64_t n) {
  const Tensor y = movedim(x, axis, -1).cast(sum_dtype(x.dtype()));
  std::vector<DimPair> by(y.ndim(), DimPair(0, 0));
  by.back() = {0, n - y.size(-1)};
  return n == y.size(-1) ? y : y.pad(by);
}

int64_t checked_size(const char* tag, int64_t n, int64_t otherwise) {
  if (n < 0 || (n == 0 && otherwise < 1))
    fail(tag, "a transform of {} elements: give at least 1", n == 0 ? otherwise : n);
  if (n > INT32_MAX) fail(tag, "a transform of {} elements: at most {} are done", n, INT32_MAX);
  return n == 0 ? otherwise : n;
}

Complex checked_parts(const char* tag, const Tensor& x) {
  require_float(tag, x);
  if (x.ndim() < 2 || !(x.dim(-1) == Dim(2)))
    fail(tag, "takes complex numbers, whose last axis has size 2: got shape {}", x.dims().text());
  return parts(x);
}

double scale(Norm norm, int64_t n, bool inverse) {
  const auto size = static_cast<double>(n);
  if (norm == Norm::Ortho) return 1 / std::sqrt(size);
  return inverse == (norm == Norm::Backward) ? 1 / size : 1;
}

Tensor scaled(const Tensor& x, double by) { return by == 1 ? x : x * by; }

/// Both parts side by side again, with the last axis back in its place.
Tensor joined(const Complex& x, int64_t axis, double by, DType dtype) {
  const auto placed = [&](const Tensor& t) { return movedim(scaled(t, by), -1, axis).cast(dtype); };
  return joined(x.each(placed));
}

Tensor complex_transform(const char* tag, const Tensor& given, int64_t n, int64_t axis, Norm norm,
                         bool inverse) {
  const Ints options{n, axis, static_cast<int64_t>(norm)};
  return called(tag, options, {given}, [=](const Tensors& in) {
    const Tensor& x = in[0];
    const Complex both = checked_parts(tag, x);
    const int64_t a = checked_axis(tag, axis, both.re);
    const int64_t size = checked_size(tag, n, both.re.size(a));
    const Complex ready = both.each([&](const Tensor& t) { return prepared(t, a, size); });
    const Complex made = transformed(ready, inverse ? 1 : -1);
    return Tensors{joined(made, a, scale(norm, size, inverse), x.dtype())};
  })[0];
}

Tensor over_axes(const char* tag, const Tensor& x, const Axes& axes, Norm norm, bool inverse) {
  Tensor y = x;
  for (const int64_t a : checked_axes(tag, axes, checked_parts(tag, x).re))
    y = complex_transform(inverse ? "ifft" : "fft", y, 0, a, norm, inverse);
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

Tensor rfft_of(const Tensor& x, int64_t n, int64_t axis, Norm norm) {
  require_float("rfft", x);
  const int64_t a = checked_axis("rfft", axis, x);
  const int64_t size = checked_size("rfft", n, x.size(a));
  const Complex half = transformed({prepared(x, a, size), {}}, -1).each([&](const Tensor& t) {
    return t.index({kEllipsis, Slice(0, size / 2 + 1)});
  });
  return joined(half, a, scale(norm, size, false), x.dtype());
}

Tensor irfft_of(const Tensor& x, int64_t n, int64_t axis, Norm norm) {
  const Complex given = checked_parts("irfft", x);
  const int64_t a = checked_axis("irfft", axis, given.re);
  const int64_t size = checked_size("irfft", n, 2 * (given.re.size(a) - 1));
  const Complex half = given.each([&](const Tensor& t) { return prepared(t, a, size / 2 + 1); });
  // Frequency n - k is the conjugate of k.
  const auto mirrored = [&](const Tensor& t) {
    return t.index({kEllipsis, Slice(1, (size + 1) / 2)}).flip(-1);
  };
  const Complex all{Tensor::cat({half.re, mirrored(half.re)}, -1),
                    Tensor::cat({half.im, -mirrored(half.im)}, -1)};
  const Tensor y = scaled(transformed(all, 1).re, scale(norm, size, true));
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

// ---- frequencies and windows

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

namespace {

Tensor cosine_window(const char* tag, int64_t n, bool periodic, double mean) {
  if (n < 0) fail(tag, "a window of {} samples", n);
  require_table(tag, n);
  const int64_t turn = std::max<int64_t>(1, periodic ? n : n - 1);
  std::vector<float> values;
  for (int64_t t = 0; t < n; ++t) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(t) / static_cast<double>(turn);
    values.push_back(static_cast<float>(n == 1 ? 1 : mean - (1 - mean) * std::cos(angle)));
  }
  return Tensor::from(values);
}

}  // namespace

Tensor hann_window(int64_t n, bool periodic, CallSite at) {
  const CallSiteScope site(at);
  return cosine_window("hann_window", n, periodic, 0.5);
}
Tensor hamming_window(int64_t n, bool periodic, CallSite at) {
  const CallSiteScope site(at);
  return cosine_window("hamming_window", n, periodic, 0.54);
}

// ---- frames

namespace {

struct Frames {
  int64_t hop;
  Tensor window;
};

Frames frames_of(const char* tag, const Tensor& x, int64_t frame, const StftOptions& o) {
  if (frame < 1 || o.hop < 0) fail(tag, "frames of {} samples, {} apart", frame, o.hop);
  const Tensor window = o.window.defined() ? o.window : Tensor::ones({frame});
  if (window.ndim() != 1 || !(window.dim(0) == Dim(frame)))
    fail(tag, "a window of shape {} for frames of {}", window.dims().text(), frame);
  return {o.hop == 0 ? std::max<int64_t>(1, frame / 4) : o.hop,
          window.cast(sum_dtype(x.dtype())).to(x.device())};
}

std::vector<DimPair> at_both_ends(const Tensor& x, int64_t amount) {
  std::vector<DimPair> by(x.ndim(), DimPair(0, 0));
  by.back() = {amount, amount};
  return by;
}

/// (..., frames, frame) added at their places: the adjoint of window().
Tensor overlapped(const Tensor& x, int64_t hop) {
  Dims shape = x.dims();
  const int64_t frame = x.size(-1), samples = (x.size(-2) - 1) * hop + frame;
  shape.erase(shape.size() - 1);
  shape.back() = samples;
  Tensor signal = Tensor::zeros(shape, x.dtype());
  signal.requires_grad_();
  return signal.window(-1, frame, hop).gradient({signal}, x)[0];
}

}  // namespace

Tensor stft(const Tensor& given, int64_t frame, const StftOptions& o, CallSite at) {
  const CallSiteScope site(at);
  require_float("stft", given);
  if (given.ndim() == 0) fail("stft", "takes samples along the last axis: got shape ()");
  const Frames f = frames_of("stft", given, frame, o);
  const Tensor x = given.cast(f.window.dtype());
  const Tensor signal = o.center ? pad(x, at_both_ends(x, frame / 2), PadMode::Reflect) : x;
  const Tensor spectra = rfft(signal.window(-1, frame, f.hop) * f.window, 0, -1,
                              o.normalized ? Norm::Ortho : Norm::Backward);
  return spectra.transpose(-2, -3).cast(given.dtype());
}

Tensor istft(const Tensor& given, int64_t frame, const StftOptions& o, int64_t length,
             CallSite at) {
  const CallSiteScope site(at);
  checked_parts("istft", given);
  if (given.ndim() < 3 || given.size(-3) != frame / 2 + 1)
    fail("istft", "spectra of shape {} are not of frames of {}: they are (..., {}, frames, 2)",
         given.dims().text(), frame, frame / 2 + 1);
  const Frames f = frames_of("istft", given, frame, o);
  const Tensor x = given.cast(f.window.dtype()).transpose(-2, -3);
  const Tensor frames = irfft(x, frame, -1, o.normalized ? Norm::Ortho : Norm::Backward) * f.window;
  const Tensor weight = overlapped((f.window * f.window).expand({frames.dim(-2), frame}), f.hop);
  Tensor y = overlapped(frames, f.hop) / (weight > 1e-11).where(weight, 1);
  if (o.center) {
    // Of the mirrored ends a known length leaves the one at the end.
    const int64_t most = y.size(-1) - frame / 2;
    const int64_t end = length > 0 ? std::min(frame / 2 + length, y.size(-1)) : most;
    y = y.index({kEllipsis, Slice(frame / 2, end)});
  } else if (length > 0) {
    y = y.index({kEllipsis, Slice(0, length)});
  }
  return y.cast(given.dtype());
}

}  // namespace weft::fft
