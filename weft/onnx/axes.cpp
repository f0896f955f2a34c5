#include "weft/onnx/axes.h"

#include "weft/tensor/tables.h"

namespace weft::onnx {

Axes axes_from(int64_t first, size_t rank) {
  Axes axes;
  for (int64_t i = first; i < static_cast<int64_t>(rank); ++i) axes.push_back(i);
  return axes;
}

Tensor along_axis(const Tensor& v, size_t rank, int64_t axis) {
  Dims shape(std::vector<Dim>(rank, 1));
  shape[static_cast<size_t>(axis)] = v.dims().product();
  return v.reshape(shape);
}

Tensor counted(const Dim& count, size_t rank, int64_t axis, DType dtype) {
  return along_axis(Tensor::arange(count, dtype), rank, axis);
}

DType wide(DType dtype) { return is_narrow_float(dtype) ? DType::F32 : dtype; }

DType wide_float(DType dtype) {
  if (is_float(dtype)) return wide(dtype);
  return bits(dtype) < 32 ? DType::F32 : DType::F64;
}

Tensor table(const std::vector<double>& elements, const Dims& shape, const Tensor& like) {
  return constant_table(elements, shape, like);
}

Tensor table(const std::vector<int32_t>& elements, const Dims& shape, const Tensor& like) {
  return constant_table(elements, shape, like);
}

}  // namespace weft::onnx
