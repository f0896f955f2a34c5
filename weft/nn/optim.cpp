#include "weft/nn/optim.h"

#include <unordered_set>

#include "weft/base/error.h"

namespace weft::nn {

namespace {

void check_params(const std::vector<Tensor>& params) {
  if (params.empty()) {
    fail("optimizer", "there is nothing to train; pass parameters(model)");
  }
  std::unordered_set<const void*> seen;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].requires_grad()) {
      fail("optimizer",
           "parameter {} of shape {} does not require a gradient; call "
           "requires_grad_() on it or leave it out",
           i, params[i].dims().text());
    }
    if (!is_float(params[i].dtype())) {
      fail_type("optimizer", "parameter {} is {}; only floating-point tensors can be trained", i,
                name(params[i].dtype()));
    }
    if (!seen.insert(params[i].cell().get()).second) {
      fail("optimizer", "parameter {} is listed twice; it would be updated twice per step", i);
    }
  }
}

void check_range(const char* optimizer, const char* what, double value, double below) {
  if (!(value >= 0 && value < below)) {
    fail(optimizer, "{} must be in [0, {}), not {}", what, below, value);
  }
}

constexpr double kAnyLarge = 1e30;

}  // namespace

Optimizer::Optimizer(std::vector<Tensor> params, double lr, CallSite at)
    : params_(std::move(params)) {
  const CallSiteScope site(at);
  check_params(params_);
  check_range("optimizer", "lr", lr, kAnyLarge);
  lr_ = own_constant({}, lr);
}

void Optimizer::zero_grad() {
  for (Tensor& p : params_) p.zero_grad();
}

std::vector<Tensor> Optimizer::schedule_step(CallSite at) {
  const CallSiteScope site(at);
  std::vector<Tensor> changed;
  begin_step(changed);
  for (size_t i = 0; i < params_.size(); ++i) {
    const Tensor gradient = params_[i].grad();
    if (gradient.defined()) update(i, gradient.detach(), changed);
  }
  if (changed.empty()) {
    fail("optimizer", "no parameter has a gradient; call loss.backward() before step()");
  }
  return changed;
}

void Optimizer::step(CallSite at) { realize(schedule_step(at), at); }

double Optimizer::lr() const { return lr_.item<double>(); }

void Optimizer::set_lr(double lr, CallSite at) {
  const CallSiteScope site(at);
  check_range("optimizer", "lr", lr, kAnyLarge);
  const float value = static_cast<float>(lr);
  lr_.copy_from(std::as_bytes(std::span(&value, 1)));
}

void Optimizer::visit(StateVisitor& v) {
  v("lr", lr_);
  visit_state(v);
}

std::vector<Tensor> Optimizer::zeros_like_params() const {
  std::vector<Tensor> zeros;
  for (const Tensor& p : params_) {
    // Moments of f16 and bf16 parameters would underflow in their own dtype.
    const DType dtype = bits(p.dtype()) < 32 ? DType::F32 : p.dtype();
    zeros.push_back(own_constant(p.dims(), 0, dtype));
  }
  return zeros;
}

SGD::SGD(std::vector<Tensor> params, const SgdOptions& options, CallSite at)
    : Optimizer(std::move(params), options.lr, at), options_(options) {
  const CallSiteScope site(at);
  check_range("SGD", "momentum", options.momentum, kAnyLarge);
  check_range("SGD", "weight_decay", options.weight_decay, kAnyLarge);
  if (options.nesterov && options.momentum == 0) {
    fail("SGD", "nesterov needs a momentum above 0");
  }
  if (options.momentum != 0) velocity_ = zeros_like_params();
}

void SGD::update(size_t i, const Tensor& gradient, std::vector<Tensor>& changed) {
  Tensor& p = params_[i];
  Tensor g = gradient;
  if (options_.weight_decay != 0) g = g + p.detach() * options_.weight_decay;
  if (options_.momentum != 0) {
    Tensor& v = velocity_[i];
    v.assign(v * options_.momentum + g);
    changed.push_back(v);
    g = options_.nesterov ? g + v * options_.momentum : v;
  }
  p.assign(p.detach() - lr_ * g);
  changed.push_back(p);
}

void SGD::visit_state(StateVisitor& v) { v("velocity", velocity_); }

Adam::Adam(std::vector<Tensor> params, const AdamOptions& options, CallSite at)
    : Optimizer(std::move(params), options.lr, at), options_(options) {
  const CallSiteScope site(at);
  check_range("Adam", "beta1", options.beta1, 1);
  check_range("Adam", "beta2", options.beta2, 1);
  check_range("Adam", "eps", options.eps, kAnyLarge);
  check_range("Adam", "weight_decay", options.weight_decay, kAnyLarge);
  m_ = zeros_like_params();
  v_ = zeros_like_params();
  beta1_power_ = own_constant({}, 1);
  beta2_power_ = own_constant({}, 1);
}

void Adam::begin_step(std::vector<Tensor>& changed) {
  beta1_power_ *= options_.beta1;
  beta2_power_ *= options_.beta2;
  changed.push_back(beta1_power_);
  changed.push_back(beta2_power_);
}

void Adam::update(size_t i, const Tensor& gradient, std::vector<Tensor>& changed) {
  Tensor& p = params_[i];
  const Tensor old = p.detach();
  Tensor g = gradient;
  const bool decays = options_.weight_decay != 0;
  if (decays && !options_.decoupled) g = g + old * options_.weight_decay;
  m_[i].assign(m_[i] * options_.beta1 + g * (1 - options_.beta1));
  v_[i].assign(v_[i] * options_.beta2 + g * g * (1 - options_.beta2));
  const Tensor mean = m_[i] / (1 - beta1_power_);
  const Tensor root = (v_[i] / (1 - beta2_power_)).sqrt();
  Tensor change = mean / (root + options_.eps);
  if (decays && options_.decoupled) change = change + old * options_.weight_decay;
  p.assign(old - lr_ * change);
  changed.insert(changed.end(), {m_[i], v_[i], p});
}

void Adam::visit_state(StateVisitor& v) {
  v("m", m_);
  v("v", v_);
  v("beta1_power", beta1_power_);
  v("beta2_power", beta2_power_);
}

Adam adamw(std::vector<Tensor> params, AdamOptions options, CallSite at) {
  options.decoupled = true;
  return Adam(std::move(params), options, at);
}

}  // namespace weft::nn
