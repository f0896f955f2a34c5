// LinearAttention: a state that keys and values are added to, position after position
// (Katharopoulos et al. 2020; the delta rule: Yang et al. 2024). Semantics: the ONNX operator
// specification.
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

struct Rule {
  bool gated, delta;
};

Rule rule_of(const NodeCall& call) {
  const std::string name = call.text("update_rule", "gated_delta");
  const Rule rule{name.starts_with("gated"), name.ends_with("delta")};
  if (name != "linear" && !rule.gated && !rule.delta)
    call.refuse("update_rule is '{}': give linear, gated, delta or gated_delta", name);
  if (rule.gated && !call.has(4)) call.refuse("update_rule '{}' needs a decay", name);
  if (rule.delta && !call.has(5)) call.refuse("update_rule '{}' needs a beta", name);
  return rule;
}

}  // namespace

Values linear_attention(const NodeCall& call) {
  const Tensor& given = call.tensor(0);
  const DType run = wide(given.dtype());
  const int64_t heads = call.integer("kv_num_heads"), query_heads = call.integer("q_num_heads");
  const Rule rule = rule_of(call);
  Tensors xs{slices(call, 0, query_heads, run), slices(call, 1, heads, run),
             slices(call, 2, heads, run)};
  if (query_heads % heads != 0)
    call.refuse("{} query heads are no multiple of {} key heads", query_heads, heads);
  if (rule.gated) xs.push_back(slices(call, 4, heads, run).exp());
  if (rule.delta)  // one for all heads, or one for each
    xs.push_back(slices(call, 5, call.tensor(5).dim(-1) == Dim(1) ? 1 : heads, run));
  const int64_t size = xs[1].size(3);
  double scale = call.number("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(size));
  const int64_t queries = query_heads / heads;
  const auto step = [&](const Tensors& before, const Tensors& now) {
    const Tensor k = now[1].unsqueeze(-1);  // (batch, heads, size, 1)
    Tensor state = before[0], v = now[2].unsqueeze(-2);
    if (rule.gated) state = state * now[3].unsqueeze(-1);
    if (rule.delta) v = (v - (k * state).sum(-2, true)) * now[rule.gated ? 4 : 3].unsqueeze(-1);
    state = state + k * v;
    // Queries share the state of their key head.
    const Tensor q = now[0].unflatten(1, {heads, queries});
    return ScanResult{{state}, {(q.matmul(state) * scale).flatten(1, 2)}};
  };
  const Dims shape{given.dim(0), heads, size, xs[2].dim(3)};
  const Tensor start = call.has(3) ? call.tensor(3).cast(run) : Tensor::zeros(shape, run);
  const ScanResult done = scan(step, {start}, xs);
  return {done.stacked[0].transpose(0, 1).flatten(2, 3).cast(given.dtype()),
          done.carried[0].cast(call.has(3) ? call.tensor(3).dtype() : given.dtype())};
}

}  // namespace weft::onnx
