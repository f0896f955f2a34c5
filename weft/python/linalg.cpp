// Linear algebra and Fourier transforms: weft.linalg, weft.fft, and the methods tinygrad has.
#include "weft/tensor/linalg.h"

#include <nanobind/stl/vector.h>

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/tensor/fft.h"

namespace weft::python {

namespace {

nb::object decomposed(const linalg::SVD& s) { return nb::make_tuple(s.u, s.s, s.vt); }

nb::object lu(const Tensor& a) {
  const linalg::LU found = linalg::lu(a, CallSite());
  return nb::make_tuple(found.packed, found.rows, found.sign);
}

/// Functions of one matrix.
struct Row {
  const char* name;
  Tensor (*apply)(const Tensor&, CallSite);
  const char* doc;
};
constexpr Row kOfOne[] = {
    {"inv", linalg::inv, "The inverse; infinities or NaN where there is none."},
    {"det", linalg::det, "The determinant."},
    {"cholesky", linalg::cholesky,
     "Lower triangular l with l @ l.T = a, of which the lower triangle is read."},
    {"trace", linalg::trace, "The sum of the diagonal."},
};

void bind_solvers(nb::module_& m) {
  method(
      m, "solve", [](const Tensor& a, const Tensor& b) { return linalg::solve(a, b, CallSite()); },
      "a"_a, "b"_a, "x of a @ x = b.");
  method(
      m, "lstsq", [](const Tensor& a, const Tensor& b) { return linalg::lstsq(a, b, CallSite()); },
      "a"_a, "b"_a, "x of least |a @ x - b|, for a of full rank.");
  method(
      m, "solve_triangular",
      [](const Tensor& a, const Tensor& b, bool upper, bool unitriangular) {
        return linalg::triangular_solve(a, b, upper, unitriangular, CallSite());
      },
      "a"_a, "b"_a, nb::kw_only(), "upper"_a, "unitriangular"_a = false,
      "solve() for a triangular a, of which only that triangle is read.");
  method(m, "lu", lu, "a"_a, "(packed, rows, sign): Gaussian elimination with partial pivoting.");
  method(
      m, "slogdet", [](const Tensor& a) { return linalg::slogdet(a, CallSite()); }, "a"_a,
      "The determinant's sign, and the logarithm of its size.");
}

void bind_decompositions(nb::module_& m) {
  method(
      m, "qr", [](const Tensor& a, bool full) { return linalg::qr(a, full, CallSite()); }, "a"_a,
      "full"_a = false, "(q, r) by Householder reflections.");
  method(
      m, "svd",
      [](const Tensor& a, bool full) { return decomposed(linalg::svd(a, full, CallSite())); },
      "a"_a, "full_matrices"_a = true, "(u, s, vt): u @ diag(s) @ vt = a, s descending.");
  method(
      m, "eig", [](const Tensor& a) { return linalg::eig(a, CallSite()); }, "a"_a,
      "Eigenvalues (..., n, 2) and eigenvectors (..., n, n, 2) of square matrices: real and "
      "imaginary "
      "parts in the last axis.");
  method(
      m, "eigh", [](const Tensor& a) { return linalg::eigh(a, CallSite()); }, "a"_a,
      "Eigenvalues, ascending, and eigenvectors of symmetric matrices.");
  method(
      m, "pinv", [](const Tensor& a, double rcond) { return linalg::pinv(a, rcond, CallSite()); },
      "a"_a, "rcond"_a = 1e-6, "The Moore-Penrose inverse.");
  method(
      m, "matrix_power",
      [](const Tensor& a, int64_t n) { return linalg::matrix_power(a, n, CallSite()); }, "a"_a,
      "n"_a, "a @ a @ ... by squaring; negative powers of the inverse.");
}

// ---- Fourier transforms

fft::Norm norm_of(const std::string& name) {
  constexpr std::pair<std::string_view, fft::Norm> kNorms[] = {{"backward", fft::Norm::Backward},
                                                               {"ortho", fft::Norm::Ortho},
                                                               {"forward", fft::Norm::Forward}};
  for (const auto& [known, norm] : kNorms)
    if (known == name) return norm;
  fail("fft", "norm \"{}\": use \"backward\", \"ortho\" or \"forward\"", name);
}

using Transform = Tensor (*)(const Tensor&, int64_t, int64_t, fft::Norm, CallSite);

void bind_fft(nb::module_& m) {
  constexpr std::pair<const char*, Transform> kTransforms[] = {
      {"fft", fft::fft}, {"ifft", fft::ifft}, {"rfft", fft::rfft}, {"irfft", fft::irfft}};
  for (const auto& [name, transform] : kTransforms) {
    const Transform call = transform;
    method(
        m, name,
        [call](const Tensor& x, std::optional<int64_t> n, int64_t axis, const std::string& norm) {
          return call(x, n.value_or(0), axis, norm_of(norm), CallSite());
        },
        "x"_a, "n"_a = nb::none(), "axis"_a = -1, "norm"_a = "backward",
        "NumPy's transform. Complex numbers are a last axis of 2, which axes do not count.");
  }
}

void bind_fft_axes(nb::module_& m) {
  for (const bool inverse : {false, true})
    method(
        m, inverse ? "ifftn" : "fftn",
        [inverse](const Tensor& x, const Axes& axes, const std::string& norm) {
          return inverse ? fft::ifftn(x, axes, norm_of(norm), CallSite())
                         : fft::fftn(x, axes, norm_of(norm), CallSite());
        },
        "x"_a, "axes"_a = nb::none(), "norm"_a = "backward",
        "The transform over several axes, all where none is given.");
  method(m, "fftshift", plain(fft::fftshift), "x"_a, "axes"_a, "Frequency 0 in the middle.");
  method(m, "ifftshift", plain(fft::ifftshift), "x"_a, "axes"_a, "fftshift() undone.");
  method(
      m, "fftfreq", [](int64_t n, double d) { return fft::fftfreq(n, d, CallSite()); }, "n"_a,
      "d"_a = 1.0, "The frequencies of fft()'s values, for samples d apart.");
  method(
      m, "rfftfreq", [](int64_t n, double d) { return fft::rfftfreq(n, d, CallSite()); }, "n"_a,
      "d"_a = 1.0, "The frequencies of rfft()'s values.");
}

void bind_stft(nb::module_& m) {
  method(
      m, "hann_window",
      [](int64_t n, bool periodic) { return fft::hann_window(n, periodic, CallSite()); }, "n"_a,
      "periodic"_a = true, "1/2 - cos(2 pi t / n) / 2; symmetric with n - 1.");
  method(
      m, "hamming_window",
      [](int64_t n, bool periodic) { return fft::hamming_window(n, periodic, CallSite()); }, "n"_a,
      "periodic"_a = true, "0.54 - 0.46 cos(2 pi t / n).");
  method(
      m, "stft",
      [](const Tensor& x, int64_t n_fft, int64_t hop, const Tensor* window, bool center,
         bool normalized) {
        return fft::stft(x, n_fft, {hop, window ? *window : Tensor(), center, normalized},
                         CallSite());
      },
      "x"_a, "n_fft"_a, "hop_length"_a = 0, "window"_a = nb::none(), "center"_a = true,
      "normalized"_a = false,
      "Real (..., samples) to complex (..., n_fft / 2 + 1, frames, 2); hop_length 0 is a quarter "
      "of a frame.");
  method(
      m, "istft",
      [](const Tensor& x, int64_t n_fft, int64_t hop, const Tensor* window, bool center,
         bool normalized, int64_t length) {
        return fft::istft(x, n_fft, {hop, window ? *window : Tensor(), center, normalized}, length,
                          CallSite());
      },
      "x"_a, "n_fft"_a, "hop_length"_a = 0, "window"_a = nb::none(), "center"_a = true,
      "normalized"_a = false, "length"_a = 0,
      "The signal of least squared distance to these frames (Griffin and Lim 1984).");
}

}  // namespace

void bind_linalg(nb::module_& m, TensorClass& c) {
  nb::module_ algebra =
      m.def_submodule("linalg", "Linear algebra on matrices (..., rows, columns).");
  for (const Row& row : kOfOne) {
    const auto call = row.apply;
    method(
        algebra, row.name, [call](const Tensor& a) { return call(a, CallSite()); }, "a"_a, row.doc);
  }
  bind_solvers(algebra);
  bind_decompositions(algebra);
  nb::module_ transforms = m.def_submodule("fft", "Discrete Fourier transforms.");
  bind_fft(transforms);
  bind_fft_axes(transforms);
  bind_stft(transforms);
  method(
      c, "qr", [](const Tensor& a) { return linalg::qr(a, false, CallSite()); },
      "(q, r) by Householder reflections.");
  method(
      c, "svd",
      [](const Tensor& a, bool full) { return decomposed(linalg::svd(a, full, CallSite())); },
      "full_matrices"_a = true, "(u, s, vt): u @ diag(s) @ vt = this, s descending.");
  method(
      c, "newton_schulz",
      [](const Tensor& a, int64_t steps, const std::vector<double>& params, double eps) {
        return linalg::newton_schulz(a, steps, params, eps, CallSite());
      },
      "steps"_a = 5, "params"_a = nb::make_tuple(3.4445, -4.775, 2.0315), "eps"_a = 1e-7,
      "Towards the nearest orthogonal matrix (Muon: Jordan et al. 2024).");
}

}  // namespace weft::python
