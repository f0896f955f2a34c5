// What a program calls a tensor.
#pragma once

#include <string_view>

namespace weft {

class Tensor;

/// Recordings show the memory of `x` by this name; modules' state (nn/state.h) calls it for each
/// tensor, with names as "conv1.weight". Nothing for views.
void name_tensor(const Tensor& x, std::string_view name);

}  // namespace weft
