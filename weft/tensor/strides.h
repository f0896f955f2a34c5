// Whether a chain of movement ops has a stride form, as NumPy's views do.
#pragma once

#include <optional>

#include "weft/tensor/build.h"

namespace weft {

/// Elements from one position to the next along each axis of `chain`, whose innermost source is a
/// row-major array. Nothing where no strides describe it.
std::optional<build::Extents> strides_of(Graph& g, NodeRef chain);

/// Strides of the same elements seen as `to`, or nothing where only a copy has that shape. With
/// symbolic sizes: only where the array is dense.
std::optional<build::Extents> reshaped_strides(Graph& g, std::span<const NodeRef> from,
                                               std::span<const NodeRef> strides,
                                               std::span<const NodeRef> to);

}  // namespace weft
