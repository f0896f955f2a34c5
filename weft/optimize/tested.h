// Where masks have to be tested: at the border of what they mask.
#pragma once
#include "weft/optimize/kernel_info.h"

namespace weft::optimize {

/// Of each range, the iterations in which some mask is not known to hold whatever other ranges are.
SmallVector<int64_t, 16> tested_iterations(const KernelInfo& info);

}  // namespace weft::optimize
