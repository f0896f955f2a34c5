// GraphEdit: who reads what in a model's graph, and how it is changed.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "weft/onnx/model.h"

namespace weft::onnx {

/// One look at a graph; after an edit of names it is made again.
class GraphEdit {
 public:
  explicit GraphEdit(Graph& graph);

  /// How often nodes, outputs and graphs inside of nodes read a value.
  size_t uses(const std::string& name) const;
  /// The node that makes a value; null: an input or an initialiser.
  Node* producer(const std::string& name) const;
  /// An initialiser that no caller may replace; null: it is none.
  const ConstantData* constant(const std::string& name) const;
  bool is_output(const std::string& name) const { return outputs_.contains(name); }
  /// Whether a graph inside of a node reads it, which stays as it is.
  bool is_captured(const std::string& name) const { return captured_.contains(name); }

  /// Everybody who read `from` reads `to`; false, and nothing is done, where that cannot be: an
  /// output keeps its name, and graphs inside of nodes are not changed.
  bool redirect(const std::string& from, const std::string& to);
  /// An initialiser of this name; what had the name is given up by the caller.
  void add_constant(const std::string& name, ElementType type, HostArray array);
  std::string fresh(const std::string& name) const;

  Graph& graph;

 private:
  std::unordered_map<std::string, size_t> uses_;
  std::unordered_map<std::string, size_t> producers_, constants_;  // places in the graph
  std::unordered_set<std::string> outputs_, captured_, inputs_;
};

}  // namespace weft::onnx
