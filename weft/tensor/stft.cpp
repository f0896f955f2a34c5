// Transforms of frames of a signal, and the windows that frames are seen through.
#include <cmath>
#include <numbers>

#include "weft/tensor/access.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/tracing.h"

namespace weft::fft {

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
  require_float("istft", given);
  if (given.ndim() < 3 || !(given.dim(-1) == Dim(2)) || given.size(-3) != frame / 2 + 1)
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
