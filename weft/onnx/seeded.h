// Random numbers of a node's own seed.
#pragma once

#include "weft/base/function_ref.h"
#include "weft/onnx/call.h"

namespace weft::onnx {

/// What `draw` gives: with the attribute seed the same random numbers in every run, and in every
/// round of a loop; without it the next ones of the context's sequence.
Values with_seed(const NodeCall& call, FunctionRef<Values()> draw);

}  // namespace weft::onnx
