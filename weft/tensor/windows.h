// What convolutions and pools share: sliding windows over the last axes, and their padding.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::windows {

/// (before, after) for every axis of x from `padding`: one number, one per spatial axis, or pairs
/// from the last spatial axis to the first.
std::vector<DimPair> pad_amounts(const char* tag, const Tensor& x, const Ints& padding,
                                 size_t spatial);
/// Strides or dilations: one for every spatial axis, or as many as there are, each at least 1.
Ints steps(const char* tag, const char* what, const Ints& given, size_t spatial);
/// (..., spatial) to (..., outputs, kernel): windows over the last axes.
Tensor over(const char* tag, const Tensor& x, const Ints& kernel, const Ints& stride,
            const Ints& dilation);
/// -count, ..., -1.
Axes last_axes(size_t count);

}  // namespace weft::windows
