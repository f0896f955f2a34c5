// Fourier transforms against the sum that defines them.
#include "weft/tensor/fft.h"

#include <cmath>
#include <complex>
#include <numbers>

#include "tests/tensor/tensor_test.h"
#include "weft/base/format.h"

namespace weft {
namespace {

class Fourier : public TensorTest {};

/// The definition: sum of x[t] exp(sign 2 pi i k t / n).
std::vector<double> defined(const std::vector<double>& x, int sign) {
  const size_t n = x.size() / 2;
  std::vector<double> out;
  for (size_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (size_t t = 0; t < n; ++t)
      sum += std::complex<double>(x[2 * t], x[2 * t + 1]) *
             std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k * t % n) /
                                 static_cast<double>(n));
    out.push_back(sum.real());
    out.push_back(sum.imag());
  }
  return out;
}

TEST_F(Fourier, EveryKindOfLength) {
  // Dense, products of factors, primes above 32 alone and within, powers of two;
  // steps with one matrix and with one for each position.
  for (const int64_t n : {1, 2, 7, 32, 33, 37, 64, 74, 100, 128, 289, 323, 1024, 1072}) {
    SCOPED_TRACE(n);
    const Tensor x = sample({n, 2});
    expect_near(fft::fft(x), defined(values(x), -1), 1e-10);
    expect_near(fft::ifft(fft::fft(x)), values(x), 1e-12);
  }
}

/// Few rows are done one after the other, many side by side.
TEST_F(Fourier, Rows) {
  for (const int64_t rows : {2, 15, 16, 17, 40, 48})
    for (const int64_t n : {1, 3, 11, 32, 37, 40, 49, 60, 64, 105}) {
      SCOPED_TRACE(strformat("{} of {}", rows, n));
      const Tensor x = sample({2, rows, n, 2}), y = fft::fft(x);
      for (const int64_t at : {int64_t{0}, rows - 1})
        expect_near(y[{1, at}], defined(values(x[{1, at}]), -1), 1e-10);
      expect_near(fft::fft(x.transpose(1, 2), 0, 1).transpose(1, 2), values(y), 1e-12);
    }
}

TEST_F(Fourier, RealSignals) {
  for (const int64_t n : {1, 2, 5, 8, 35, 37}) {
    SCOPED_TRACE(n);
    const Tensor x = sample({n});
    const Tensor complex = Tensor::stack({x, x.zeros_like()}, -1);
    const Tensor half = fft::rfft(x);
    expect_near(half, values(fft::fft(complex)[Slice(n / 2 + 1)]), 1e-11);
    expect_near(fft::irfft(half, n), values(x), 1e-12);
  }
  // Imaginary parts of frequency 0 and of the middle one are not looked at.
  const Tensor x = Tensor::of({{1.0f, 9.0f}, {2.0f, 1.0f}, {3.0f, 9.0f}});
  expect_near(fft::irfft(x), {2, -1, 0, 0});
}

/// An even number of them is done as half as many complex ones.
TEST_F(Fourier, ManyRealSignals) {
  for (const int64_t rows : {1, 5, 17, 32})
    for (const int64_t n : {2, 4, 6, 9, 30, 62, 74, 96, 200}) {
      SCOPED_TRACE(strformat("{} of {}", rows, n));
      const Tensor x = sample({rows, n});
      expect_near(fft::irfft(fft::rfft(x), n), values(x), 1e-12);
    }
}

/// 2 x 72 columns, which vectors divide, though no vector divides those of one matrix.
TEST_F(Fourier, ColumnsOfManyMatrices) {
  for (const int64_t n : {6, 30}) {
    const Tensor x = sample({2, n, 72, 2}), rows = x.transpose(1, 2).contiguous();
    const Tensor wanted = fft::fft(rows, 0, 2).transpose(1, 2);
    expect_near(fft::fft(x, 0, 1), values(wanted), 1e-12);
    expect_near(fft::fftn(x, {1, 2}), values(fft::fft(wanted.contiguous(), 0, 2)), 1e-11);
    expect_near(fft::ifftn(fft::fftn(x, {2, 1}), {1, 2}), values(x), 1e-12);
  }
}

TEST_F(Fourier, AxesNormsAndLengths) {
  const Tensor x = sample({3, 4, 2});
  const Tensor rows = fft::fft(x, 0, 0);
  expect_near(rows[{Slice(), 1}], defined(values(x[{Slice(), 1}]), -1), 1e-12);
  expect_near(fft::ifftn(fft::fftn(x)), values(x), 1e-12);
  expect_near(fft::fftn(x, {0, 1}), values(fft::fft(fft::fft(x, 0, 0), 0, 1)), 1e-12);
  expect_near(fft::fft(x, 0, 0, fft::Norm::Ortho), values(rows / std::sqrt(3.0)), 1e-12);
  expect_near(fft::fft(x, 0, 0, fft::Norm::Forward), values(rows / 3), 1e-12);
  expect_near(fft::ifft(x, 0, 0, fft::Norm::Forward), values(fft::ifft(x, 0, 0) * 3), 1e-12);
  const Tensor y = sample({5});
  expect_near(fft::rfft(y, 3), values(fft::rfft(y[Slice(3)])), 1e-12);
  expect_near(fft::rfft(y, 8), values(fft::rfft(y.pad({{0, 3}}))), 1e-12);
  EXPECT_EQ(fft::rfft(y.cast(DType::F16)).dtype(), DType::F16);
}

TEST_F(Fourier, FrequenciesAndWindows) {
  expect_near(fft::fftfreq(5, 2), {0, 0.1, 0.2, -0.2, -0.1});
  expect_near(fft::fftfreq(4), {0, 0.25, -0.5, -0.25});
  expect_near(fft::rfftfreq(4), {0, 0.25, 0.5});
  EXPECT_EQ(shown(fft::fftshift(Tensor::arange(5), {})), "i32 (5) [3, 4, 0, 1, 2]");
  EXPECT_EQ(shown(fft::ifftshift(fft::fftshift(Tensor::arange(5), {}), {})),
            "i32 (5) [0, 1, 2, 3, 4]");
  expect_near(fft::hann_window(4), {0, 0.5, 1, 0.5});
  expect_near(fft::hann_window(3, false), {0, 1, 0});
  expect_near(fft::hamming_window(4), {0.08, 0.54, 1, 0.54});
}

TEST_F(Fourier, Frames) {
  const Tensor x = sample({2, 40});
  const fft::StftOptions o{.hop = 4, .window = fft::hann_window(8)};
  const Tensor y = fft::stft(x, 8, o);
  EXPECT_EQ(y.dims().text(), "(2, 5, 11, 2)");
  const Tensor frame = x[{0, Slice(8, 16)}] * o.window.cast(DType::F64);
  expect_near(y[{0, Slice(), 3}], values(fft::rfft(frame)), 1e-7);
  expect_near(fft::istft(y, 8, o), values(x), 1e-7);
  const fft::StftOptions open{.hop = 2, .center = false, .normalized = true};
  const Tensor z = fft::stft(x, 8, open);
  EXPECT_EQ(z.dims().text(), "(2, 5, 17, 2)");
  expect_near(fft::istft(z, 8, open, 40), values(x), 1e-9);
}

}  // namespace
}  // namespace weft
