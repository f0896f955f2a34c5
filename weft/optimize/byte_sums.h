// How kernels that scale and sum sums of bytes are tiled: products with packed weights.
#pragma once

#include <optional>

#include "weft/optimize/tiling.h"

namespace weft::optimize {

/// Sums of bytes that are scaled and summed: rows get the same sums alone and among others, however
/// many a tile has.
bool scales_sums(const KernelInfo& info);

/// Ranges of packed words that are scaled one by one, in whole vectors, which take pieces of rows
/// as they lie.
RangeMask scaled_words(const KernelInfo& info, int64_t lanes);

struct ByteSums {
  Tiling tiling;
  int innermost = -1;  ///< the range of the rows
};
/// Lanes are words that are scaled one by one; or columns, where rows of words can be transposed in
/// registers. A tile has as many rows as registers hold.
std::optional<ByteSums> tile_byte_sums(const KernelInfo& info, const Target& target);

}  // namespace weft::optimize
