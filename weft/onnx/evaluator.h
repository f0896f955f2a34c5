// Evaluator: runs a model's graphs node after node, with the values around each.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/onnx/call.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {

/// One model, linked to the table of operators. Values are freed after their last use. Model-local
/// functions run as if their nodes stood in the place of the call. One call at a time.
class Evaluator {
 public:
  /// The model must outlive it. An Error (code "onnx.unsupported") that lists all operators that
  /// are missing with the nodes that need them; "onnx.depth" where functions call themselves.
  explicit Evaluator(const Model& model);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// The outputs of a graph of the model, for inputs in the order it declares them; where one is
  /// missing, its initialiser. A subgraph sees the values around the node that runs. Errors of
  /// nodes begin with the node's label().
  Values run(const Graph& graph, const Values& inputs);
  /// Of a graph of the model, other values for its initialisers, which may change between runs:
  /// nothing that depends on them is kept.
  void replace_constants(const Graph& graph, const std::map<std::string, Value>& values);
  /// What has this name where the running node is; null: nothing, or it is used no more.
  const Value* find(std::string_view name) const;
  /// Where an operator keeps something of this type for the node that runs; for a node that is made
  /// for one call only, an empty place.
  std::shared_ptr<const void>& kept(const void* type);

  /// Called after each node with what it was given and gave.
  using Observer =
      std::function<void(const Node& node, const Values& inputs, const Values& outputs)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// Whether a node needed elements that had to be computed first, since forget_reads().
  bool read_data() const { return read_data_; }
  void forget_reads() { read_data_ = false; }
  void note_read() { read_data_ = true; }

  /// Whether tensors that nodes of constants gave and nobody computed yet stay for the next run.
  /// A capture has to make them itself, to compute them once and use them in its own way.
  void keep_lazy(bool keep);

 private:
  struct Step;
  struct Plan;
  struct Scope;
  class Linker;

  void run_steps(Plan& plan, Scope& scope);
  Values run_step(Step& step, const Scope& scope);
  Values run_function(const Step& step, const Node& call, Values inputs);

  std::unordered_map<const void*, std::unique_ptr<Plan>> plans_;  // by Graph and Function
  Scope* scope_ = nullptr;                                        // of the node that runs
  int depth_ = 0;
  const Node* running_ = nullptr;  // a node of the model; null: one made for one call
  std::map<std::pair<const Node*, const void*>, std::shared_ptr<const void>> kept_;
  std::shared_ptr<const void> kept_for_once_;
  bool read_data_ = false;
  bool keeps_ = true;  // what nodes of constants gave: those constants are the model's own
  bool keeps_lazy_ = false;
  Observer observer_;
};

/// What the model needs and weft lacks, each with the nodes that need it: "Foo (com.acme, opset 1):
/// Foo node 'a', Foo node 'b' and 3 more". Empty: everything is there.
std::vector<std::string> unsupported_operators(const Model& model);

}  // namespace weft::onnx
