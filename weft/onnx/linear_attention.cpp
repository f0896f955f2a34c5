// LinearAttention: a state that keys and values are added to, position after position
// (Katharopoulos et al. 2020; the delta rule: Yang et al. 2024). Semantics: the ONNX operator
// specification.
#include "weft/onnx/linear_attention.h"

#include <cmath>

#include "weft/onnx/attention_operators.h"
#include "weft/onnx/axes.h"
#include "weft/tensor/transforms.h"

namespace weft::onnx {

namespace {

/// (batch, positions, heads * size) as slices: (positions, batch, heads, size).
Tensor slices(const NodeCall& call, size_t input, int64_t heads, DType run) {
  const Tensor& x = call.tensor(input);
  if (x.ndim() != 3 || heads < 1 || x.size(2) % heads != 0)
    call.refuse("input {} of shape {}: give (batch, positions, {} heads * size)", input,
                x.dims().text(), heads);
  return x.cast(run).unflatten(2, {heads, -1}).transpose(0, 1);
}

}  // namespace

LinearResult linear_recurrence(const LinearParts& parts) {
  const bool gated = parts.decay.defined(), delta = parts.beta.defined();
  Tensors xs{parts.q, parts.k, parts.v};
  if (gated) xs.push_back(parts.decay);
  if (delta) xs.push_back(parts.beta);
  const int64_t heads = parts.k.size(2), queries = parts.q.size(2) / heads;
  const auto step = [&](const Tensors& before, const Tensors& now) {
    const Tensor k = now[1].unsqueeze(-1);  // (batch, heads, size, 1)
    Tensor state = before[0], v = now[2].unsqueeze(-2);
    if (gated) state = state * now[3].unsqueeze(-1);
    if (delta) v = (v - (k * state).sum(-2, true)) * now[gated ? 4 : 3].unsqueeze(-1);
    state = state + k * v;
    // Queries share the state of their key head.
    const Tensor q = now[0].unflatten(1, {heads, queries});
    return ScanResult{{state}, {(q.matmul(state) * parts.scale).flatten(1, 2)}};
  };
  const ScanResult done = scan(step, {parts.state}, xs);
  return {done.stacked[0], done.carried[0]};
}

LinearRule linear_rule(const NodeCall& call, size_t decay, size_t beta) {
  const std::string name = call.text("update_rule", "gated_delta");
  const LinearRule rule{name.starts_with("gated"), name.ends_with("delta")};
  if (name != "linear" && !rule.gated && !rule.delta)
    call.refuse("update_rule is '{}': give linear, gated, delta or gated_delta", name);
  if (rule.gated && !call.has(decay)) call.refuse("update_rule '{}' needs a decay", name);
  if (rule.delta && !call.has(beta)) call.refuse("update_rule '{}' needs a beta", name);
  return rule;
}

double linear_scale(const NodeCall& call, int64_t size) {
  const double scale = call.number("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size));
}

Values linear_attention(const NodeCall& call) {
  const Tensor& given = call.tensor(0);
  const DType run = wide(given.dtype());
  const int64_t heads = call.integer("kv_num_heads"), query_heads = call.integer("q_num_heads");
  const LinearRule rule = linear_rule(call, 4, 5);
  LinearParts parts{slices(call, 0, query_heads, run), slices(call, 1, heads, run),
                    slices(call, 2, heads, run)};
  if (query_heads % heads != 0)
    call.refuse("{} query heads are no multiple of {} key heads", query_heads, heads);
  if (rule.gated) parts.decay = slices(call, 4, heads, run).exp();
  if (rule.delta)  // one for all heads, or one for each
    parts.beta = slices(call, 5, call.tensor(5).dim(-1) == Dim(1) ? 1 : heads, run);
  parts.scale = linear_scale(call, parts.k.size(3));
  const Dims shape{given.dim(0), heads, parts.k.size(3), parts.v.dim(3)};
  parts.state = call.has(3) ? call.tensor(3).cast(run) : Tensor::zeros(shape, run);
  const LinearResult done = linear_recurrence(parts);
  return {done.output.transpose(0, 1).flatten(2, 3).cast(given.dtype()),
          done.state.cast(call.has(3) ? call.tensor(3).dtype() : given.dtype())};
}

}  // namespace weft::onnx
