// OnnxRunner: a model as a function of named tensors, captured and replayed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/io/tensors.h"
#include "weft/onnx/value.h"

namespace weft::onnx {

/// Named inputs and outputs of a model.
using NamedValues = std::map<std::string, Value>;

/// A model, ready to run. The first call for inputs of given types and shapes captures what it
/// launches; later ones replay that. Sizes that the model only names are one capture for all: from
/// the first call on where whole numbers (text) come in, from the second size on elsewhere. A size
/// that comes often in a row is captured for itself. A model that needs values of its data to know
/// shapes (NonZero, If, Loop, ...) runs node by node in every call instead. Weights are used where
/// they lie in the mapped file. Sizes that are bound Variables stay symbolic. One call at a time.
///
///   OnnxRunner model("resnet50.onnx");
///   NamedValues out = model({{"data", Tensor::rand({1, 3, 224, 224})}});
///   std::vector<float> scores = out["scores"].tensor().to_vector<float>();
class OnnxRunner {
 public:
  /// Errors: those of read_onnx(), and "onnx.unsupported" with all operators that are missing.
  explicit OnnxRunner(const std::string& path);
  explicit OnnxRunner(Model model);
  ~OnnxRunner();
  OnnxRunner(OnnxRunner&&) noexcept;
  OnnxRunner& operator=(OnnxRunner&&) noexcept;

  const Model& model() const;
  /// What has to be given: the inputs that have no initialiser.
  std::vector<DeclaredValue> inputs() const;
  const std::vector<DeclaredValue>& outputs() const;

  /// All outputs, realized. An Error (code "onnx.input") for a name the model does not have, for
  /// one that is missing, for another element type, rank or size than declared, and for sizes of
  /// one name that differ.
  NamedValues operator()(const NamedValues& inputs);

  /// Inputs of the declared types and shapes, 0 where nothing else is said; of `sizes` where a size
  /// has that name, and 1 where it is unknown. Sequences, optionals and strings are empty ones.
  NamedValues empty_inputs(const std::map<std::string, int64_t>& sizes = {}) const;

  /// The model's tensors of floats by the names of its initialisers, in memory of their own: the
  /// file is never written to. They are leaves; while one of them has requires_grad() set, calls
  /// give outputs that are not computed yet, so that backward() works through the model, and
  /// nothing is captured: jit() of the step does that.
  std::vector<NamedTensor> state_dict();
  /// What of state_dict() is trained: no statistics, no numbers, nothing that says how an operator
  /// works (scales of a Resize). Their requires_grad() is set.
  ///   Adam optimizer(model.parameters());
  std::vector<Tensor> parameters();
  /// The model with the values that state_dict() has now: save_onnx("trained.onnx", m.trained()).
  Model trained() const;

  /// Of the last call: kernels of its replay; 0 where it ran node by node.
  size_t kernels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::onnx
