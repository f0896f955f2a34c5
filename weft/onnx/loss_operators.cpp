// Losses, and the optimisers of ai.onnx.preview.training.
#include <cmath>

#include "weft/onnx/host.h"
#include "weft/onnx/operators.h"
#include "weft/tensor/losses.h"

namespace weft::onnx {
namespace {

ClassLossOptions options_of(const NodeCall& call) {
  ClassLossOptions options;
  options.ignore_index.reset();
  if (call.has("ignore_index")) options.ignore_index = call.integer("ignore_index");
  if (call.has(2)) options.weight = call.tensor(2);
  const std::string reduction = call.text("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    call.refuse("reduction {}: none, mean or sum", quoted_name(reduction));
  options.reduction = reduction == "mean"  ? Reduction::Mean
                      : reduction == "sum" ? Reduction::Sum
                                           : Reduction::None;
  return options;
}

Values negative_log_likelihood(const NodeCall& call) {
  return {nll_loss(call.tensor(0), call.tensor(1), options_of(call))};
}

Values softmax_cross_entropy(const NodeCall& call) {
  const Tensor log_prob = call.tensor(0).log_softmax(1);
  return {nll_loss(log_prob, call.tensor(1), options_of(call)), log_prob};
}

// ---- optimisers: R is the rate, T how many updates there were; then X..., G..., and the states of
// each, as many of each kind. Formulas: the operators' documentation.

struct Update {
  Tensor x, gradient;  // gradient: with the penalty of large x
  std::vector<Tensor> states;
};

std::vector<Update> updates(const NodeCall& call, size_t states) {
  const size_t kinds = 2 + states;
  if (call.inputs() < 2 + kinds || (call.inputs() - 2) % kinds != 0)
    call.refuse("{} inputs: a rate, a count, and {} tensors for each that is optimised",
                call.inputs(), kinds);
  const size_t count = (call.inputs() - 2) / kinds;
  const double penalty = call.number("norm_coefficient", 0);
  std::vector<Update> all;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& x = call.tensor(2 + i);
    Update u{x, penalty * x + call.tensor(2 + count + i), {}};
    for (size_t s = 0; s < states; ++s) u.states.push_back(call.tensor(2 + (2 + s) * count + i));
    all.push_back(std::move(u));
  }
  return all;
}

// First all new x, then all new first states, ...
Values in_groups(const std::vector<std::vector<Tensor>>& of_each) {
  Values all;
  for (size_t kind = 0; kind < of_each[0].size(); ++kind)
    for (const auto& tensors : of_each) all.emplace_back(tensors[kind]);
  return all;
}

Tensor as(const Tensor& like, const Tensor& number) { return number.cast(like.dtype()); }

Values adagrad(const NodeCall& call) {
  const double decay = call.number("decay_factor", 0), epsilon = call.number("epsilon", 0);
  const Tensor& count = call.tensor(1);
  std::vector<std::vector<Tensor>> all;
  for (const Update& u : updates(call, 1)) {
    const Tensor rate = as(u.x, call.tensor(0)) / (1 + as(u.x, count) * decay);
    const Tensor sum = u.states[0] + u.gradient * u.gradient;
    all.push_back({u.x - rate * u.gradient / (sum.sqrt() + epsilon), sum});
  }
  return in_groups(all);
}

Values adam(const NodeCall& call) {
  const double alpha = call.number("alpha", 0.9), beta = call.number("beta", 0.999);
  const double epsilon = call.number("epsilon", 0);
  const double after = call.number("norm_coefficient_post", 0);
  std::vector<std::vector<Tensor>> all;
  for (const Update& u : updates(call, 2)) {
    const Tensor count = as(u.x, call.tensor(1)), rate = as(u.x, call.tensor(0));
    const Tensor mean = alpha * u.states[0] + (1 - alpha) * u.gradient;
    const Tensor square = beta * u.states[1] + (1 - beta) * u.gradient * u.gradient;
    const Tensor power_a = (count * std::log(alpha)).exp(),
                 power_b = (count * std::log(beta)).exp();
    const Tensor corrected = rate * (1 - power_b).sqrt() / (1 - power_a);
    const Tensor step = (count > 0).where(corrected, rate) * mean / (square.sqrt() + epsilon);
    all.push_back({(1 - after) * (u.x - step), mean, square});
  }
  return in_groups(all);
}

Values momentum(const NodeCall& call) {
  const double alpha = call.number("alpha"), beta = call.number("beta");
  const std::string mode = call.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    call.refuse("mode {}: standard or nesterov", quoted_name(mode));
  std::vector<std::vector<Tensor>> all;
  for (const Update& u : updates(call, 1)) {
    const Tensor rate = as(u.x, call.tensor(0));
    const Tensor share = (call.tensor(1) > 0).where(Tensor(beta), Tensor(1.0)).cast(u.x.dtype());
    const Tensor velocity = alpha * u.states[0] + share * u.gradient;
    const Tensor step = mode == "standard" ? velocity : u.gradient + alpha * velocity;
    all.push_back({u.x - rate * step, velocity});
  }
  return in_groups(all);
}

// Of y with respect to the first inputs, which are the tensors that xs names.
Values gradient(const NodeCall& call) {
  const std::vector<std::string> names = call.texts("xs");
  if (names.empty() || names.size() > call.inputs())
    call.refuse("xs has {} names for {} inputs: one for each that is differentiated", names.size(),
                call.inputs());
  std::vector<Tensor> targets;
  for (size_t i = 0; i < names.size(); ++i) {
    if (call.node().inputs[i] != names[i])
      call.refuse("input {} is {}: only gradients at the values of xs ({}) are supported", i,
                  quoted_name(call.node().inputs[i]), quoted_name(names[i]));
    targets.push_back(call.tensor(i));
  }
  const Tensor& y = call.named(call.text("y", "")).tensor();
  const Tensor ones = Tensor::ones(y.dims(), y.dtype());
  Values results;
  for (const Tensor& slope : y.gradient(targets, ones)) results.emplace_back(slope);
  return results;
}

}  // namespace

std::span<const Operator> loss_operators() {
  static constexpr Operator kRows[] = {
      {kTraining, "Adagrad", 1, adagrad},
      {kTraining, "Adam", 1, adam},
      {kTraining, "Gradient", 1, gradient},
      {kTraining, "Momentum", 1, momentum},
      {kOnnx, "NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
      {kOnnx, "SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
  };
  return kRows;
}

}  // namespace weft::onnx
