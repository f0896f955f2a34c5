// Adam and its kin: AdamW, LAMB, NAdam, RAdam.
#pragma once

#include "weft/nn/optimizer.h"

namespace weft::nn {

struct AdamOptions {
  double lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // decay the parameter itself (AdamW), not its gradient
  bool amsgrad = false;    // divide by the largest v so far (Reddi, Kale and Kumar 2018)
  bool layerwise = false;  // LAMB: times |p| / |change|, per parameter
  // Of moments; Void: at least f32. bf16 halves the memory, but its 8 bits cannot hold a v that
  // moves by less than 1/256 a step: lower beta2 to 0.99 with it.
  DType state_dtype = DType::Void;
};

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr m' / (sqrt(v') + eps) for m'
// and v' divided by 1 - beta^steps. Kingma and Ba 2015; decoupled decay: Loshchilov and Hutter
// 2019. betas outside [0, 1) and negative options are Errors.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {},
                CallSite at = CallSite::here());

 protected:
  void begin_step() override;
  Tensor change(size_t i, const Tensor& p, const Tensor& g) override;
  // What lr is multiplied by, from the new moments.
  virtual Tensor direction(const Tensor& g, const Tensor& m, const Tensor& v);
  Tensor root(const Tensor& v) const;  // sqrt(v') + eps

  AdamOptions options_;
  Slot m_, v_, largest_ = 0;
  Slot beta1_power_, beta2_power_;  // beta^steps
};

// Adam with decoupled weight decay, 0.01 unless given.
Adam adamw(std::vector<Tensor> params, AdamOptions options = {.weight_decay = 0.01},
           CallSite at = CallSite::here());
// You et al. 2020: AdamW whose every layer moves in proportion to its own norm.
Adam lamb(std::vector<Tensor> params, AdamOptions options = {.eps = 1e-6},
          CallSite at = CallSite::here());

// Adam with Nesterov's momentum, growing towards beta1 by momentum_decay (Dozat 2016).
class NAdam : public Adam {
 public:
  explicit NAdam(std::vector<Tensor> params, const AdamOptions& options = {.lr = 0.002},
                 double momentum_decay = 0.004, CallSite at = CallSite::here());

 private:
  void begin_step() override;
  Tensor direction(const Tensor& g, const Tensor& m, const Tensor& v) override;
  Tensor momentum(const Tensor& step) const;

  double momentum_decay_;
  Slot steps_, product_;  // of the momenta of all steps
};

// Adam that steps by m' alone until v is known well enough (Liu et al. 2020).
class RAdam : public Adam {
 public:
  explicit RAdam(std::vector<Tensor> params, const AdamOptions& options = {},
                 CallSite at = CallSite::here());

 private:
  void begin_step() override;
  Tensor direction(const Tensor& g, const Tensor& m, const Tensor& v) override;

  Slot steps_, rectification_;  // 0 where v is not used yet
};

}  // namespace weft::nn
