#include "weft/tensor/fft.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "weft/tensor/access.h"
#include "weft/tensor/complex.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/tables.h"

namespace weft::fft {

namespace {

/// exp(sign * 2 pi i turn(r, c) / n), reduced before it is rounded: a matrix, or a vector for one
/// row.
template <class Turn>
Complex roots(const Tensor& like, int64_t rows, int64_t columns, int64_t n, int sign, Turn turn) {
  std::vector<double> re, im;
  require_table("fft", rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(turn(r, c) % n) / static_cast<double>(n);
      re.push_back(std::cos(angle));
      im.push_back(sign * std::sin(angle));
    }
  auto table = [&](const std::vector<double>& values) {
    const Dims shape = rows == 1 ? Dims{columns} : Dims{rows, columns};
    return constant_table(values, shape, like).cast(like.dtype());
  };
  return {table(re), table(im)};
}

constexpr int64_t kMostDense = 32;

int64_t factor_of(int64_t n) {
  if (n <= kMostDense) return n;
  for (int64_t f = kMostDense; f > 1; --f)
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
  const Complex chirp = roots(x.re, 1, n, 2 * n, sign, square);
  const auto lengthened = [&](const Tensor& t) {
    std::vector<DimPair> by(t.ndim(), DimPair(0, 0));
    by.back() = {0, size - n};
    return t.pad(by);
  };
  // The conjugate chirp at t and at -t.
  const Complex back = roots(x.re, 1, size, 2 * n, -sign, [&](int64_t, int64_t t) {
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

/// Position i1 m + i2 and frequency k1 + f k2 for n = f m: transforms of f, turns by i2 k1 / n,
/// transforms of m.
Complex transformed(const Complex& x, int sign) {
  const int64_t n = x.re.size(-1), f = factor_of(n), m = n / f;
  const auto by_product = [](int64_t r, int64_t c) { return r * c; };
  if (f == 1 && n > 1) return bluestein(x, sign);
  if (n == 1) return {x.re, x.im.defined() ? x.im : x.re.zeros_like()};
  const Complex matrix = roots(x.re, f, f, f, sign, by_product);
  if (m == 1) return product(x, matrix);
  const Complex rows =
      x.each([&](const Tensor& t) { return t.unflatten(-1, {f, m}).transpose(-1, -2); });
  const Complex turned = times(product(rows, matrix), roots(x.re, m, f, n, sign, by_product));
  const Complex columns =
      turned.each([](const Tensor& t) { return t.transpose(-1, -2).contiguous(); });
  return transformed(columns, sign).each([](const Tensor& t) {
    return t.transpose(-1, -2).contiguous().flatten(-2, -1);
  });
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

Tensor complex_transform(const char* tag, const Tensor& x, int64_t n, int64_t axis, Norm norm,
                         bool inverse) {
  const Complex given = checked_parts(tag, x);
  const int64_t a = checked_axis(tag, axis, given.re);
  const int64_t size = checked_size(tag, n, given.re.size(a));
  const Complex ready = given.each([&](const Tensor& t) { return prepared(t, a, size); });
  return joined(transformed(ready, inverse ? 1 : -1), a, scale(norm, size, inverse), x.dtype());
}

Tensor over_axes(const char* tag, const Tensor& x, const Axes& axes, Norm norm, bool inverse) {
  Tensor y = x;
  for (const int64_t a : checked_axes(tag, axes, checked_parts(tag, x).re))
    y = complex_transform(tag, y, 0, a, norm, inverse);
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

Tensor rfft(const Tensor& x, int64_t n, int64_t axis, Norm norm, CallSite at) {
  const CallSiteScope site(at);
  require_float("rfft", x);
  const int64_t a = checked_axis("rfft", axis, x);
  const int64_t size = checked_size("rfft", n, x.size(a));
  const Complex half = transformed({prepared(x, a, size), {}}, -1).each([&](const Tensor& t) {
    return t.index({kEllipsis, Slice(0, size / 2 + 1)});
  });
  return joined(half, a, scale(norm, size, false), x.dtype());
}

Tensor irfft(const Tensor& x, int64_t n, int64_t axis, Norm norm, CallSite at) {
  const CallSiteScope site(at);
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
