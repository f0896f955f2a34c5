// Discrete Fourier transforms. Complex numbers are a last axis of 2 (real, imaginary), which axes
// do not count: axis -1 of a complex (8, 16, 2) is the one of 16. Floats; f16 and bf16 run in f32.
// n is split into factors up to 32, which are products with small matrices; prime factors above 32
// go by Bluestein's convolution (1970). Error grows with log n.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::fft {

/// Where 1 / n is: at the inverse, half of it (its root) at both, or at the forward transform.
enum class Norm : uint8_t { Backward, Ortho, Forward };

/// sum_t x[t] exp(-2 pi i k t / n), and exp(+...): complex to complex. n pads with zeros or cuts; 0
/// is the axis as it is.
Tensor fft(const Tensor& x, int64_t n = 0, int64_t axis = -1, Norm norm = Norm::Backward,
           CallSite = CallSite::here());
Tensor ifft(const Tensor& x, int64_t n = 0, int64_t axis = -1, Norm norm = Norm::Backward,
            CallSite = CallSite::here());
/// Real x to the first n / 2 + 1 complex values, the others being their conjugates, and back (n is
/// even if not given; imaginary parts that a real signal cannot have are not looked at).
Tensor rfft(const Tensor& x, int64_t n = 0, int64_t axis = -1, Norm norm = Norm::Backward,
            CallSite = CallSite::here());
Tensor irfft(const Tensor& x, int64_t n = 0, int64_t axis = -1, Norm norm = Norm::Backward,
             CallSite = CallSite::here());
/// fft and ifft over several axes, one after the other; none means all.
Tensor fftn(const Tensor& x, const Axes& axes = {}, Norm norm = Norm::Backward,
            CallSite = CallSite::here());
Tensor ifftn(const Tensor& x, const Axes& axes = {}, Norm norm = Norm::Backward,
             CallSite = CallSite::here());
/// Frequency 0 in the middle, and back; x of any kind.
Tensor fftshift(const Tensor& x, const Axes& axes, CallSite = CallSite::here());
Tensor ifftshift(const Tensor& x, const Axes& axes, CallSite = CallSite::here());
/// (n): the frequencies of fft's, or (n / 2 + 1) of rfft's values, for samples `spacing` apart.
Tensor fftfreq(int64_t n, double spacing = 1, CallSite = CallSite::here());
Tensor rfftfreq(int64_t n, double spacing = 1, CallSite = CallSite::here());

/// a + b cos(2 pi t / n) windows; periodic, or symmetric with n - 1.
Tensor hann_window(int64_t n, bool periodic = true, CallSite = CallSite::here());
Tensor hamming_window(int64_t n, bool periodic = true, CallSite = CallSite::here());

struct StftOptions {
  int64_t hop = 0;          ///< samples between frames; 0: a quarter of a frame
  Tensor window = {};       ///< (frame); ones
  bool center = true;       ///< frame t is about sample t * hop; mirrored at the ends
  bool normalized = false;  ///< by 1 / sqrt(frame)
};
/// Real (..., samples) to complex (..., frame / 2 + 1, frames, 2).
Tensor stft(const Tensor& x, int64_t frame, const StftOptions& options = {},
            CallSite = CallSite::here());
/// The signal of least squared distance to these frames (Griffin and Lim 1984); `length` cuts it.
Tensor istft(const Tensor& x, int64_t frame, const StftOptions& options = {}, int64_t length = 0,
             CallSite = CallSite::here());

}  // namespace weft::fft
