// Constant arithmetic: what an elementwise op gives for constant operands, exactly as kernels
// compute it.
#pragma once
#include <optional>
#include <span>

#include "weft/dtype/value.h"
#include "weft/graph/op.h"

namespace weft {

/// The value of `op` on constants; nothing for ops whose kernels' expansions are not exact here
/// (exp2, log2, sin). f16 and bf16 compute in f32 and round once; integers wrap; see ops.def for
/// division by zero and shifts.
std::optional<Value> fold_constants(Op op, DType dtype, std::span<const Value> operands);

}  // namespace weft
