// com.microsoft: MoE and QMoE, mixtures of experts (Shazeer et al. 2017). Sizes do not depend on
// data: of few tokens each computes with the weights of its own experts; of many, every expert sees
// every token, and those that were not chosen count with weight 0.
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

// The inputs of all experts, or of those at `chosen`.
class Experts {
 public:
  Experts(const NodeCall& call, const Layers& layers, Tensor chosen)
      : call_(call), layers_(layers), chosen_(std::move(chosen)) {}

  const NodeCall& call() const { return call_; }
  bool has_up() const { return call_.has(layers_.up.weight); }
  Tensor in(const Tensor& x) const { return product(x, layers_.in); }
  Tensor up(const Tensor& x) const { return product(x, layers_.up); }
  Tensor out(const Tensor& x) const { return product(x, layers_.out); }

 private:
  Tensor of(size_t i) const {
    const Tensor& all = call_.tensor(i);
    if (!chosen_.defined()) return all;
    // Packed numbers as words, which is how they are unpacked.
    const bool words = all.dtype() == DType::U8 && all.dim(-1) % Dim(4) == Dim(0);
    return (words ? all.bitcast(DType::U32) : all).index({chosen_});
  }
  Tensor weights(const Layer& layer) const {
    if (layer.scales == kNone) return of(layer.weight);
    int64_t bits = call_.integer(layer.bits, 0);
    if (bits < 1) bits = call_.integer("expert_weight_bits", 4);
    const Tensor zeros = call_.has(layer.zeros) ? of(layer.zeros) : Tensor();
    return decoded_experts(call_, of(layer.weight), of(layer.scales), zeros, bits);
  }
  // Of tokens (experts, tokens, in) with weights (experts, out, in).
  Tensor product(const Tensor& x, const Layer& layer) const {
    const Tensor y = x.matmul(weights(layer).T());
    return call_.has(layer.bias) ? y + widened(of(layer.bias)).unsqueeze(1) : y;
  }

  const NodeCall& call_;
  const Layers& layers_;
  Tensor chosen_;  // undefined: all
};

Tensor gated(const NodeCall& call, Tensor gate, Tensor up) {
  if (call.has("swiglu_limit")) {
    const double limit = call.number("swiglu_limit");
    gate = gate.clamp_max(limit), up = up.clamp(-limit, limit);
  }
  return gate * (gate * call.number("activation_alpha", 1)).sigmoid() *
         (up + call.number("activation_beta", 0));
}

Tensor hidden(const Experts& experts, const Tensor& x) {
  const NodeCall& call = experts.call();
  const std::string type = call.text("activation_type", "relu");
  const Tensor y = experts.in(x);
  if (type == "swiglu") {
    const int64_t fusion = call.integer("swiglu_fusion", 0);
    if (fusion == 0) return gated(call, y, experts.up(x));
    if (fusion == 1) {
      const Tensor pairs = y.unflatten(-1, {Dim(-1), Dim(2)});
      return gated(call, pairs.index({kEllipsis, 0}), pairs.index({kEllipsis, 1}));
    }
    const Dim half = y.dim(-1) / Dim(2);
    return gated(call, y.index({kEllipsis, Slice(half)}),
                 y.index({kEllipsis, Slice(half, y.dim(-1))}));
  }
  const Tensor active = type == "relu"       ? y.relu()
                        : type == "gelu"     ? y.gelu(true)  // as ONNX Runtime does
                        : type == "silu"     ? y.silu()
                        : type == "identity" ? y
                                             : Tensor();
  if (!active.defined())
    call.refuse("activation_type {}: relu, gelu, silu, swiglu or identity", quoted_name(type));
  return experts.has_up() ? active * experts.up(x) : active;
}

// (tokens, k): which experts a token has, and how much each of them counts.
struct Routes {
  Tensor experts, shares;
};
Routes routes_of(const NodeCall& call, const Tensor& scores, const Tensor& weights) {
  const int64_t k = call.integer("k", 1);
  if (scores.ndim() != 2 || k < 1 || k > scores.size(1))
    call.refuse("router_probs {} and k {}: (tokens, experts), and 1 to their number",
                scores.dims().text(), k);
  const auto [best, which] = scores.softmax(-1).topk(k);
  const Tensor shares = weights.defined() ? widened(weights).gather(1, which) : best;
  const bool relative = call.integer("normalize_routing_weights", 0) != 0;
  return {which, relative ? shares / shares.sum(-1, true) : shares};
}

// Of x (tokens, in): each token with its own experts' weights.
Tensor mixed_by_token(const NodeCall& call, const Layers& layers, const Tensor& x,
                      const Routes& routes) {
  const int64_t k = routes.experts.size(1);
  const Experts experts(call, layers, routes.experts.flatten().contiguous());
  const Tensor y = experts.out(hidden(experts, x.repeat_interleave(k, 0).unsqueeze(1)));
  return (y.squeeze(1).unflatten(0, {Dim(-1), Dim(k)}) * routes.shares.unsqueeze(2)).sum(1);
}

Tensor mixed_by_expert(const NodeCall& call, const Layers& layers, const Tensor& x,
                       const Routes& routes) {
  const Experts experts(call, layers, {});
  const Tensor y = experts.out(hidden(experts, x.unsqueeze(0)));
  const Tensor shares = Tensor::zeros(call.tensor(1).dims(), routes.shares.dtype())
                            .scatter(1, routes.experts, routes.shares);
  return (y * shares.T().unsqueeze(2)).sum(0);
}

Values mixture(const NodeCall& call, const Layers& layers, const Tensor& router_weights) {
  if (call.integer("use_sparse_mixer", 0) != 0) call.refuse("use_sparse_mixer is not supported");
  const Tensor& input = call.tensor(0);
  const Tensor x = widened(input).reshape({Dim(-1), input.dim(-1)});
  const Routes routes = routes_of(call, widened(call.tensor(1)), router_weights);
  const Dims chosen = routes.experts.dims();
  const bool few = chosen.is_static() && 2 * chosen.product().value() <= call.tensor(1).size(1);
  const Tensor y = (few ? mixed_by_token : mixed_by_expert)(call, layers, x, routes);
  return {y.reshape(input.dims()).cast(input.dtype())};
}

}  // namespace

Values mixture_of_experts(const NodeCall& call) { return mixture(call, kPlain, {}); }

Values quantised_mixture_of_experts(const NodeCall& call) {
  if (const std::string type = call.text("quant_type", "int"); type != "int")
    call.refuse("quant_type {}: only int is supported", quoted_name(type));
  return mixture(call, kPacked, optional_tensor(call, 14));
}

}  // namespace weft::onnx
