// Products with packed weights by their codes.
#pragma once

#include <optional>

#include "weft/tensor/tensor.h"

namespace weft {

/// x @ weight^T as by Factors::Q8 (packed.h), of any number of rows; nothing where the weight is
/// not what decode() gives, or where its shape or x's has no such product.
std::optional<Tensor> product_by_bytes(const Tensor& x, const Tensor& weight);

}  // namespace weft
