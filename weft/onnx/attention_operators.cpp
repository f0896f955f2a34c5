// Attention and what belongs to it. Semantics: the ONNX operator specification.
#include "weft/onnx/attention_operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "weft/onnx/axes.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {

namespace {

/// (batch, positions, heads * size) to (batch, heads, positions, size); with four axes it is that.
Tensor by_heads(const NodeCall& call, size_t input, std::string_view heads) {
  const Tensor& x = call.tensor(input);
  if (x.ndim() == 4) return x;
  const int64_t count = call.integer(heads);
  if (x.ndim() != 3 || count < 1 || x.size(2) % count != 0)
    call.refuse(
        "input {} of shape {} with {} {}: give (batch, positions, heads * size) or (batch, "
        "heads, positions, size)",
        input, x.dims().text(), heads, count);
  return x.unflatten(2, {count, -1}).transpose(1, 2);
}

/// What one call is asked for.
struct Asked {
  Tensor q, k, v;   ///< (batch, heads, positions, size), those of the past among k and v
  bool flat;        ///< heads and sizes are one axis outside
  double scale;     ///< of the scores
  double softcap;   ///< 0: none
  DType precision;  ///< of the softmax
  Tensor visible;   ///< bool, broadcasts to the scores; or none
  Tensor bias;      ///< added to the scores; or none
};

Tensor joined(const NodeCall& call, size_t past, const Tensor& now) {
  return call.has(past) ? Tensor::cat({call.tensor(past), now}, 2) : now;
}

/// The mask, as long as the keys: what is missing at its end is not seen.
Tensor whole_mask(const NodeCall& call, const Tensor& mask, const Dim& keys) {
  const Dim have = mask.dim(-1);
  if (have == keys || have == Dim(1)) return mask;
  if (have.is_static() && keys.is_static() && have.value() > keys.value())
    call.refuse("attn_mask {} is longer than the {} keys", mask.dims().text(), keys.text());
  std::vector<DimPair> end(mask.ndim(), DimPair(0, 0));
  end.back() = {0, keys - have};
  return is_bool(mask.dtype()) ? mask.pad(end, false) : mask.pad(end, -INFINITY);
}

Tensor both(const Tensor& a, const Tensor& b) { return a.defined() ? a & b : b; }

/// A size as data.
Tensor number_of(const Dim& size) {
  if (size.is_static()) return Tensor::full({}, size.value(), DType::I64);
  return counted(size + 1, 1, 0, DType::I64).index({size});
}

/// The place of the first query among the keys: how many keys precede it; () or (batch, 1, 1, 1).
Tensor first_place(const NodeCall& call, const Asked& a) {
  if (call.has(6)) return call.tensor(6).reshape({-1, 1, 1, 1}) - number_of(a.q.dim(2));
  return number_of(call.has(4) ? call.tensor(4).dim(2) : Dim(0));
}

/// Which keys are seen: by the mask, by the order of places, inside of what is no padding.
void look(const NodeCall& call, Asked& a) {
  if (call.has(3)) {
    const Tensor mask = whole_mask(call, call.tensor(3), a.k.dim(2));
    (is_bool(mask.dtype()) ? a.visible : a.bias) = mask;
  }
  const Tensor key = counted(a.k.dim(2), 4, 3, DType::I64);
  const int64_t left = call.integer("left_window_size", -1),
                right = call.integer("right_window_size", -1);
  const bool causal = call.integer("is_causal", 0) != 0;
  if (left < -1 || right < -1)
    call.refuse("window sizes {} and {}: give -1 (none) or more", left, right);
  if (causal || left >= 0 || right >= 0) {
    const Tensor place = first_place(call, a) + counted(a.q.dim(2), 4, 2, DType::I64);
    if (causal) a.visible = both(a.visible, key <= place);
    if (left >= 0) a.visible = both(a.visible, key >= place - left);
    if (right >= 0) a.visible = both(a.visible, key <= place + right);
  }
  if (call.has(6)) a.visible = both(a.visible, key < call.tensor(6).reshape({-1, 1, 1, 1}));
}

Asked asked_of(const NodeCall& call) {
  if (call.has(4) != call.has(5)) call.refuse("past_key and past_value belong together");
  if (call.has(6) && call.has(4))
    call.refuse("nonpad_kv_seqlen and past_key are two ways to keep keys: give one");
  Asked a;
  a.flat = call.tensor(0).ndim() == 3;
  a.q = by_heads(call, 0, "q_num_heads");
  a.k = joined(call, 4, by_heads(call, 1, "kv_num_heads"));
  a.v = joined(call, 5, by_heads(call, 2, "kv_num_heads"));
  a.scale = call.number("scale", 1 / std::sqrt(static_cast<double>(a.q.size(3))));
  a.softcap = call.number("softcap", 0);
  const int64_t precision = call.integer("softmax_precision", 0);
  a.precision = precision == 0 ? a.q.dtype() : dtype_of(static_cast<ElementType>(precision));
  if (!is_float(a.precision)) call.refuse("softmax_precision {} is no type of floats", precision);
  look(call, a);
  return a;
}

/// Without windows, caps and what is between them: one operation.
bool is_plain(const NodeCall& call, const Asked& a) {
  return a.softcap == 0 && !call.wants(3) && a.scale != 0 && a.v.dtype() == a.q.dtype() &&
         bits(a.precision) <= std::max(32, bits(a.q.dtype()));
}

/// The scale at the queries where their products with keys might be out of range.
Tensor attend(const NodeCall& call, Asked a) {
  if (is_narrow_float(a.q.dtype())) {
    a.q = a.q * a.scale;
    a.scale = 1;
  }
  AttentionOptions options{.grouped_queries = true, .scale = a.scale};
  const bool square = !call.has(3) && !call.has(4) && !call.has(6);
  const bool windows =
      call.integer("left_window_size", -1) >= 0 || call.integer("right_window_size", -1) >= 0;
  if (square && !windows) {
    options.causal = call.integer("is_causal", 0) != 0;
    return a.q.scaled_dot_product_attention(a.k, a.v, options);
  }
  Tensor mask = a.visible;
  if (a.bias.defined())
    mask = mask.defined() ? mask.where(a.bias, -INFINITY).cast(a.bias.dtype()) : a.bias;
  if (mask.defined()) options.mask = &mask;
  return a.q.scaled_dot_product_attention(a.k, a.v, options);
}

/// Heads of keys and values next to each other, as often as queries have them.
Tensor repeated(const NodeCall& call, const Tensor& x, const Tensor& q) {
  const int64_t have = x.size(1), want = q.size(1);
  if (want % have != 0) call.refuse("{} query heads are no multiple of {} key heads", want, have);
  return want == have ? x : x.repeat_interleave(want / have, 1);
}

/// The steps one by one: the result, and what is between them as qk_matmul_output_mode says.
std::pair<Tensor, Tensor> attend_in_steps(const NodeCall& call, const Asked& a) {
  const DType dtype = a.q.dtype();
  const Tensor k = repeated(call, a.k, a.q), v = repeated(call, a.v, a.q);
  std::array<Tensor, 4> stages;
  stages[0] = a.q.matmul(k.transpose(-1, -2)) * a.scale;
  stages[1] = a.softcap > 0 ? (stages[0] / a.softcap).tanh() * a.softcap : stages[0];
  stages[2] = a.bias.defined() ? stages[1] + a.bias.cast(dtype) : stages[1];
  if (a.visible.defined()) stages[2] = a.visible.where(stages[2], -INFINITY);
  const Tensor scores = stages[2].cast(a.precision);
  const Tensor top = scores.max(-1, true);
  const Tensor e = (scores - (top == -INFINITY).where(0, top)).exp(), sum = e.sum(-1, true);
  stages[3] = e / (sum == 0).where(1, sum);  // 0 in rows that see nothing
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) call.refuse("qk_matmul_output_mode is {}: give 0 to 3", mode);
  return {stages[3].cast(dtype).matmul(v.cast(dtype)),
          stages[static_cast<size_t>(mode)].cast(dtype)};
}

Values attention(const NodeCall& call) {
  const Asked a = asked_of(call);
  Tensor y, stage;
  if (is_plain(call, a))
    y = attend(call, a);
  else
    std::tie(y, stage) = attend_in_steps(call, a);
  Values results{a.flat ? y.transpose(1, 2).flatten(2, 3) : y, a.k, a.v};
  if (stage.defined()) results.emplace_back(stage);
  return results;
}

/// Attention whose scores and weights are changed by subgraphs.
Values flexible_attention(const NodeCall& call) {
  const Tensor& q = call.tensor(0);
  if (q.ndim() != 4 || call.tensor(1).ndim() != 4 || call.tensor(2).ndim() != 4)
    call.refuse("Q {}: give (batch, heads, positions, size)", q.dims().text());
  const Tensor k = repeated(call, call.tensor(1), q), v = repeated(call, call.tensor(2), q);
  const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(q.size(3))));
  const int64_t precision = call.integer("softmax_precision", 0);
  const DType run =
      precision != 0 ? dtype_of(static_cast<ElementType>(precision)) : wide(q.dtype());
  const auto changed = [&](std::string_view by, const Tensor& x) {
    return call.has(by) ? call.run(call.graph(by), {x})[0].tensor() : x;
  };
  const Tensor scores = q.cast(run).matmul(k.cast(run).transpose(-1, -2)) * scale;
  const Tensor weights = changed("prob_mod", changed("score_mod", scores).softmax(-1));
  return {weights.matmul(v.cast(run)).cast(q.dtype())};
}

/// The cache with an update written from a place of each sample on.
Values tensor_scatter(const NodeCall& call) {
  const Tensor& cache = call.tensor(0);
  const Tensor& update = call.tensor(1);
  const int64_t axis = call.axis(call.integer("axis", -2), cache.ndim());
  const std::string mode = call.text("mode", "linear");
  if (axis == 0) call.refuse("axis 0 is the batch's: give another");
  if (mode != "linear" && mode != "circular")
    call.refuse("mode is '{}': give linear or circular", mode);
  Tensor at = counted(update.dim(axis), update.ndim(), axis, DType::I64);
  if (call.has(2)) at = at + along_axis(call.tensor(2), update.ndim(), 0);
  if (mode == "circular") at = at % cache.size(axis);
  return {cache.scatter(axis, at.expand(update.dims()), update)};
}

}  // namespace

std::span<const Operator> attention_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "Attention", 23, attention},
      Operator{kPreview, "FlexAttention", 1, flexible_attention},
      Operator{kOnnx, "LinearAttention", 27, linear_attention},
      Operator{kOnnx, "RotaryEmbedding", 23, rotary_embedding},
      Operator{kOnnx, "TensorScatter", 24, tensor_scatter},
  };
  return kRows;
}

}  // namespace weft::onnx
