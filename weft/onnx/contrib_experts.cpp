// com.microsoft: MoE, a mixture of experts (Shazeer et al. 2017). Every expert sees every token,
// and those that were not chosen count with weight 0: sizes do not depend on data.
#include "weft/onnx/contrib.h"
#include "weft/onnx/host.h"

namespace weft::onnx {
namespace {

// Of tokens (experts, tokens, in) with weights (experts, out, in).
Tensor expert_product(const NodeCall& call, const Tensor& x, size_t weight, size_t bias) {
  const Tensor y = x.matmul(call.tensor(weight).T());
  return call.has(bias) ? y + call.tensor(bias).unsqueeze(1) : y;
}

Tensor gated(const NodeCall& call, Tensor gate, Tensor up) {
  if (call.has("swiglu_limit")) {
    const double limit = call.number("swiglu_limit");
    gate = gate.clamp_max(limit), up = up.clamp(-limit, limit);
  }
  return gate * (gate * call.number("activation_alpha", 1)).sigmoid() *
         (up + call.number("activation_beta", 0));
}

Tensor hidden(const NodeCall& call, const Tensor& x) {
  const std::string type = call.text("activation_type", "relu");
  const Tensor y = expert_product(call, x, 2, 3);
  if (type == "swiglu") {
    const int64_t fusion = call.integer("swiglu_fusion", 0);
    if (fusion == 0) return gated(call, y, expert_product(call, x, 6, 7));
    if (fusion == 1) {
      const Tensor pairs = y.unflatten(-1, {Dim(-1), Dim(2)});
      return gated(call, pairs.index({kEllipsis, 0}), pairs.index({kEllipsis, 1}));
    }
    const Dim half = y.dim(-1) / Dim(2);
    return gated(call, y.index({kEllipsis, Slice(half)}),
                 y.index({kEllipsis, Slice(half, y.dim(-1))}));
  }
  const Tensor active = type == "relu"       ? y.relu()
                        : type == "gelu"     ? y.gelu(false)
                        : type == "silu"     ? y.silu()
                        : type == "identity" ? y
                                             : Tensor();
  if (!active.defined())
    call.refuse("activation_type {}: relu, gelu, silu, swiglu or identity", quoted_name(type));
  return call.has(6) ? active * expert_product(call, x, 6, 7) : active;
}

}  // namespace

Values mixture_of_experts(const NodeCall& call) {
  if (call.integer("use_sparse_mixer", 0) != 0) call.refuse("use_sparse_mixer is not supported");
  const Tensor& input = call.tensor(0);
  const Tensor x = widened(input).reshape({Dim(-1), input.dim(-1)});
  const Tensor scores = widened(call.tensor(1));
  const int64_t k = call.integer("k", 1);
  if (scores.ndim() != 2 || k < 1 || k > scores.size(1))
    call.refuse("router_probs {} and k {}: (tokens, experts), and 1 to their number",
                scores.dims().text(), k);
  const bool relative = call.integer("normalize_routing_weights", 0) != 0;
  const auto [best, which] = scores.softmax(-1).topk(k);
  const Tensor shares = relative ? best / best.sum(-1, true) : best;
  const Tensor weights = Tensor::zeros(scores.dims(), shares.dtype()).scatter(1, which, shares);
  const Tensor y = expert_product(call, hidden(call, x.unsqueeze(0)), 4, 5);
  const Tensor mixed = (y * weights.T().unsqueeze(2)).sum(0);
  return {mixed.reshape(input.dims()).cast(input.dtype())};
}

}  // namespace weft::onnx
