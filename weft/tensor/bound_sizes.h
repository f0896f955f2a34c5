// Tensors whose sizes are numbers as ones whose sizes are bound Variables, and back.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// x, computed, in the same memory with other sizes of the same values: a bound Variable where
/// there was a number, or a number in the place of an expression. No kernel runs, unless x is a
/// view or not computed yet. An Error where a size has another value, and within a capture.
///   with_sizes(ids, {n.bind(17), 2})   // ids is (17, 2)
Tensor with_sizes(const Tensor& x, const Dims& sizes, CallSite at = CallSite::here());

/// What sizes are for the values that their Variables are bound to.
Dims bound_sizes(const Dims& sizes);

}  // namespace weft
