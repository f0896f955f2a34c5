#include "weft/nn/optimizer.h"

#include <unordered_set>

#include "weft/base/error.h"
#include "weft/tensor/training.h"

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

DType at_least_f32(DType dtype) { return bits(dtype) < 32 ? DType::F32 : dtype; }
Tensor at_least_f32(const Tensor& t) { return t.cast(at_least_f32(t.dtype())); }

/// `t` on the device that p is on.
Tensor beside(const Tensor& t, const Tensor& p) {
  return p.node()->device == 0 ? t : t.to(p.device());
}

[[noreturn]] void fail_without_gradients() {
  fail("optimizer", "no parameter has a gradient; call loss.backward() before step()");
}

}  // namespace

void check_option(const char* optimizer, const char* option, double value, double below) {
  if (!(value >= 0 && value < below)) {
    fail(optimizer, "{} must be in [0, {}), not {}", option, below, value);
  }
}

Tensor trust_ratio(const Tensor& p_norm, const Tensor& change_norm) {
  const Tensor both = (p_norm > 0) & (change_norm > 0);
  // In a buffer of its own: in the kernel of a small parameter it would be summed anew for every
  // element.
  return both.where(p_norm / both.where(change_norm, 1), 1).contiguous();
}

Optimizer::Optimizer(std::vector<Tensor> params, double lr, DType state_dtype, CallSite at)
    : params_(std::move(params)), state_dtype_(state_dtype) {
  const CallSiteScope site(at);
  check_params(params_);
  check_option("optimizer", "lr", lr);
  if (state_dtype != DType::Void && !is_float(state_dtype)) {
    fail_type("optimizer", "the state's dtype is {}; it must be a floating-point one",
              name(state_dtype));
  }
  lr_ = beside(own_constant({}, lr), params_[0]);
}

void Optimizer::zero_grad() {
  for (Tensor& p : params_) p.zero_grad();
}

std::vector<Tensor> Optimizer::updates() {
  changed_.clear();
  for (size_t i = 0; i < params_.size(); ++i) {
    Tensor& p = params_[i];
    const Tensor gradient = p.grad();
    if (!gradient.defined()) continue;
    if (changed_.empty()) begin_step();
    const Tensor value = at_least_f32(p.detach());
    p.assign(value - change(i, value, at_least_f32(gradient.detach())));
    changed_.push_back(p);
  }
  return std::exchange(changed_, {});
}

std::vector<Tensor> Optimizer::schedule_step(CallSite at) {
  const CallSiteScope site(at);
  std::vector<Tensor> changed = updates();
  if (changed.empty()) fail_without_gradients();
  return changed;
}

namespace {

/// The loss as well, which is computed on the way.
void realize_step(std::vector<Tensor> changed, CallSite at) {
  const std::vector<Tensor> losses = take_pending_losses(changed[0].context());
  changed.insert(changed.end(), losses.begin(), losses.end());
  realize(changed, at);
}

}  // namespace

void Optimizer::step(CallSite at) { realize_step(schedule_step(at), at); }

double Optimizer::lr() const { return lr_.item<double>(); }

void Optimizer::set_lr(double lr, CallSite at) {
  const CallSiteScope site(at);
  check_option("optimizer", "lr", lr);
  const float value = static_cast<float>(lr);
  lr_.copy_from(std::as_bytes(std::span(&value, 1)));
}

void Optimizer::visit(StateVisitor& v) {
  v("lr", lr_);
  for (State& state : state_) {
    if (state.is_scalar) {
      v(state.name, state.tensors[0]);
    } else {
      v(state.name, state.tensors);
    }
  }
}

Optimizer::Slot Optimizer::beside_params(std::string name, double start) {
  State state{std::move(name), {}, false};
  for (const Tensor& p : params_) {
    const DType dtype = state_dtype_ == DType::Void ? at_least_f32(p.dtype()) : state_dtype_;
    state.tensors.push_back(beside(own_constant(p.dims(), start, dtype), p));
  }
  state_.push_back(std::move(state));
  return state_.size() - 1;
}

Optimizer::Slot Optimizer::scalar(std::string name, double start) {
  state_.push_back({std::move(name), {beside(own_constant({}, start), params_[0])}, true});
  return state_.size() - 1;
}

Tensor Optimizer::read(Slot slot, size_t i) const { return at_least_f32(state_[slot].tensors[i]); }

Tensor Optimizer::write(Slot slot, size_t i, const Tensor& value) {
  Tensor& state = state_[slot].tensors[i];
  state.assign(value);
  changed_.push_back(state);
  return state.dtype() == value.dtype() ? state : value;
}

void OptimizerGroup::zero_grad() {
  for (const auto& optimizer : optimizers_) optimizer->zero_grad();
}

std::vector<Tensor> OptimizerGroup::schedule_step(CallSite at) {
  const CallSiteScope site(at);
  std::vector<Tensor> changed;
  for (const auto& optimizer : optimizers_) {
    const std::vector<Tensor> more = optimizer->updates();
    changed.insert(changed.end(), more.begin(), more.end());
  }
  if (changed.empty()) fail_without_gradients();
  return changed;
}

void OptimizerGroup::step(CallSite at) { realize_step(schedule_step(at), at); }

void OptimizerGroup::visit(StateVisitor& v) {
  for (size_t i = 0; i < optimizers_.size(); ++i) v(std::to_string(i), *optimizers_[i]);
}

std::vector<Tensor> OptimizerGroup::params() const {
  std::vector<Tensor> all;
  for (const auto& optimizer : optimizers_) {
    const std::vector<Tensor>& some = optimizer->params();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace weft::nn
