// Inputs of ONNX models as the command line names them.
#pragma once

#include <map>
#include <string>

#include "weft/app/commands.h"
#include "weft/onnx/runner.h"

namespace weft {

/// Sizes by name, of "batch=8".
std::map<std::string, int64_t> named_sizes(const OnnxOptions& options);
/// Those that are given as .npy files; random ones for the others.
onnx::NamedValues named_inputs(const onnx::OnnxRunner& runner, const OnnxOptions& options);

}  // namespace weft
