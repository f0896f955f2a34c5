// Whether a view's chain has a stride form, as NumPy's views do.
#pragma once

#include <optional>

#include "weft/tensor/build.h"

namespace weft {

/// Bytes from one position to the next along each axis of `chain`, whose innermost source is a
/// row-major array. Nothing where no strides describe it.
std::optional<build::Extents> strides_of(Graph& g, NodeRef chain);

/// Strides of x's elements seen as `to`, or nothing where only a copy has that shape. With symbolic
/// sizes: only where the array is dense.
std::optional<build::Extents> reshaped_strides(Graph& g, NodeRef x,
                                               std::span<const NodeRef> strides,
                                               std::span<const NodeRef> to);

}  // namespace weft
