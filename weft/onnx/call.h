// NodeCall: one node while it runs. Operators get everything through it, checked and typed, so that
// their own code is what the operator means.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/format.h"
#include "weft/base/function_ref.h"
#include "weft/onnx/value.h"

namespace weft::onnx {

class Evaluator;  // runs graphs; knows the values around a subgraph

class NodeCall {
 public:
  NodeCall(const Node& node, int64_t opset, Values inputs, Evaluator& evaluator);

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }  ///< of the node's domain

  // ---- inputs; an index past the end is an input that is not given
  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const;
  const Value& input(size_t i) const;    ///< any kind; an Error where it is not given
  const Tensor& tensor(size_t i) const;  ///< an Error where it is no tensor of numbers
  Tensor tensor_or(size_t i, const Tensor& other) const;  ///< `other` where it is not given
  std::vector<Tensor> tensors(size_t first = 0) const;    ///< all from `first` on
  /// Elements that have to be known now, such as axes and shapes: of constants and of shapes at
  /// once; of what is computed from the data by running it (an Error while a function is captured).
  std::vector<int64_t> ints(size_t i) const;
  int64_t integer(size_t i) const;  ///< of exactly one element
  Dims sizes(size_t i) const;       ///< as ints(); symbolic where they are
  std::vector<double> numbers(size_t i) const;
  double number(size_t i) const;
  HostArray array(size_t i) const;  ///< all elements, now
  const std::vector<std::string>& texts(size_t i) const;
  const std::vector<Value>& sequence(size_t i) const;

  // ---- attributes; an Error where one is of another type
  bool has(std::string_view attribute) const;
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  int64_t integer(std::string_view attribute) const;  ///< an Error where it is missing; so below
  double number(std::string_view attribute, double otherwise) const;
  double number(std::string_view attribute) const;
  std::string text(std::string_view attribute, std::string_view otherwise) const;
  std::vector<int64_t> ints(std::string_view attribute, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> numbers(std::string_view attribute, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view attribute) const;
  Value constant(std::string_view attribute) const;  ///< of a tensor attribute
  const Graph& graph(std::string_view attribute) const;
  /// An input since opset `since`, an attribute before: axes of Squeeze, and so on. Empty: not
  /// given.
  std::vector<int64_t> ints_of(size_t i, std::string_view attribute, int64_t since) const;

  // ---- outputs
  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t i) const;

  /// Runs a subgraph, which sees the values around the node. As many inputs as it declares.
  Values run(const Graph& graph, Values inputs) const;
  /// The value of this name around the node: an Error where there is none.
  const Value& named(std::string_view name) const;
  /// The same node as another operator sees it: at this opset of its domain, with these inputs.
  NodeCall as(int64_t opset, Values inputs) const {
    return {node_, opset, std::move(inputs), evaluator_};
  }

  /// What `make` gives, made once for a node of the model and kept: tables out of attributes.
  template <class T>
  std::shared_ptr<const T> kept(FunctionRef<T()> make) const {
    std::shared_ptr<const void>& slot = kept_slot(&kKept<T>);
    if (!slot) slot = std::make_shared<const T>(make());
    return std::static_pointer_cast<const T>(slot);
  }

  /// Checks an axis of x against its rank; negative ones count from the end.
  int64_t axis(int64_t axis, size_t rank) const;

  /// An Error (code "onnx.node") that says which node of which model: what, both values, what to
  /// do.
  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<const A&...> format, const A&... args) const {
    refuse_text(strformat(format, args...));
  }
  [[noreturn]] void refuse_text(const std::string& problem) const;

 private:
  template <class T>
  static constexpr char kKept = 0;  // its address stands for T
  std::shared_ptr<const void>& kept_slot(const void* type) const;

  const Node& node_;
  int64_t opset_;
  Values inputs_;
  Evaluator& evaluator_;
};

}  // namespace weft::onnx
