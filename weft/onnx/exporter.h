// Exporter: the nodes of a tensor graph become those of an ONNX graph. For rules, which are in
// export_*.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"
#include "weft/onnx/exported_graph.h"
#include "weft/tensor/tensor.h"

namespace weft {
class Context;
}  // namespace weft

namespace weft::onnx {

/// How a node is written: the nodes whose values that needs, and what writes it, given their names.
struct Emission {
  std::vector<NodeRef> needs;
  std::function<std::string(const Names&)> write;
};
using MaybeEmission = std::optional<Emission>;

class Exporter {
 public:
  struct Problem {
    std::string what;
    NodeRef node;
  };

  /// Variables by name: an input and an axis of it that has this size.
  struct Size {
    std::string input;
    int64_t axis;
  };

  Exporter(Context& in, weft::Graph& nodes, ExportedGraph& graph, int64_t version)
      : context(in), g(nodes), out(graph), opset(version) {}
  /// Inside of a node that `outer` writes.
  Exporter(Exporter& outer, ExportedGraph& graph);

  void name(NodeRef n, const std::string& name) { names_.set(n, name); }
  void name_state(NodeRef buffer, const std::string& name) { state_.set(buffer, name); }
  void name_size(const std::string& variable, Size size) { sizes_[variable] = std::move(size); }
  void count_uses(std::span<const NodeRef> roots);

  /// The name of n's value, written with all that it needs.
  std::string value(NodeRef n);
  const std::vector<Problem>& problems() const { return *problems_; }
  /// Fills the constants that were named; runs kernels, so nodes that nothing roots may go.
  void compute_constants();

  // ---- what rules ask
  /// n without what leaves its value as it is: detach, copies, functions with own gradients.
  NodeRef meaning(NodeRef n);
  bool used_once(NodeRef n) const;
  /// Whether it depends on no input, no size and no named state.
  bool is_foldable(NodeRef n);
  /// Sizes as i64 (n): a constant, or computed from the shapes of inputs.
  std::string sizes(std::span<const NodeRef> dims);
  /// As `target` of a Reshape: -1 for the only symbolic one.
  std::string reshaped(const std::string& x, std::span<const NodeRef> dims);
  /// For what has no operator: what the Error will say of n.
  Emission refuse(NodeRef n, std::string what);
  /// Names of all results of a node that has several; empty until they are written.
  Names& results_of(NodeRef tuple) { return results_[tuple]; }
  Tensor tensor(NodeRef n) const { return Tensor::from_node(n); }
  std::string cast(const std::string& x, DType to);

  Context& context;
  weft::Graph& g;
  ExportedGraph& out;
  const int64_t opset;

 private:
  enum Flags : uint8_t { kVaries = 1, kState = 2 };
  uint8_t flags(NodeRef n);
  uint8_t leaf_flags(NodeRef n) const;
  Emission emission(NodeRef n);
  std::string folded(NodeRef n);
  std::string size(NodeRef dim, int depth);

  NodeMap<std::string> names_, state_;
  NodeMap<Emission> emissions_;
  NodeMap<Names> results_;
  NodeMap<uint8_t> flags_;
  NodeMap<uint32_t> uses_;
  NodeMap<std::string> known_sizes_;
  std::map<std::string, Size> sizes_;
  std::vector<Problem> own_problems_, *problems_ = &own_problems_;
  using Folded = std::vector<std::pair<Tensor, std::string>>;
  Folded own_folded_, *folded_ = &own_folded_;
};

/// A rule says how it would write a node, or that it is for others.
using ExportRule = MaybeEmission (*)(Exporter&, NodeRef);
/// In the order in which they are asked: patterns, larger ones first, then the ops by themselves.
std::span<const ExportRule> export_products();    ///< MatMul, Gemm
std::span<const ExportRule> export_networks();    ///< Conv, pools
std::span<const ExportRule> export_transposed();  ///< ConvTranspose
std::span<const ExportRule> export_functions();   ///< Softmax, LayerNormalization, Relu, ...
std::span<const ExportRule> export_indexing();    ///< Gather, ScatterElements
std::span<const ExportRule> export_reductions();  ///< ReduceX
std::span<const ExportRule> export_loops();       ///< Scan, CumSum
std::span<const ExportRule> export_movements();
std::span<const ExportRule> export_elementwise();

/// n without the Expand on top, if there is one.
inline NodeRef unexpanded(NodeRef n) { return n->op == Op::Expand ? n->src(0) : n; }
/// The vector of which `repeated` has an element for each of the channels (axis 1) of `whole`; or
/// null.
NodeRef vector_of_channels(NodeRef whole, NodeRef repeated);
/// A rule for n as an operator of one input.
Emission unary(Exporter& e, const std::string& op, NodeRef x,
               std::vector<Attribute> attributes = {});
/// A fold over axes of a tensor; reduced axes may be kept with size 1.
struct Reduction {
  NodeRef x, node;
  Fold fold;
  std::vector<int64_t> axes;
  bool keepdims;
};
std::optional<Reduction> reduction_of(NodeRef n);
/// The number, of rank 0, that n repeats.
std::optional<double> repeated_number(NodeRef n);

}  // namespace weft::onnx
