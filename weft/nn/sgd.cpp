#include "weft/nn/sgd.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/tensor/linalg.h"

namespace weft::nn {

namespace {

Tensor norm(const Tensor& x) { return x.square().sum().sqrt(); }

}  // namespace

SGD::SGD(std::vector<Tensor> params, const SgdOptions& options, CallSite at)
    : Optimizer(std::move(params), options.lr, options.state_dtype, at), options_(options) {
  const CallSiteScope site(at);
  check_option("SGD", "momentum", options.momentum);
  check_option("SGD", "weight_decay", options.weight_decay);
  check_option("SGD", "trust", options.trust);
  if (options.nesterov && options.momentum == 0) {
    fail("SGD", "nesterov needs a momentum above 0");
  }
  if (options.momentum != 0) velocity_ = beside_params("velocity");
}

Tensor SGD::rate(const Tensor& p, const Tensor& g) const {
  if (options_.trust == 0) return lr_;
  const Tensor p_norm = norm(p);
  return lr_ * trust_ratio(p_norm * options_.trust, norm(g) + p_norm * options_.weight_decay);
}

Tensor SGD::change(size_t i, const Tensor& p, const Tensor& gradient) {
  const Tensor rate = this->rate(p, gradient);
  const Tensor decay = p * options_.weight_decay;
  const bool decays = options_.weight_decay != 0;
  Tensor g = decays && !options_.decoupled ? gradient + decay : gradient;
  if (options_.classic) g = rate * g;
  if (options_.momentum != 0) {
    const Tensor v = write(velocity_, i, read(velocity_, i) * options_.momentum + g);
    g = options_.nesterov ? g + v * options_.momentum : v;
  }
  if (!options_.classic) g = rate * g;
  return decays && options_.decoupled ? g + lr_ * decay : g;
}

SGD lars(std::vector<Tensor> params, SgdOptions options, CallSite at) {
  return SGD(std::move(params), options, at);
}

Muon::Muon(std::vector<Tensor> params, const MuonOptions& options, CallSite at)
    : Optimizer(std::move(params), options.lr, options.state_dtype, at), options_(options) {
  const CallSiteScope site(at);
  check_option("Muon", "momentum", options.momentum);
  check_option("Muon", "weight_decay", options.weight_decay);
  for (const Tensor& p : this->params()) {
    if (p.ndim() >= 2) continue;
    fail("Muon", "a parameter of shape {} is no matrix; train it with adamw (OptimizerGroup)",
         p.dims().text());
  }
  velocity_ = beside_params("velocity");
}

Tensor Muon::change(size_t i, const Tensor& p, const Tensor& g) {
  const Tensor v = write(velocity_, i, read(velocity_, i) * options_.momentum + g);
  const Tensor matrix = (options_.nesterov ? g + v * options_.momentum : v).flatten(1);
  const auto rows = static_cast<double>(matrix.size(0));
  const auto columns = static_cast<double>(matrix.size(1));
  const double scales[] = {1, std::sqrt(std::max(1.0, rows / columns)),
                           0.2 * std::sqrt(std::max(rows, columns))};
  const Tensor orthogonal =
      linalg::newton_schulz(matrix, options_.steps, options_.coefficients).reshape(p.dims());
  return lr_ *
         (orthogonal * scales[static_cast<size_t>(options_.scale)] + p * options_.weight_decay);
}

}  // namespace weft::nn
