// Formulas over axis names: Einstein sums and einops' rearrange.
#pragma once

#include <string_view>

#include "weft/tensor/tensor.h"

namespace weft {

/// NumPy's einsum: einsum("ij,jk->ik", {a, b}). Letters name axes, "..." those that broadcast, a
/// letter twice in one operand takes its diagonal; without "->" the letters that occur once, in the
/// order of the alphabet, are the result's. Operands are multiplied from left to right, axes that
/// nothing needs any more summed at once. Sums as matmul does; in `dtype` where one is given.
Tensor einsum(std::string_view formula, const std::vector<Tensor>& operands,
              DType dtype = DType::Void, CallSite = CallSite::here());

using AxisSizes = std::vector<std::pair<std::string_view, int64_t>>;
/// einops' rearrange (Rogozhnikov 2022): rearrange(x, "b (h p) c -> b h (p c)", {{"p", 2}}). Words
/// name axes, parentheses merge them, 1 is an axis of size 1, "..." stands for the axes not named.
/// Sizes that do not follow from the shape are given.
Tensor rearrange(const Tensor& x, std::string_view formula, const AxisSizes& sizes = {},
                 CallSite = CallSite::here());

}  // namespace weft
