// What there is in a model: operators, parameters, the work of a run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/onnx/runner.h"

namespace weft::onnx {

struct ModelSummary {
  std::map<std::string, int64_t> operators;  ///< how many nodes; graphs inside graphs and functions too
  int64_t nodes = 0, parameters = 0, bytes = 0;  ///< of initialisers
  std::vector<std::string> unsupported;          ///< as unsupported_operators() says
};
ModelSummary summarise(const Model& model);

/// Floating-point operations of products and convolutions (a multiplication and an addition are
/// two) in a run with these inputs. Nodes that have to know data run.
int64_t product_flops(const Model& model, const NamedValues& inputs);

/// "float32 (N, 3, 224, 224)", "sequence of float32", "?".
std::string text(const DeclaredType& type);

}  // namespace weft::onnx
