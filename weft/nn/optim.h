// Optimizers: each step of a parameter and its state is one kernel with several outputs.
//
//   nn::Adam adam(parameters(net), {.lr = 0.001});
//   adam.zero_grad();
//   loss.backward();
//   adam.step();
#pragma once

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
  // Only tensors with requires_grad() may be trained; no tensor may be listed twice.
  Optimizer(std::vector<Tensor> params, double lr, CallSite at);

  // Changes what all parameters share, before them.
  virtual void begin_step(std::vector<Tensor>& changed) = 0;
  // Writes the i-th parameter and its state.
  virtual void update(size_t i, const Tensor& gradient, std::vector<Tensor>& changed) = 0;
  virtual void visit_state(StateVisitor& v) = 0;

  // A zero tensor beside each parameter.
  std::vector<Tensor> zeros_like_params() const;

  std::vector<Tensor> params_;
  Tensor lr_;  // f32 (): a tensor so that captured steps read it anew
};

struct SgdOptions {
  double lr = 0.001, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

// v = momentum * v + g; p -= lr * v (with nesterov: lr * (g + momentum * v)). PyTorch's form, for
// g = gradient + weight_decay * p. Negative options, and nesterov without momentum, are Errors.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SgdOptions& options = {},
               CallSite at = CallSite::here());

 private:
  void begin_step(std::vector<Tensor>&) override {}
  void update(size_t i, const Tensor& gradient, std::vector<Tensor>& changed) override;
  void visit_state(StateVisitor& v) override;

  SgdOptions options_;
  std::vector<Tensor> velocity_;
};

struct AdamOptions {
  double lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // decay the parameter itself (AdamW), not its gradient
};

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr m' / (sqrt(v') + eps) for m'
// and v' divided by 1 - beta^steps. Kingma and Ba 2015; decoupled decay: Loshchilov and Hutter
// 2019. Moments are at least f32. betas outside [0, 1) and negative options are Errors.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {},
                CallSite at = CallSite::here());

 private:
  void begin_step(std::vector<Tensor>& changed) override;
  void update(size_t i, const Tensor& gradient, std::vector<Tensor>& changed) override;
  void visit_state(StateVisitor& v) override;

  AdamOptions options_;
  std::vector<Tensor> m_, v_;
  Tensor beta1_power_, beta2_power_;  // f32 (): beta^steps
};

// Adam with decoupled weight decay, 0.01 unless given.
Adam adamw(std::vector<Tensor> params, AdamOptions options = {.weight_decay = 0.01},
           CallSite at = CallSite::here());

}  // namespace weft::nn
