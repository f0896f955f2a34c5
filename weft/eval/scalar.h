// One elementwise op on scalars, from its definition in ops.def.
#pragma once
#include <span>

#include "weft/dtype/value.h"
#include "weft/graph/op.h"

namespace weft::eval {

/// `op` with result dtype `dtype`; throws InternalError for ops that are not elementwise.
Value apply(Op op, DType dtype, std::span<const Value> operands);

/// One step of a fold, and what an empty fold gives.
Value fold(Fold kind, Value a, Value b);
Value fold_identity(Fold kind, DType dtype);

}  // namespace weft::eval
