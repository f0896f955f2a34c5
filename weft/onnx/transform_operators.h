// Fourier transforms, windows of samples and mel filters: rows of product_operators.cpp.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

Values dft(const NodeCall& call);
Values stft(const NodeCall& call);
Values hann_window(const NodeCall& call);
Values hamming_window(const NodeCall& call);
Values blackman_window(const NodeCall& call);
Values mel_weight_matrix(const NodeCall& call);

}  // namespace weft::onnx
