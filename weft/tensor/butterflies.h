// Fourier transforms of few numbers, each of which is a tensor, as sums and differences of them.
#pragma once

#include "weft/tensor/complex.h"

namespace weft::fft {

using Numbers = std::vector<Complex>;

/// The sums of x[t] exp(sign 2 pi i k t / n), a prime factor of n after the other (Cooley and Tukey
/// 1965). Numbers without imaginary parts are real.
Numbers transform_of(const Numbers& x, int sign);

}  // namespace weft::fft
