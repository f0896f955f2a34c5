// Optimizers that divide by a root of squared gradients and keep no corrected moments.
#pragma once

#include "weft/nn/optimizer.h"

namespace weft::nn {

struct RmsPropOptions {
  double lr = 0.01, alpha = 0.99, eps = 1e-8, momentum = 0, weight_decay = 0;
  bool centered = false;            // divide by the standard deviation: subtract the squared mean
  DType state_dtype = DType::Void;  // Void: at least f32
};

// s = alpha s + (1 - alpha) g^2; p -= lr g / (sqrt(s) + eps), the quotient through a velocity where
// there is momentum. Tieleman and Hinton 2012, PyTorch's form.
class RMSprop : public Optimizer {
 public:
  explicit RMSprop(std::vector<Tensor> params, const RmsPropOptions& options = {},
                   CallSite at = CallSite::here());

 private:
  Tensor change(size_t i, const Tensor& p, const Tensor& g) override;

  RmsPropOptions options_;
  Slot square_, mean_ = 0, velocity_ = 0;
};

struct AdagradOptions {
  double lr = 0.01, lr_decay = 0, eps = 1e-10, weight_decay = 0;
  double start = 0;                 // of the sum
  DType state_dtype = DType::Void;  // Void: at least f32
};

// s += g^2; p -= lr / (1 + (steps - 1) lr_decay) * g / (sqrt(s) + eps). Duchi, Hazan and Singer
// 2011.
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& options = {},
                   CallSite at = CallSite::here());

 private:
  void begin_step() override;
  Tensor change(size_t i, const Tensor& p, const Tensor& g) override;

  AdagradOptions options_;
  Slot sum_, steps_;
};

}  // namespace weft::nn
