#include "weft/onnx/leaves.h"

#include <algorithm>

namespace weft::onnx {

namespace {

/// Inputs that say how an operator works, or are statistics that others keep.
struct Setting {
  const char* op;
  size_t first, last;
};
constexpr Setting kSettings[] = {
    {"BatchNormalization", 3, 4},
    {"Clip", 1, 2},
    {"Dropout", 1, 2},
    {"OneHot", 1, 2},
    {"Pad", 1, 3},
    {"Range", 0, 2},
    {"Resize", 1, 3},
    {"Upsample", 1, 1},
    {"QuantizeLinear", 1, 2},
    {"DequantizeLinear", 1, 2},
};

bool is_setting(const Node& node, size_t input) {
  return std::ranges::any_of(kSettings, [&](const Setting& s) {
    return node.op == s.op && input >= s.first && input <= s.last;
  });
}

}  // namespace

std::vector<NamedTensor> leaves_of(const Graph& graph) {
  std::vector<NamedTensor> leaves;
  for (const ConstantData& t : graph.initialisers) {
    const DType d = t.array.dtype;
    if (t.type == ElementType::String || !is_float(d) || bits(d) < 16) continue;
    if (element_type_of(d) != t.type) continue;
    leaves.push_back({t.name, tensor_of(t.array).contiguous().realize()});
  }
  return leaves;
}

bool is_trained(const Graph& graph, const NamedTensor& leaf) {
  if (leaf.tensor.ndim() == 0) return false;
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == leaf.name && !is_setting(node, i)) return true;
  return false;
}

}  // namespace weft::onnx
