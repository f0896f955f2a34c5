#include "weft/nn/adaptive.h"

namespace weft::nn {

RMSprop::RMSprop(std::vector<Tensor> params, const RmsPropOptions& options, CallSite at)
    : Optimizer(std::move(params), options.lr, options.state_dtype, at), options_(options) {
  const CallSiteScope site(at);
  check_option("RMSprop", "alpha", options.alpha, 1);
  check_option("RMSprop", "eps", options.eps);
  check_option("RMSprop", "momentum", options.momentum);
  check_option("RMSprop", "weight_decay", options.weight_decay);
  square_ = beside_params("square");
  if (options.centered) mean_ = beside_params("mean");
  if (options.momentum != 0) velocity_ = beside_params("velocity");
}

Tensor RMSprop::change(size_t i, const Tensor& p, const Tensor& gradient) {
  Tensor g = gradient;
  if (options_.weight_decay != 0) g = g + p * options_.weight_decay;
  const double rest = 1 - options_.alpha;
  Tensor square = write(square_, i, read(square_, i) * options_.alpha + g * g * rest);
  if (options_.centered) {
    square = square - write(mean_, i, read(mean_, i) * options_.alpha + g * rest).square();
  }
  const Tensor change = g / (square.sqrt() + options_.eps);
  if (options_.momentum == 0) return lr_ * change;
  return lr_ * write(velocity_, i, read(velocity_, i) * options_.momentum + change);
}

Adagrad::Adagrad(std::vector<Tensor> params, const AdagradOptions& options, CallSite at)
    : Optimizer(std::move(params), options.lr, options.state_dtype, at), options_(options) {
  const CallSiteScope site(at);
  check_option("Adagrad", "lr_decay", options.lr_decay);
  check_option("Adagrad", "eps", options.eps);
  check_option("Adagrad", "weight_decay", options.weight_decay);
  check_option("Adagrad", "start", options.start);
  sum_ = beside_params("sum", options.start);
  steps_ = scalar("steps", 0);
}

void Adagrad::begin_step() { write(steps_, read(steps_) + 1); }

Tensor Adagrad::change(size_t i, const Tensor& p, const Tensor& gradient) {
  Tensor g = gradient;
  if (options_.weight_decay != 0) g = g + p * options_.weight_decay;
  const Tensor sum = write(sum_, i, read(sum_, i) + g * g);
  const Tensor rate = lr_ / (1 + (read(steps_) - 1) * options_.lr_decay);
  return rate * g / (sum.sqrt() + options_.eps);
}

}  // namespace weft::nn
