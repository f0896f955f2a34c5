// Ranges whose index is taken apart: r // 56 and r % 56 become two ranges.
#pragma once
#include "weft/optimize/kernel_info.h"

namespace weft::optimize {

/// A range that accesses use by digits, as a flattened axis does: the sizes of its parts except the
/// outermost, from the outside in.
struct Digits {
  size_t range;
  SmallVector<int64_t, 4> sizes;
};
/// Parts shorter than vectors of `lanes` are left in a range along which something is looked up.
std::vector<Digits> find_digits(const KernelInfo& info, int64_t lanes);

}  // namespace weft::optimize
