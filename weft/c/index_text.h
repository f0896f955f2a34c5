// Indices as text: "1:5, ::-1, ..., new, 3, t".
#pragma once

#include <string_view>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::c {

/// Items between commas: a number, start:stop:step with any of them missing, "..." (all axes not
/// named), "new" (an axis of size 1), "t" (the next of `tensors`: positions, or a bool mask).
std::vector<Index> parse_index(std::string_view text, const std::vector<Tensor>& tensors);

}  // namespace weft::c
