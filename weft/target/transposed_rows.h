// How many columns of rows may be transposed in registers, for who plans it and who does it.
#pragma once
#include <algorithm>

#include "weft/target/target.h"

namespace weft {

/// Columns side by side that are worth loading pieces of rows for, where a target permutes pairs:
/// a register then joins pieces of at most four rows.
inline int fewest_columns(const Target& target, DType dtype) {
  return std::max(2, target.lanes(dtype) / 4);
}

}  // namespace weft
