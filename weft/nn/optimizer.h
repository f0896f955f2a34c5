// Optimizer: what all optimizers share. Each step of a parameter and its state is one kernel with
// several outputs, unless a norm of the whole parameter comes in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/nn/state.h"

namespace weft::nn {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Forgets the gradients; backward() adds to them.
  void zero_grad();
  // Updates every parameter that has a gradient, and runs it. An Error where none has one.
  void step(CallSite = CallSite::here());
  // The same without running: realize these, together with the loss. Each is a tensor that changed.
  std::vector<Tensor> schedule_step(CallSite = CallSite::here());

  double lr() const;  // realizes
  // Takes effect in captured steps too. An Error below 0.
  void set_lr(double lr, CallSite = CallSite::here());

  // lr and the state of every parameter, by position: "m.0", "v.3". state_dict(adam) saves it.
  void visit(StateVisitor& v);
  const std::vector<Tensor>& params() const { return params_; }

 protected:
  // Only tensors with requires_grad() may be trained; no tensor may be listed twice. State beside
  // parameters is of state_dtype, a float; where that is Void, of theirs and at least f32: the
  // moments of f16 and bf16 parameters would underflow in their own dtype.
  Optimizer(std::vector<Tensor> params, double lr, DType state_dtype, CallSite at);

  // State, saved under `name`: a tensor beside each parameter, or one f32 (). Made in constructors.
  using Slot = size_t;
  Slot beside_params(std::string name, double start = 0);
  Slot scalar(std::string name, double start);
  // The state now, at least f32, and a new value for it, which is given back unrounded.
  Tensor read(Slot slot, size_t i = 0) const;
  Tensor write(Slot slot, size_t i, const Tensor& value);
  Tensor write(Slot slot, const Tensor& value) { return write(slot, 0, value); }

  // Writes the scalars of this step, before the parameters.
  virtual void begin_step() {}
  // What is subtracted from the i-th parameter, of value p and gradient g, both at least f32.
  // Writes its state.
  virtual Tensor change(size_t i, const Tensor& p, const Tensor& g) = 0;

  Tensor lr_;  // f32 (): a tensor so that captured steps read it anew

 private:
  friend class OptimizerGroup;
  struct State {
    std::string name;
    std::vector<Tensor> tensors;
    bool is_scalar;
  };
  std::vector<Tensor> updates();  // what changes; nothing where no parameter has a gradient

  std::vector<Tensor> params_;
  std::vector<State> state_;
  std::vector<Tensor> changed_;  // in the step that is being made
  DType state_dtype_;
};

// Several optimizers that step together, in one realize: parameters with options of their own.
//
//   OptimizerGroup group(Muon(matrices), adamw(others, {.lr = 3e-4}));
class OptimizerGroup {
 public:
  template <class... Optimizers>
  explicit OptimizerGroup(Optimizers... optimizers) {
    (optimizers_.push_back(std::make_unique<Optimizers>(std::move(optimizers))), ...);
  }

  // As Optimizer's, of all of them.
  void zero_grad();
  void step(CallSite = CallSite::here());
  std::vector<Tensor> schedule_step(CallSite = CallSite::here());
  void visit(StateVisitor& v);  // "0.lr", "1.m.0"
  std::vector<Tensor> params() const;

  size_t size() const { return optimizers_.size(); }
  Optimizer& operator[](size_t i) { return *optimizers_[i]; }

 private:
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

// An Error of `optimizer` that names the option unless 0 <= value < below.
void check_option(const char* optimizer, const char* option, double value, double below = 1e30);
// |p| / |change| for a layer's step, 1 where either is 0: LARS and LAMB. Shape ().
Tensor trust_ratio(const Tensor& p_norm, const Tensor& change_norm);

}  // namespace weft::nn
