// For how many iterations of a range addresses stay the same, what they are looked up by included.
#pragma once
#include "weft/optimize/kernel_info.h"

namespace weft::optimize {

/// Ranges along which something is looked up by data.
RangeMask looked_up(const KernelInfo& info);

/// Whether data says where it is.
bool looks_up(const Access& access);
/// The most elements that are there, whatever ranges say.
int64_t buffer_size(const Access& access);

/// By access, for so many iterations in a row of `range` at least; 0 where it does not depend on
/// it.
std::vector<int64_t> steady_iterations(const KernelInfo& info, size_t range);

}  // namespace weft::optimize
