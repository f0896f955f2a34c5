// What the compiler does with tensors, as data.
#pragma once

#include <vector>

#include "weft/rewrite/pass_record.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// Every step that realize() of these would take from values to code for their devices: its time,
/// how much there was before and after it, how many rules fired and, with `texts`, the graphs. The
/// tensors stay as they are, and nothing comes from a cache; of values in memory there is nothing
/// to say.
std::vector<PassRecord> explain_passes(const std::vector<Tensor>& tensors, bool texts = false);

}  // namespace weft
