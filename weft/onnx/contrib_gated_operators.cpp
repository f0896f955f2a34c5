// com.microsoft: norms and gates of networks with linear attention (Yang et al. 2024), and the
// attention itself with packed positions.
#include <algorithm>

#include "weft/onnx/attention_operators.h"
#include "weft/onnx/contrib.h"
#include "weft/onnx/linear_attention.h"

namespace weft::onnx {
namespace {

// x (..., groups * size) or (..., size) as (..., groups, size) in f32.
Tensor grouped(const NodeCall& call, const Tensor& x, int64_t size) {
  if (x.ndim() < 1 || size < 1 || x.size(-1) % size != 0)
    call.refuse("input {}: groups of {}", x.dims().text(), size);
  return x.cast(DType::F32).unflatten(-1, {Dim(-1), Dim(size)});
}

Tensor of_unit_rms(const NodeCall& call, const Tensor& x, double epsilon) {
  return x * ((x * x).mean(-1, true) + call.number("epsilon", epsilon)).rsqrt();
}

Values gated_rms_norm(const NodeCall& call) {
  const Tensor &x = call.tensor(0), &scale = call.tensor(1);
  if (scale.ndim() != 1) call.refuse("scale {}: one axis", scale.dims().text());
  const std::string name = call.text("activation", "silu");
  if (name != "silu" && name != "swish" && name != "sigmoid")
    call.refuse("activation {}: silu, swish or sigmoid", quoted_name(name));
  const Tensor y = of_unit_rms(call, grouped(call, x, scale.size(0)), 1e-6) * widened(scale);
  const Tensor gate = call.tensor(2).cast(DType::F32);
  const Tensor open = name == "sigmoid" ? gate.sigmoid() : gate.silu();
  return {(y.reshape(x.dims()) * open).cast(x.dtype())};
}

Values branchwise_rms_norm(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t branches = call.integer("num_branches", 0);
  if (branches < 0 || x.ndim() < 1) call.refuse("{} branches of {}", branches, x.dims().text());
  const int64_t size = branches > 0 ? x.size(-1) / branches : x.size(-1);
  const Tensor y = of_unit_rms(call, grouped(call, x, size), 1e-6).reshape(x.dims());
  if (!call.has(1)) return {y.cast(x.dtype())};
  Tensor scale = widened(call.tensor(1));
  if (scale.ndim() == 1 && !(scale.dim(0) == x.dim(-1)))  // (size) of flattened branches, or all
    scale = branches > 0 ? scale.repeat({branches}) : scale.reshape({x.dim(-2), x.dim(-1)});
  else if (scale.ndim() == 2 && branches > 0)
    scale = scale.flatten();
  return {(y * scale).cast(x.dtype())};
}

Values gated_add(const NodeCall& call) {
  if (call.has(3)) call.refuse("gate_weight is not supported: ONNX Runtime has it on GPUs alone");
  return {call.tensor(0) + call.tensor(1) * call.tensor(2)};
}

Values linear_attention_gate(const NodeCall& call) {
  const Tensor& a = call.tensor(0);
  const Tensor decay =
      (a.cast(DType::F32) + call.tensor(1)).softplus() * call.tensor(2).cast(DType::F32);
  Values results = {decay.cast(a.dtype())};
  if (call.has(3)) results.emplace_back(call.tensor(3).cast(DType::F32).sigmoid().cast(a.dtype()));
  return results;
}

// ---- GatedDeltaNet

enum : size_t { kQuery, kKey, kValue, kSequences, kDecay, kBeta, kState, kLogOfA, kTimeBias };

// (batch, positions, heads, ...), or (tokens, heads, ...) of a batch, as (positions, batch, heads,
// size).
Tensor by_position(const Tensor& x, const Dim& batch, bool flat) {
  const Tensor y = x.cast(DType::F32);
  const Tensor split = (flat ? y.unflatten(0, {batch, Dim(-1)}) : y).transpose(0, 1);
  return split.ndim() == 3 ? split.unsqueeze(-1) : split;
}

// In logarithms, of the activation's raw values.
Tensor decay_of(const NodeCall& call, const Tensor& x) {
  const std::string name = call.text("gate_activation", "none");
  if (name == "none") return x;
  const bool soft = name == "softplus" || name == "qwen";
  if (!soft && name != "sigmoid" && name != "kda")
    call.refuse("gate_activation {}: none, softplus or sigmoid", quoted_name(name));
  const Tensor a = call.tensor(kLogOfA).cast(DType::F32).exp().unsqueeze(-1);
  const Tensor shifted = x + call.tensor(kTimeBias).cast(DType::F32).reshape({x.dim(2), Dim(-1)});
  return soft ? -a * shifted.softplus()
              : (a * shifted).sigmoid() * call.number("gate_lower_bound", -5);
}

// Query, key and value, which may lie in one another.
std::vector<Tensor> given_heads(const NodeCall& call, const Tensor& state) {
  const Tensor& query = call.tensor(kQuery);
  if (call.has(kKey)) return {query, call.tensor(kKey), call.tensor(kValue)};
  const int64_t heads = state.size(1), v = state.size(2), k = state.size(3);
  const int64_t rest = query.size(-1) - heads * v;
  if (rest < 2 * k || rest % (2 * k) != 0)
    call.refuse("packed query {} for a state {}", query.dims().text(), state.dims().text());
  std::vector<Tensor> parts = query.split(std::vector<int64_t>{rest / 2, rest / 2, heads * v}, -1);
  for (size_t i = 0; i < 3; ++i) parts[i] = parts[i].unflatten(-1, {Dim(-1), Dim(i < 2 ? k : v)});
  return parts;
}

}  // namespace

Values gated_delta_net(const NodeCall& call) {
  if (call.has(kSequences) || call.integer("state_update_capacity", 0) != 0)
    call.refuse("cu_seqlens and state_update_capacity are not supported");
  const Tensor& state = call.tensor(kState);
  if (state.ndim() != 4)
    call.refuse("initial_state {}: (batch, heads, value size, key size)", state.dims().text());
  const LinearRule rule = linear_rule(call, kDecay, kBeta);
  const std::vector<Tensor> given = given_heads(call, state);
  const bool flat = given[0].ndim() == 3;
  const auto slices = [&](const Tensor& x) { return by_position(x, state.dim(0), flat); };
  LinearParts parts{slices(given[0]), slices(given[1]), slices(given[2])};
  if (call.integer("qk_l2_norm", 0) != 0)
    for (Tensor* x : {&parts.q, &parts.k}) *x = *x * ((*x * *x).sum(-1, true) + 1e-6).rsqrt();
  const int64_t heads = parts.k.size(2), shared = parts.v.size(2) / std::max<int64_t>(heads, 1);
  if (heads < 1 || parts.q.size(2) != heads || shared < 1 || parts.v.size(2) % heads != 0)
    call.refuse(
        "{}, {} and {} heads of queries, keys and values: as many keys as queries, and a "
        "multiple of values",
        parts.q.size(2), heads, parts.v.size(2));
  parts.q = parts.q.repeat_interleave(shared, 2), parts.k = parts.k.repeat_interleave(shared, 2);
  if (rule.gated) parts.decay = decay_of(call, slices(call.tensor(kDecay))).exp();
  if (rule.delta) {
    parts.beta = slices(call.tensor(kBeta));
    if (call.text("beta_activation", "none") == "sigmoid") parts.beta = parts.beta.sigmoid();
  }
  parts.scale = linear_scale(call, parts.k.size(3));
  parts.state = state.cast(DType::F32).T();
  const LinearResult done = linear_recurrence(parts);
  const Tensor y = done.output.transpose(0, 1).cast(given[0].dtype());
  return {flat ? y.flatten(0, 1) : y, done.state.T()};
}

std::span<const Operator> contrib_gated_operators() {
  static constexpr Operator kRows[] = {
      {kMicrosoft, "BranchwiseRMSNorm", 1, branchwise_rms_norm},
      {kMicrosoft, "GatedAdd", 1, gated_add},
      {kMicrosoft, "GatedDeltaNet", 1, gated_delta_net},
      {kMicrosoft, "GatedRMSNorm", 1, gated_rms_norm},
      {kMicrosoft, "LinearAttention", 1, linear_attention},
      {kMicrosoft, "LinearAttentionGate", 1, linear_attention_gate},
  };
  return kRows;
}

}  // namespace weft::onnx
