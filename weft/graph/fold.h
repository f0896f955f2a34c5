// Constant arithmetic: what an elementwise op gives for constant operands, exactly as kernels
// compute it.
#pragma once
#include <optional>
#include <span>

#include "weft/dtype/value.h"
#include "weft/graph/graph.h"

namespace weft {

/// The value of `op` on constants; nothing for ops whose kernels' expansions are not exact here
/// (exp2, log2, sin). f16 and bf16 compute in f32 and round once; integers wrap; see ops.def for
/// division by zero and shifts.
std::optional<Value> fold_constants(Op op, DType dtype, std::span<const Value> operands);

/// x with fold(x, y) == y.
Value fold_identity(Fold fold, DType dtype);

/// A reduction that needs no loop, as its loop would give it: `value` folded with the identity.
/// Sums start from +0, so a sum of nothing but -0 is +0; all other folds leave the value alone.
NodeRef folded_once(Graph& g, Fold fold, NodeRef value);

}  // namespace weft
