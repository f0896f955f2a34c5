#include "weft/onnx/transform_operators.h"

#include <array>
#include <cmath>
#include <numbers>

#include "weft/onnx/axes.h"
#include "weft/tensor/fft.h"

namespace weft::onnx {

namespace {

/// Complex numbers are a last axis of 2 in both; real ones have one of 1 here.
bool is_complex(const NodeCall& call, const Tensor& x) {
  if (x.ndim() < 2 || !(x.dim(-1) == Dim(1) || x.dim(-1) == Dim(2)))
    call.refuse("signal of shape {}: the last axis must have size 1 (real) or 2 (complex)",
                x.dims().text());
  return x.dim(-1) == Dim(2);
}

Tensor with_imaginary(const Tensor& x) { return Tensor::cat({x, x.zeros_like()}, -1); }

/// The axis of a signal, which the last one is not.
int64_t signal_axis(const NodeCall& call, const Tensor& x) {
  int64_t given = call.integer("axis", 1);
  if (call.opset() >= 20) given = call.has(2) ? call.integer(2) : -2;
  const int64_t axis = call.axis(given, x.ndim());
  if (axis == static_cast<int64_t>(x.ndim()) - 1)
    call.refuse("axis {} of shape {} is the one of real and imaginary parts", given,
                x.dims().text());
  return axis;
}

/// Of real numbers only the first half, which determines the others.
Tensor forward(const Tensor& x, int64_t n, int64_t axis, bool complex, bool half) {
  if (!complex && half) return fft::rfft(x.squeeze(-1), n, axis);
  const Tensor all = fft::fft(complex ? x : with_imaginary(x), n, axis);
  if (!half) return all;
  std::vector<Index> first(static_cast<size_t>(axis), Slice());
  first.emplace_back(Slice(Dim(all.size(axis) / 2 + 1)));
  return all.index(first);
}

}  // namespace

Values dft(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const bool complex = is_complex(call, x), half = call.integer("onesided", 0) != 0;
  const int64_t axis = signal_axis(call, x), n = call.has(1) ? call.integer(1) : 0;
  if (call.has(1) && n < 1) call.refuse("dft_length is {}: give at least 1", n);
  if (call.integer("inverse", 0) == 0) return {forward(x, n, axis, complex, half)};
  const Tensor y = complex ? x : with_imaginary(x);
  if (half) return {fft::irfft(y, n, axis).unsqueeze(-1)};
  return {fft::ifft(y, n, axis)};
}

Values stft(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const bool complex = is_complex(call, x), half = call.integer("onesided", 1) != 0;
  if (x.ndim() != 3) call.refuse("signal of shape {}: give (batch, samples, 1)", x.dims().text());
  const int64_t step = call.integer(1);
  int64_t length = call.has(2) ? call.tensor(2).size(0) : x.size(1);
  if (call.has(3)) length = call.integer(3);
  if (step < 1 || length < 1 || length > x.size(1))
    call.refuse(
        "frames of {} samples, {} apart, of a signal of {}: both must be at least 1, and a "
        "frame no longer than the signal",
        length, step, x.size(1));
  // (batch, frames, parts, length), then complex numbers last.
  Tensor frames = x.window(1, length, step);
  if (call.has(2)) frames = frames * call.tensor(2).cast(x.dtype());
  return {forward(frames.transpose(-1, -2), 0, 2, complex, half)};
}

// ---- windows of samples: a0 - a1 cos(2 pi t / n) + a2 cos(4 pi t / n)

namespace {

DType output_dtype(const NodeCall& call) {
  const DType dtype = dtype_of(static_cast<ElementType>(call.integer("output_datatype", 1)));
  if (dtype == DType::Void)
    call.refuse("output_datatype {} is no type of numbers", call.integer("output_datatype", 1));
  return dtype;
}

constexpr int64_t kMostSamples = int64_t{1} << 26;

Values cosine_window(const NodeCall& call, const std::array<double, 3>& a) {
  const int64_t size = call.integer(0);
  if (size < 0 || size > kMostSamples)
    call.refuse("a window of {} samples: give 0 to {}", size, kMostSamples);
  const int64_t turn = call.integer("periodic", 1) != 0 ? size : size - 1;
  std::vector<double> samples;
  for (int64_t t = 0; t < size; ++t) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(t) / static_cast<double>(turn > 0 ? turn : 1);
    samples.push_back(a[0] - a[1] * std::cos(angle) + a[2] * std::cos(2 * angle));
  }
  const DType dtype = output_dtype(call);
  return {table(samples, {size}, Tensor::zeros({})).cast(dtype)};
}

}  // namespace

Values hann_window(const NodeCall& call) { return cosine_window(call, {0.5, 0.5, 0}); }

Values hamming_window(const NodeCall& call) {
  return cosine_window(call, {25.0 / 46, 21.0 / 46, 0});
}

Values blackman_window(const NodeCall& call) { return cosine_window(call, {0.42, 0.5, 0.08}); }

// ---- mel filters

namespace {

/// The bins where `bands` triangles begin, peak and end: evenly spaced on the scale
/// mel(f) = 2595 log10(1 + f / 700).
std::vector<int64_t> mel_bins(int64_t bands, int64_t length, int64_t rate, double low,
                              double high) {
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  std::vector<int64_t> bins;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double at = static_cast<double>(i) * step + mel(low);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    bins.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  return bins;
}

}  // namespace

Values mel_weight_matrix(const NodeCall& call) {
  const int64_t bands = call.integer(0), length = call.integer(1), rate = call.integer(2);
  const double low = call.number(3), high = call.number(4);
  if (bands < 1 || length < 1 || rate < 1 || bands > kMostSamples / (length / 2 + 1))
    call.refuse("{} bands of transforms of {} at {} samples a second: give at least 1 of each",
                bands, length, rate);
  if (!(low >= 0 && high >= low)) call.refuse("edges of {} and {} hertz", low, high);
  const int64_t rows = length / 2 + 1;
  const std::vector<int64_t> bins = mel_bins(bands, length, rate, low, high);
  std::vector<double> weights(static_cast<size_t>(rows * bands));
  const auto set = [&](int64_t row, int64_t band, double weight) {
    if (row >= 0 && row < rows) weights[static_cast<size_t>(row * bands + band)] = weight;
  };
  for (int64_t i = 0; i < bands; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t begin = bins[at], peak = bins[at + 1], end = bins[at + 2];
    const auto up = static_cast<double>(peak - begin), down = static_cast<double>(end - peak);
    for (int64_t j = begin; j < peak && j < rows; ++j)
      set(j, i, static_cast<double>(j - begin) / up);
    set(peak, i, 1);
    for (int64_t j = peak; j < end && j < rows; ++j) set(j, i, static_cast<double>(end - j) / down);
  }
  return {table(weights, {rows, bands}, Tensor::zeros({})).cast(output_dtype(call))};
}

}  // namespace weft::onnx
