#include "weft/nn/gradients.h"

#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/tensor/reductions.h"

namespace weft::nn {

namespace {

void check_limit(const char* function, double most) {
  if (!(most > 0)) fail(function, "the limit must be above 0, not {}", most);
}

void change_gradients(const std::vector<Tensor>& params,
                      FunctionRef<Tensor(const Tensor& gradient)> changed) {
  for (Tensor p : params) {
    const Tensor gradient = p.grad();
    if (gradient.defined()) p.set_grad(changed(gradient.detach()).cast(gradient.dtype()));
  }
}

}  // namespace

std::vector<Tensor> gradients(const std::vector<Tensor>& params) {
  std::vector<Tensor> found;
  for (const Tensor& p : params) {
    if (const Tensor gradient = p.grad(); gradient.defined()) found.push_back(gradient);
  }
  return found;
}

Tensor gradient_norm(const std::vector<Tensor>& params, double p, CallSite at) {
  const CallSiteScope site(at);
  if (!(p > 0)) fail("gradient_norm", "the norm's p must be above 0, not {}", p);
  std::vector<Tensor> norms;
  for (const Tensor& gradient : gradients(params)) {
    norms.push_back(vector_norm(gradient.detach().cast(DType::F32), p));
  }
  return norms.empty() ? Tensor::zeros({}) : vector_norm(Tensor::stack(norms), p);
}

Tensor clip_gradient_norm(const std::vector<Tensor>& params, double most, double p, CallSite at) {
  const CallSiteScope site(at);
  check_limit("clip_gradient_norm", most);
  const Tensor norm = gradient_norm(params, p);
  // 1e-6 as in PyTorch, which matters where the norm is 0.
  const Tensor scale = (most / (norm + 1e-6)).minimum(1).contiguous();
  change_gradients(params, [&](const Tensor& gradient) { return gradient * scale; });
  return norm;
}

void clip_gradient_value(const std::vector<Tensor>& params, double most, CallSite at) {
  const CallSiteScope site(at);
  check_limit("clip_gradient_value", most);
  change_gradients(params, [&](const Tensor& gradient) { return gradient.clamp(-most, most); });
}

}  // namespace weft::nn
