#include "weft/onnx/summary.h"

#include "weft/onnx/check_inputs.h"
#include "weft/onnx/evaluator.h"

namespace weft::onnx {

namespace {

void count_graph(const Graph& graph, ModelSummary& summary);

void count_nodes(const std::vector<Node>& nodes, ModelSummary& summary) {
  for (const Node& node : nodes) {
    ++summary.nodes;
    ++summary.operators[node.domain.empty() ? node.op : node.domain + "." + node.op];
    for (const Attribute& a : node.attributes)
      for (const auto& graph : a.graphs) count_graph(*graph, summary);
  }
}

void count_graph(const Graph& graph, ModelSummary& summary) {
  for (const ConstantData& t : graph.initialisers) {
    summary.parameters += checked_numel(t.shape).value_or(0);
    summary.bytes += static_cast<int64_t>(t.array.bytes.size());
  }
  count_nodes(graph.nodes, summary);
}

/// Multiplications that give one element of the result; 0 for what is no product.
double depth_of(const Node& node, const Values& inputs) {
  const auto sizes = [&](size_t i) { return inputs[i].dims(); };
  const auto last = [](const Dims& d) {
    return d.empty() ? 1.0 : static_cast<double>(d.back().max());
  };
  if (node.op == "MatMul" || node.op == "FusedMatMul") return last(sizes(0));
  if (node.op == "Gemm") {
    const Attribute* transposed = node.find("transA");
    const Dims a = sizes(0);
    return transposed && transposed->integer != 0 ? static_cast<double>(a[0].max()) : last(a);
  }
  if (node.op != "Conv" && node.op != "ConvTranspose") return 0;
  double each = 1;
  const Dims w = sizes(1);
  for (size_t i = 1; i < w.size(); ++i) each *= static_cast<double>(w[i].max());
  return each;
}

}  // namespace

ModelSummary summarise(const Model& model) {
  ModelSummary summary;
  count_graph(model.graph, summary);
  for (const Function& f : model.functions) count_nodes(f.nodes, summary);
  summary.unsupported = unsupported_operators(model);
  return summary;
}

int64_t product_flops(const Model& model, const NamedValues& inputs) {
  Evaluator evaluator(model);
  double flops = 0;
  evaluator.observe([&](const Node& node, const Values& in, const Values& out) {
    if (node.domain == kMl || out.empty() || out[0].kind() != Value::Kind::Tensor) return;
    const double each = depth_of(node, in);
    if (each == 0) return;
    // A transposed convolution spreads its input, any other gathers its output.
    const Value& counted = node.op == "ConvTranspose" ? in[0] : out[0];
    flops += 2 * each * static_cast<double>(counted.dims().product().max());
  });
  evaluator.run(model.graph, checked_inputs(model.graph, inputs));
  return static_cast<int64_t>(flops);
}

std::string text(const DeclaredType& type) {
  using Kind = DeclaredType::Kind;
  const std::string of = type.of ? text(*type.of) : "?";
  switch (type.kind) {
    case Kind::Unknown: return "?";
    case Kind::Sequence: return "sequence of " + of;
    case Kind::Optional: return "optional " + of;
    case Kind::Map: return strformat("map from {} to {}", name(type.element), of);
    default: break;
  }
  std::string all = type.kind == Kind::SparseTensor ? "sparse " : "";
  all += name(type.element);
  if (!type.shape) return all;
  all += " (";
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const DeclaredDim& d = (*type.shape)[i];
    const std::string size = d.size ? std::to_string(*d.size) : d.name.empty() ? "?" : d.name;
    all += (i == 0 ? "" : ", ") + size;
  }
  return all + (type.shape->size() == 1 ? ",)" : ")");
}

}  // namespace weft::onnx
