// SGD with momentum and its layer-wise form LARS; Muon, which orthogonalises the momentum.
#pragma once

#include "weft/nn/optimizer.h"

namespace weft::nn {

struct SgdOptions {
  double lr = 0.001, momentum = 0, weight_decay = 0;
  bool nesterov = false;
  bool classic = false;    // lr goes into the velocity, so that a change of lr comes in slowly
  bool decoupled = false;  // decay the parameter itself, not its gradient
  double trust = 0;        // LARS: lr times trust * |p| / (|g| + weight_decay * |p|), per parameter
  DType state_dtype = DType::Void;  // of velocities; Void: at least f32
};

// v = momentum * v + g; p -= lr * v (with nesterov: lr * (g + momentum * v)). PyTorch's form, for
// g = gradient + weight_decay * p. Negative options, and nesterov without momentum, are Errors.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SgdOptions& options = {},
               CallSite at = CallSite::here());

 private:
  Tensor change(size_t i, const Tensor& p, const Tensor& g) override;
  Tensor rate(const Tensor& p, const Tensor& g) const;

  SgdOptions options_;
  Slot velocity_ = 0;
};

// You, Gitman and Ginsburg 2017; the defaults are tinygrad's.
SGD lars(
    std::vector<Tensor> params,
    SgdOptions options = {.momentum = 0.9, .weight_decay = 1e-4, .classic = true, .trust = 0.001},
    CallSite at = CallSite::here());

struct MuonOptions {
  double lr = 0.001, momentum = 0.95, weight_decay = 0.1;
  bool nesterov = true;
  // What lr is multiplied by for a matrix of r rows and c columns.
  enum class Scale : uint8_t {
    None,       // 1
    Spectral,   // sqrt(max(1, r / c)), Jordan's
    LikeAdamW,  // 0.2 sqrt(max(r, c)), so that lr and weight_decay of AdamW serve (Liu et al. 2025)
  };
  Scale scale = Scale::Spectral;
  int64_t steps = 5;  // of linalg::newton_schulz, and its coefficients
  std::vector<double> coefficients = {3.4445, -4.775, 2.0315};
  DType state_dtype = DType::Void;  // of velocities; Void: at least f32
};

// v = momentum * v + g; p -= lr * (scale * newton_schulz(v) + weight_decay * p), with nesterov of
// g + momentum * v. Jordan et al. 2024. For the weights of hidden layers: parameters of one axis
// are an Error, those of more than two are matrices of all but the first axis. Train the rest, and
// the first and the last layer, with AdamW (OptimizerGroup).
class Muon : public Optimizer {
 public:
  explicit Muon(std::vector<Tensor> params, const MuonOptions& options = {},
                CallSite at = CallSite::here());

 private:
  Tensor change(size_t i, const Tensor& p, const Tensor& g) override;

  MuonOptions options_;
  Slot velocity_;
};

}  // namespace weft::nn
