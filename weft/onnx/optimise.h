// Models made smaller: what changes nothing but the time they take.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/onnx/model.h"

namespace weft::onnx {

/// What was done, and how often: {"batch norms merged", 20}.
using Optimisations = std::vector<std::pair<std::string, int64_t>>;

/// On the model's own graph: nodes of constants become their results, Identity and Dropout go,
/// batch norms are merged into the convolutions before them, Transposes that undo each other go,
/// equal initialisers become one, and what nothing reads goes. Inputs, outputs and their names
/// stay; so do graphs inside of nodes, and what they read. The model gives what it gave, except for
/// the rounding of merged weights.
///   Optimisations done;
///   save_onnx("small.onnx", optimised(read_onnx("model.onnx"), &done));
Model optimised(Model model, Optimisations* done = nullptr);

}  // namespace weft::onnx
