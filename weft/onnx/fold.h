// Shape arithmetic on the host: what is known of sizes stays known, and compiles no kernel.
#pragma once

#include <optional>

#include "weft/onnx/call.h"

namespace weft::onnx {

/// What the node gives where its inputs are known and few (Value::integers(), small constants) and
/// its operator is one that shapes are computed with. Symbolic sizes survive arithmetic.
std::optional<Values> folded(const NodeCall& call);

}  // namespace weft::onnx
