// What of a model is trained.
#pragma once

#include <vector>

#include "weft/io/tensors.h"
#include "weft/onnx/model.h"

namespace weft::onnx {

/// The initialisers of floats, each in memory of its own.
std::vector<NamedTensor> leaves_of(const Graph& graph);
/// Whether one of them is a weight: more than a number, and read where a weight stands.
bool is_trained(const Graph& graph, const NamedTensor& leaf);

}  // namespace weft::onnx
