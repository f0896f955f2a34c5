// The oracle: evaluates a tensor graph from the definitions in docs/design/ir.md, slowly, plainly.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/eval/array.h"
#include "weft/graph/node.h"

namespace weft::eval {

/// What a graph's leaves stand for.
struct Inputs {
  std::vector<Array> params;                 ///< by slot
  std::map<int64_t, Array> buffers;          ///< by buffer id
  std::map<std::string, int64_t> variables;  ///< by name; a Bind needs none
  std::map<int64_t, Array> inner = {};       ///< placeholders of the body that is evaluated
};

/// The values of `roots`. Arithmetic is pinned: f32 in float, f64 in double, f16 and bf16 each op
/// in f32 and rounded once; integers wrap; folds run over the reduced elements in row-major order;
/// exp2, log2 and sin are rounded from long double. Throws Error where an input is missing or does
/// not fit, InternalError where the graph is no valid tensor graph.
std::vector<Array> evaluate(std::span<const NodeRef> roots, const Inputs& inputs = {});
Array evaluate(NodeRef root, const Inputs& inputs = {});

}  // namespace weft::eval
