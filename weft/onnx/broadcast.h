// How operands of different shapes meet: before opset 7 by an attribute, since then as NumPy's.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

/// Sizes that stand at `axis` of a tensor of this rank; 1 elsewhere.
Dims aligned(const Dims& sizes, int64_t axis, size_t rank);
/// b as it meets a: before opset 7 the attribute `broadcast` lets its axes stand at the attribute
/// `axis` of a's, or at the last ones.
Tensor fitted(const NodeCall& call, const Tensor& a, const Tensor& b);

/// For each element of a broadcast of shapes, in row-major order, where it lies in one of them.
class BroadcastPlaces {
 public:
  BroadcastPlaces(const std::vector<int64_t>& shape, const std::vector<int64_t>& whole);
  size_t of(size_t flat) const;

 private:
  std::vector<int64_t> whole_, strides_;
};
/// What shapes of numbers broadcast to; an Error names two that do not fit.
std::vector<int64_t> broadcast_shape(const NodeCall& call,
                                     const std::vector<std::vector<int64_t>>& shapes);

Value equal_strings(const NodeCall& call);
Value where_strings(const NodeCall& call);

}  // namespace weft::onnx
