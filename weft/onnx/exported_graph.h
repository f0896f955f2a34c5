// ExportedGraph: an ONNX graph while it is written, node after node.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/dtype/value.h"
#include "weft/onnx/model.h"

namespace weft::onnx {

using Names = std::vector<std::string>;

Attribute attribute(std::string name, int64_t value);
Attribute attribute(std::string name, double value);
Attribute attribute(std::string name, const char* value);
Attribute attribute(std::string name, std::vector<int64_t> values);
Attribute attribute(std::string name, Graph value);

/// Nodes and constants with names that are met once in the whole model. Constants lie in the
/// outermost graph; equal small ones are one.
class ExportedGraph {
 public:
  ExportedGraph();
  /// Inside of a node of `outer`, which must outlive it.
  explicit ExportedGraph(ExportedGraph& outer);

  /// The names of a new node's results: "conv", "conv_1", ...
  Names nodes(const std::string& op, Names inputs, size_t outputs,
              std::vector<Attribute> attributes = {});
  std::string node(const std::string& op, Names inputs, std::vector<Attribute> attributes = {}) {
    return nodes(op, std::move(inputs), 1, std::move(attributes))[0];
  }
  /// One that no value has yet.
  std::string fresh(std::string name);

  std::string constant(HostArray array, std::string name = "constant");
  std::string scalar(DType dtype, double value) { return number(weft::Value::of(dtype, value)); }
  std::string number(weft::Value value);
  std::string ones(DType dtype, const std::vector<int64_t>& shape);
  /// A constant whose elements fill() gives later.
  std::string unfilled(std::string name, DType dtype);
  void fill(const std::string& name, HostArray array);
  std::string integers(const std::vector<int64_t>& values);  ///< i64, 1-D

  Graph& graph() { return graph_; }

 private:
  struct Shared;
  ExportedGraph& outermost() { return outer_ ? outer_->outermost() : *this; }

  ExportedGraph* outer_ = nullptr;
  std::shared_ptr<Shared> shared_;
  Graph graph_;
};

}  // namespace weft::onnx
