// What stands behind each node of a model: an operator of the table, or a function of the model.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "weft/onnx/operators.h"

namespace weft::onnx {

struct LinkedNode {
  const Node* node = nullptr;
  int64_t opset = 0;                   ///< of the node's domain, where it stands
  const Operator* op = nullptr;        ///< or
  const Function* function = nullptr;  ///< neither: unsupported
};
/// Of a graph or of a function.
struct LinkedNodes {
  const Graph* graph = nullptr;
  const Function* function = nullptr;
  std::vector<LinkedNode> nodes;
};

class LinkedModel {
 public:
  /// The model must outlive it. An Error (code "onnx.depth") where functions call themselves, or
  /// stand for more than kMostNodes.
  explicit LinkedModel(const Model& model);
  static constexpr int64_t kMostNodes = 10'000'000;

  /// The main graph, those inside of it, functions and graphs inside of them.
  const std::vector<LinkedNodes>& lists() const { return lists_; }

 private:
  void add(const std::vector<Node>& nodes, const Graph* graph, const Function* function,
           const std::map<std::string, int64_t>& opsets);
  const Function* find_function(const Node& node) const;

  std::map<std::tuple<std::string, std::string, std::string>, const Function*> functions_;
  std::vector<LinkedNodes> lists_;
};

/// An Error (code "onnx.unsupported") that lists all operators that are missing, and where.
void require_supported(const LinkedModel& model);

}  // namespace weft::onnx
