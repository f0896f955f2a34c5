// Values in other shapes, and sizes that nodes ask for.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

/// The same elements in row-major order; constants and strings stay what they are. An Error where
/// the numbers of elements are known to differ.
Value reshaped(const NodeCall& call, const Value& x, const Dims& dims);
/// Sizes where one may be -1, and 0 means that of x's axis unless it is a size.
Dims resolved_sizes(const NodeCall& call, const Dims& wanted, const Dims& of, bool zero_is_size);
/// Of which x's axes, in order; all of size 1 where none are given.
std::vector<int64_t> squeezed_axes(const NodeCall& call, const Dims& of);
Dims squeezed(const Dims& of, const std::vector<int64_t>& axes);
Dims unsqueezed(const NodeCall& call, const Dims& of);
Dims flattened(const NodeCall& call, const Dims& of);
/// One axis' part of Slice: begin, step, and how many.
struct SlicedAxis {
  Dim begin, end;
  int64_t axis = 0, step = 1;
};
std::vector<SlicedAxis> sliced_axes(const NodeCall& call, size_t rank);
/// [first, last) of Shape.
std::pair<size_t, size_t> shape_range(const NodeCall& call, size_t rank);

}  // namespace weft::onnx
