// Products and convolutions of bytes less zero points, as sums of products of bytes: machines have
// instructions for those. Zero points are taken out of the sums:
//   (a - za) (b - zb) = a b - za sum(b) - sum(a) zb + k za zb
// where what depends on constants alone is computed once.
#pragma once

#include <optional>

#include "weft/onnx/spatial.h"

namespace weft::onnx {

/// x - zero. The zero point is undefined where there is none or it is known to be 0.
struct Centred {
  Tensor x, zero;
  std::optional<int64_t> known = 0;  ///< the zero point, where it is one known number
  /// Of a constant, small weight: what x - zero sums up to for each output channel.
  std::optional<std::vector<int32_t>> sums = {};

  /// Of values; the zero point may be None.
  static Centred of(const Value& x, const Value& zero);
  /// The same with sums where they are known. `channels`: the axis of output channels, -1: the
  /// last.
  static Centred of_weight(const Value& x, const Value& zero, int64_t channels);
};

/// The matrix product in i32. A zero point is one number, or one for each row of a or column of b.
Tensor product_of(const Centred& a, const Centred& b);

/// The node's convolution in i32 or as whole numbers in f32, (n, outputs..., channels); what is
/// padded counts as x's zero point. The weight's is one number or one for each output channel.
Tensor convolution_of(const NodeCall& call, const Centred& x, const Centred& weight,
                      const Spatial& s);

/// What MatMul gives for inputs 0 and 1, with input 1 transposed or not, where both were
/// dequantised from bytes: the sums scaled in f32. None where they were not.
std::optional<Tensor> product_of_dequantised(const NodeCall& call, bool transposed);
/// The same of Conv.
std::optional<Tensor> convolution_of_dequantised(const NodeCall& call, const Spatial& s);

}  // namespace weft::onnx
