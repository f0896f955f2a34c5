// Inputs of a model beside what it declares.
#pragma once

#include "weft/onnx/runner.h"

namespace weft::onnx {

/// In the order of the graph's inputs; None where there is an initialiser instead. An Error (code
/// "onnx.input") as OnnxRunner says.
Values checked_inputs(const Graph& graph, const NamedValues& inputs);
/// Whether the graph has a value of its own for an input.
bool has_initialiser(const Graph& graph, std::string_view name);

}  // namespace weft::onnx
