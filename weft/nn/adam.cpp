#include "weft/nn/adam.h"

#include <cmath>

namespace weft::nn {

Adam::Adam(std::vector<Tensor> params, const AdamOptions& options, CallSite at)
    : Optimizer(std::move(params), options.lr, options.state_dtype, at), options_(options) {
  const CallSiteScope site(at);
  check_option("Adam", "beta1", options.beta1, 1);
  check_option("Adam", "beta2", options.beta2, 1);
  check_option("Adam", "eps", options.eps);
  check_option("Adam", "weight_decay", options.weight_decay);
  m_ = beside_params("m");
  v_ = beside_params("v");
  if (options.amsgrad) largest_ = beside_params("largest_v");
  beta1_power_ = scalar("beta1_power", 1);
  beta2_power_ = scalar("beta2_power", 1);
}

void Adam::begin_step() {
  write(beta1_power_, read(beta1_power_) * options_.beta1);
  write(beta2_power_, read(beta2_power_) * options_.beta2);
}

Tensor Adam::change(size_t i, const Tensor& p, const Tensor& gradient) {
  const bool decays = options_.weight_decay != 0;
  Tensor g = gradient;
  if (decays && !options_.decoupled) g = g + p * options_.weight_decay;
  const Tensor m = write(m_, i, read(m_, i) * options_.beta1 + g * (1 - options_.beta1));
  Tensor v = write(v_, i, read(v_, i) * options_.beta2 + g * g * (1 - options_.beta2));
  if (options_.amsgrad) v = write(largest_, i, read(largest_, i).maximum(v));
  Tensor change = direction(g, m, v);
  if (decays && options_.decoupled) change = change + p * options_.weight_decay;
  if (!options_.layerwise) return lr_ * change;
  const Tensor ratio = trust_ratio(p.square().sum().sqrt(), change.square().sum().sqrt());
  return lr_ * ratio * change;
}

Tensor Adam::root(const Tensor& v) const {
  return (v / (1 - read(beta2_power_))).sqrt() + options_.eps;
}

Tensor Adam::direction(const Tensor&, const Tensor& m, const Tensor& v) {
  return m / (1 - read(beta1_power_)) / root(v);
}

Adam adamw(std::vector<Tensor> params, AdamOptions options, CallSite at) {
  options.decoupled = true;
  return Adam(std::move(params), options, at);
}

Adam lamb(std::vector<Tensor> params, AdamOptions options, CallSite at) {
  options.layerwise = options.decoupled = true;
  return Adam(std::move(params), options, at);
}

NAdam::NAdam(std::vector<Tensor> params, const AdamOptions& options, double momentum_decay,
             CallSite at)
    : Adam(std::move(params), options, at), momentum_decay_(momentum_decay) {
  const CallSiteScope site(at);
  check_option("NAdam", "momentum_decay", momentum_decay);
  steps_ = scalar("steps", 0);
  product_ = scalar("momentum_product", 1);
}

// beta1 (1 - 0.96^(step * decay) / 2): the paper's warm-up.
Tensor NAdam::momentum(const Tensor& step) const {
  return options_.beta1 * (1 - 0.5 * (step * (momentum_decay_ * std::log2(0.96))).exp2());
}

void NAdam::begin_step() {
  Adam::begin_step();
  const Tensor step = write(steps_, read(steps_) + 1);
  write(product_, read(product_) * momentum(step));
}

Tensor NAdam::direction(const Tensor& g, const Tensor& m, const Tensor& v) {
  const Tensor product = read(product_);
  const Tensor now = momentum(read(steps_)), next = momentum(read(steps_) + 1);
  const Tensor mean = g * ((1 - now) / (1 - product)) + m * (next / (1 - product * next));
  return mean / root(v);
}

RAdam::RAdam(std::vector<Tensor> params, const AdamOptions& options, CallSite at)
    : Adam(std::move(params), options, at) {
  const CallSiteScope site(at);
  steps_ = scalar("steps", 0);
  rectification_ = scalar("rectification", 0);
}

// rho = rho_max - 2 t beta2^t / (1 - beta2^t), the length of the average so far, by expm1 because
// in f32 the first steps' 1 - beta2^t has few digits.
void RAdam::begin_step() {
  Adam::begin_step();
  const Tensor step = write(steps_, read(steps_) + 1);
  const double most = 2 / (1 - options_.beta2) - 1;
  const Tensor rho = most - 2 * step / (step * -std::log(options_.beta2)).expm1();
  const Tensor known = rho > 5;
  const Tensor used = known.where(rho, 6);
  const double scale = most / ((most - 4) * (most - 2));
  const Tensor factor = ((used - 4) * (used - 2) / used * scale).sqrt();
  write(rectification_, known.where(factor, 0));
}

Tensor RAdam::direction(const Tensor&, const Tensor& m, const Tensor& v) {
  const Tensor mean = m / (1 - read(beta1_power_));
  const Tensor factor = read(rectification_);
  // eps beside sqrt(v), not beside the corrected root, as in PyTorch.
  const Tensor root = (v.sqrt() + options_.eps) / (1 - read(beta2_power_)).sqrt();
  return mean * (factor > 0).where(factor / root, 1);
}

}  // namespace weft::nn
