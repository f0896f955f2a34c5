// Products of matrices. Semantics: the ONNX operator specification.
#include <algorithm>
#include <array>

#include "weft/onnx/axes.h"
#include "weft/onnx/integer_products.h"
#include "weft/onnx/operators.h"
#include "weft/onnx/transform_operators.h"
#include "weft/tensor/einsum.h"
#include "weft/tensor/linalg.h"

namespace weft::onnx {

namespace {

Values matmul(const NodeCall& call) {
  if (const auto y = product_of_dequantised(call, false)) return {*y};
  return {call.tensor(0).matmul(call.tensor(1))};
}

/// alpha A B + beta C, of which C broadcasts.
Values gemm(const NodeCall& call) {
  const Tensor& a = call.tensor(0);
  const Tensor& b = call.tensor(1);
  if (a.ndim() != 2 || b.ndim() != 2)
    call.refuse("A {} and B {} must be matrices", a.dims().text(), b.dims().text());
  const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  const bool flip_a = call.integer("transA", 0) != 0, flip_b = call.integer("transB", 0) != 0;
  const auto of_bytes = flip_a ? std::nullopt : product_of_dequantised(call, flip_b);
  Tensor y = of_bytes ? *of_bytes : (flip_a ? a.T() : a).matmul(flip_b ? b.T() : b);
  if (alpha != 1) y = (y * alpha).cast(a.dtype());
  if (!call.has(2) || beta == 0) return {y};
  const Tensor& c = call.tensor(2);
  return {y + (beta == 1 ? c : (c * beta).cast(a.dtype()))};
}

Values einstein_sum(const NodeCall& call) {
  std::string formula = call.text("equation", "");
  std::erase(formula, ' ');
  const std::vector<Tensor> operands = call.tensors();
  return {einsum(formula, operands).cast(operands[0].dtype())};
}

Values determinant(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  return {linalg::det(x.cast(wide(x.dtype()))).cast(x.dtype())};
}

}  // namespace

std::span<const Operator> product_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "BlackmanWindow", 17, blackman_window},
      Operator{kOnnx, "DFT", 17, dft},
      Operator{kOnnx, "Det", 11, determinant},
      Operator{kOnnx, "Einsum", 12, einstein_sum},
      Operator{kOnnx, "Gemm", 1, gemm},
      Operator{kOnnx, "HammingWindow", 17, hamming_window},
      Operator{kOnnx, "HannWindow", 17, hann_window},
      Operator{kOnnx, "MatMul", 1, matmul},
      Operator{kOnnx, "MelWeightMatrix", 17, mel_weight_matrix},
      Operator{kOnnx, "STFT", 17, stft},
  };
  return kRows;
}

}  // namespace weft::onnx
