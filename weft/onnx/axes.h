// What operators of many families need of axes and dtypes.
#pragma once

#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::onnx {

/// first, ..., rank - 1.
Axes axes_from(int64_t first, size_t rank);
/// (n) as (1, ..., n, ..., 1), of this rank with n at this axis: it broadcasts along the others.
Tensor along_axis(const Tensor& v, size_t rank, int64_t axis);
/// 0, 1, ... along an axis of this rank.
Tensor counted(const Dim& count, size_t rank, int64_t axis, DType dtype = DType::I32);
/// What narrow floats are computed in: f32; the others in themselves.
DType wide(DType dtype);
/// The same for functions of real numbers: integers too, in f32 or, of 32 bits and more, in f64.
DType wide_float(DType dtype);
/// Elements known to the host on x's device; the same memory at every call.
Tensor table(const std::vector<double>& elements, const Dims& shape, const Tensor& like);
Tensor table(const std::vector<int32_t>& elements, const Dims& shape, const Tensor& like);

}  // namespace weft::onnx
