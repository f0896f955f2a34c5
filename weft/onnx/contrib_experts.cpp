// com.microsoft: MoE and QMoE, mixtures of experts (Shazeer et al. 2017). Every expert sees every
// token, and those that were not chosen count with weight 0: sizes do not depend on data.
#include "weft/onnx/contrib.h"
#include "weft/onnx/host.h"

namespace weft::onnx {
namespace {

constexpr size_t kNone = SIZE_MAX;

// Which inputs a layer of the experts has; weights that are packed have scales.
struct Layer {
  size_t weight, bias, scales = kNone, zeros = kNone;
  std::string_view bits = {};  // the attribute
};
struct Layers {
  Layer in, out, up;
};
constexpr Layers kPlain = {{2, 3}, {4, 5}, {6, 7}};
constexpr Layers kPacked = {{2, 4, 3, 11, "fc1_expert_weight_bits"},
                            {5, 7, 6, 12, "fc2_expert_weight_bits"},
                            {8, 10, 9, 13, "fc3_expert_weight_bits"}};

Tensor expert_weights(const NodeCall& call, const Layer& layer) {
  if (layer.scales == kNone) return call.tensor(layer.weight);
  int64_t bits = call.integer(layer.bits, 0);
  if (bits < 1) bits = call.integer("expert_weight_bits", 4);
  return decoded_experts(call, call.tensor(layer.weight), call.tensor(layer.scales),
                         optional_tensor(call, layer.zeros), bits);
}

// Of tokens (experts, tokens, in) with weights (experts, out, in).
Tensor expert_product(const NodeCall& call, const Tensor& x, const Layer& layer) {
  const Tensor y = x.matmul(expert_weights(call, layer).T());
  return call.has(layer.bias) ? y + widened(call.tensor(layer.bias)).unsqueeze(1) : y;
}

Tensor gated(const NodeCall& call, Tensor gate, Tensor up) {
  if (call.has("swiglu_limit")) {
    const double limit = call.number("swiglu_limit");
    gate = gate.clamp_max(limit), up = up.clamp(-limit, limit);
  }
  return gate * (gate * call.number("activation_alpha", 1)).sigmoid() *
         (up + call.number("activation_beta", 0));
}

Tensor hidden(const NodeCall& call, const Tensor& x, const Layers& layers) {
  const std::string type = call.text("activation_type", "relu");
  const Tensor y = expert_product(call, x, layers.in);
  if (type == "swiglu") {
    const int64_t fusion = call.integer("swiglu_fusion", 0);
    if (fusion == 0) return gated(call, y, expert_product(call, x, layers.up));
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
  return call.has(layers.up.weight) ? active * expert_product(call, x, layers.up) : active;
}

// (tokens, experts): the share of each expert, 0 for all but the k of the best scores.
Tensor shares_of(const NodeCall& call, const Tensor& scores, const Tensor& weights) {
  const int64_t k = call.integer("k", 1);
  if (scores.ndim() != 2 || k < 1 || k > scores.size(1))
    call.refuse("router_probs {} and k {}: (tokens, experts), and 1 to their number",
                scores.dims().text(), k);
  const auto [best, which] = scores.softmax(-1).topk(k);
  Tensor shares = weights.defined() ? widened(weights).gather(1, which) : best;
  if (call.integer("normalize_routing_weights", 0) != 0) shares = shares / shares.sum(-1, true);
  return Tensor::zeros(scores.dims(), shares.dtype()).scatter(1, which, shares);
}

Values mixture(const NodeCall& call, const Layers& layers, const Tensor& router_weights) {
  if (call.integer("use_sparse_mixer", 0) != 0) call.refuse("use_sparse_mixer is not supported");
  const Tensor& input = call.tensor(0);
  const Tensor x = widened(input).reshape({Dim(-1), input.dim(-1)});
  const Tensor shares = shares_of(call, widened(call.tensor(1)), router_weights);
  const Tensor y = expert_product(call, hidden(call, x.unsqueeze(0), layers), layers.out);
  return {(y * shares.T().unsqueeze(2)).sum(0).reshape(input.dims()).cast(input.dtype())};
}

}  // namespace

Values mixture_of_experts(const NodeCall& call) { return mixture(call, kPlain, {}); }

Values quantised_mixture_of_experts(const NodeCall& call) {
  if (const std::string type = call.text("quant_type", "int"); type != "int")
    call.refuse("quant_type {}: only int is supported", quoted_name(type));
  return mixture(call, kPacked, optional_tensor(call, 14));
}

}  // namespace weft::onnx
