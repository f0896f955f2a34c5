// Movements of dequantised values are those of the whole numbers that they came from: what comes
// behind them still knows these.
#pragma once

#include "weft/onnx/operators.h"

namespace weft::onnx {

/// What `op` gives where it only moves or chooses elements of input 0, which has one scale; none
/// where it does anything else.
std::optional<Values> moved_dequantised(const NodeCall& call, const Operator& op);

}  // namespace weft::onnx
