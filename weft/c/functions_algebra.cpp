// Linear algebra, Fourier transforms, hashes.
#include "weft/c/functions.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/hash.h"
#include "weft/tensor/linalg.h"

namespace weft::c {

WEFT_CHOICE(fft::Norm, "backward|ortho|forward")

template <>
struct Listed<linalg::LU> {
  static Results of(linalg::LU x) {
    return {std::move(x.packed), std::move(x.rows), std::move(x.sign)};
  }
};
template <>
struct Listed<linalg::SVD> {
  static Results of(linalg::SVD x) { return {std::move(x.u), std::move(x.s), std::move(x.vt)}; }
};

namespace {

Tensor stft(const Tensor& x, int64_t frame, int64_t hop, const Tensor& window, bool center,
            bool normalized) {
  return fft::stft(x, frame, {hop, window, center, normalized}, CallSite());
}
Tensor istft(const Tensor& x, int64_t frame, int64_t hop, const Tensor& window, bool center,
             bool normalized, int64_t length) {
  return fft::istft(x, frame, {hop, window, center, normalized}, length, CallSite());
}
Tensor keccak_by_name(const Tensor& x, std::string_view name, int64_t bytes) {
  return keccak(x, name, bytes, CallSite());
}

constexpr Function kFunctions[] = {
    row<linalg::lu>("lu", "a", "packed, rows, sign"),
    row<linalg::solve>("solve", "a, b"),
    row<linalg::inv>("inv", "a"),
    row<linalg::det>("det", "a"),
    row<linalg::slogdet>("slogdet", "a", "sign and logarithm"),
    row<linalg::triangular_solve>("triangular_solve", "a, b, upper, unit = false"),
    row<linalg::cholesky>("cholesky", "a"),
    row<linalg::qr>("qr", "a, full = false"),
    row<linalg::lstsq>("lstsq", "a, b"),
    row<linalg::eig>("eig", "a", "complex values and vectors, parts in a last axis"),
    row<linalg::eigh>("eigh", "a", "values and vectors"),
    row<linalg::svd>("svd", "a, full = false", "u, s, vt"),
    row<linalg::pinv>("pinv", "a, rcond = 1e-6"),
    row<linalg::matrix_power>("matrix_power", "a, n"),
    row<linalg::trace>("trace", "a"),
    row<linalg::newton_schulz>("newton_schulz",
                               "a, steps = 5, coefficients = [3.4445, -4.775, 2.0315], eps = 1e-7"),

    row<fft::fft>("fft", "x, n = 0, axis = -1, norm = backward"),
    row<fft::ifft>("ifft", "x, n = 0, axis = -1, norm = backward"),
    row<fft::rfft>("rfft", "x, n = 0, axis = -1, norm = backward"),
    row<fft::irfft>("irfft", "x, n = 0, axis = -1, norm = backward"),
    row<fft::fftn>("fftn", "x, axes = [], norm = backward"),
    row<fft::ifftn>("ifftn", "x, axes = [], norm = backward"),
    row<fft::fftshift>("fftshift", "x, axes"),
    row<fft::ifftshift>("ifftshift", "x, axes"),
    row<stft>("stft", "x, frame, hop = 0, window = none, center = true, normalized = false"),
    row<istft>("istft",
               "x, frame, hop = 0, window = none, center = true, normalized = false, length = 0"),

    row<keccak_by_name>("keccak", "x, name = sha3_256, bytes = 0"),
    row<sha256>("sha256", "x"),
    row<content_hash>("content_hash", "x"),
};

}  // namespace

std::span<const Function> algebra_functions() { return kFunctions; }

}  // namespace weft::c
