// com.microsoft: Attention, MultiHeadAttention, QAttention, RotaryEmbedding.
#include <cmath>

#include "weft/onnx/contrib_attention.h"
#include "weft/onnx/host.h"

namespace weft::onnx {

Tensor split_heads(const NodeCall& call, const Tensor& x, int64_t heads) {
  if (x.ndim() != 3 || heads < 1 || !(x.dim(2) % Dim(heads) == Dim(0)))
    call.refuse("{} heads of {}: (batch, positions, heads times size)", heads, x.dims().text());
  return x.reshape({x.dim(0), x.dim(1), Dim(heads), x.dim(2) / Dim(heads)}).transpose(1, 2);
}

Tensor merged_heads(const Tensor& x) {
  return x.transpose(1, 2).reshape({x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

namespace {

// (1, 1, queries, keys): whether a query sees a key, where the last query sees all of them.
Tensor causal_mask(const Tensor& q, const Tensor& k) {
  const Dim keys = k.dim(2), queries = q.dim(2);
  const Tensor at = Tensor::arange(keys);
  const Tensor last = at.index({Slice(keys - queries, keys)});
  return (at.unsqueeze(0) <= last.unsqueeze(1)).unsqueeze(0).unsqueeze(0);
}

Tensor repeated_heads(const Tensor& x, const Dim& heads) {
  if (x.dim(1) == heads) return x;
  const Dim times = heads / x.dim(1);
  return x.unsqueeze(2)
      .expand({x.dim(0), x.dim(1), times, x.dim(2), x.dim(3)})
      .reshape({x.dim(0), heads, x.dim(2), x.dim(3)});
}

}  // namespace

Attended attended(const Heads& x, const Seen& seen, const Scores& scores, bool weights) {
  const Tensor k = repeated_heads(x.k, x.q.dim(1)), v = repeated_heads(x.v, x.q.dim(1));
  const bool square = x.q.dim(2) == k.dim(2);
  const bool plain = !weights && scores.softcap == 0 && !scores.sink.defined() &&
                     !seen.bias.defined() && !seen.visible.defined() && !seen.hidden.defined();
  if (plain && (!seen.causal || square || x.q.dim(2) == Dim(1))) {
    AttentionOptions options;
    options.causal = seen.causal && square;
    options.scale = scores.scale;
    return {merged_heads(x.q.scaled_dot_product_attention(k, v, options)), {}};
  }
  const double scale =
      scores.scale != 0 ? scores.scale : 1 / std::sqrt(static_cast<double>(x.q.size(3)));
  Tensor s = widened(x.q).matmul(widened(k).T()) * scale;
  if (scores.softcap > 0) s = (s / scores.softcap).tanh() * scores.softcap;
  if (seen.hidden.defined()) s = s + seen.hidden.where(seen.filter, 0.0).cast(s.dtype());
  if (seen.bias.defined()) s = s + widened(seen.bias);
  if (seen.visible.defined()) s = seen.visible.where(s, -INFINITY);
  if (seen.causal) s = causal_mask(x.q, k).where(s, -INFINITY);
  // Rows that see nothing give 0.
  Tensor top = s.max(-1, true);
  const Tensor sink = scores.sink.defined()
                          ? widened(scores.sink).reshape({1, scores.sink.dim(0), 1, 1})
                          : Tensor();
  if (sink.defined()) top = top.maximum(sink);
  top = (top == -INFINITY).where(0, top).detach();
  const Tensor e = (s - top).exp();
  Tensor sum = e.sum(-1, true);
  if (sink.defined()) sum = sum + (sink - top).exp();
  const Tensor shares = e / (sum == 0).where(1, sum);
  return {merged_heads(shares.cast(x.v.dtype()).matmul(v)),
          weights ? shares.cast(x.q.dtype()) : Tensor()};
}

Tensor rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine, bool interleaved) {
  const Dim turned = cosine.dim(-1) * Dim(2), size = x.dim(3);
  const Tensor part = x.index({kEllipsis, Slice(turned)});
  const Tensor c = cosine.unsqueeze(1), s = sine.unsqueeze(1);  // the same for all heads
  Tensor result;
  if (interleaved) {
    const Tensor pairs = part.unflatten(-1, {Dim(-1), Dim(2)});
    const Tensor a = pairs.index({kEllipsis, 0}), b = pairs.index({kEllipsis, 1});
    result = Tensor::stack({a * c - b * s, b * c + a * s}, -1).reshape(part.dims());
  } else {
    const Tensor a = part.index({kEllipsis, Slice(cosine.dim(-1))});
    const Tensor b = part.index({kEllipsis, Slice(cosine.dim(-1), turned)});
    result = Tensor::cat({a * c - b * s, b * c + a * s}, -1);
  }
  if (turned == size) return result;
  return Tensor::cat({result, x.index({kEllipsis, Slice(turned, size)})}, -1);
}

namespace {

// What a mask of any of the forms of com.microsoft hides of the last positions of `keys`, as (batch
// or 1, 1, queries or 1, keys).
Tensor hidden_by(const NodeCall& call, const Tensor& mask, const Dim& batch, const Dim& queries,
                 const Dim& keys) {
  const Tensor at = Tensor::arange(keys).cast(mask.dtype()).reshape({1, 1, 1, keys});
  const auto per_batch = [&](const Tensor& x) { return x.reshape({batch, 1, 1, 1}); };
  switch (mask.ndim()) {
    case 1: {  // ends; or ends, then begins; or lengths, then sums of lengths
      const Tensor ends = per_batch(mask.index({Slice(batch)}));
      if (!(mask.dim(0) == batch * Dim(2))) return at >= ends;
      return (at >= ends) | (at < per_batch(mask.index({Slice(batch, batch * Dim(2))})));
    }
    case 2: return (mask == 0).unsqueeze(1).unsqueeze(1);
    case 3: return (mask == 0).unsqueeze(1);
    case 4: {  // (batch, 1, longest, longest)
      const Dim before = keys - queries;
      return mask.index({Slice(), Slice(), Slice(before, keys), Slice(keys)}) == 0;
    }
    default: call.refuse("a mask {}: 1 to 4 axes", mask.dims().text());
  }
}

Scores scores_of(const NodeCall& call) { return {call.number("scale", 0), 0, {}}; }

Seen seen_of(const NodeCall& call, const Tensor& mask, const Tensor& bias, const Tensor& q,
             const Tensor& k) {
  Seen seen;
  seen.bias = bias;
  seen.filter = call.number("mask_filter_value", -10000);
  seen.causal = call.integer("unidirectional", 0) != 0;
  if (mask.defined()) seen.hidden = hidden_by(call, mask, q.dim(0), q.dim(2), k.dim(2));
  return seen;
}

// Attention of projected queries, keys and values with a past (2, batch, heads, positions, size).
Values attend_with_past(const NodeCall& call, Heads x, const Tensor& mask, const Tensor& past,
                        const Tensor& bias) {
  if (past.defined()) {
    x.k = Tensor::cat({past[0], x.k}, 2);
    x.v = Tensor::cat({past[1], x.v}, 2);
  }
  const Seen seen = seen_of(call, mask, bias, x.q, x.k);
  Values results = {attended(x, seen, scores_of(call)).output};
  if (call.wants(1)) results.emplace_back(Tensor::stack({x.k, x.v}, 0));
  return results;
}

void require_plain_cache(const NodeCall& call) {
  if (call.integer("past_present_share_buffer", 0) != 0 || call.integer("do_rotary", 0) != 0)
    call.refuse(
        "past_present_share_buffer and do_rotary are not supported here; export the model "
        "without them");
}

// Input, weight and bias as floats to heads.
Heads projected(const NodeCall& call, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t heads = call.integer("num_heads");
  if (x.ndim() != 3 || weight.ndim() != 2)
    call.refuse("input {} and weights {}: (batch, positions, in) and (in, out)", x.dims().text(),
                weight.dims().text());
  const int64_t width = weight.size(1);
  std::vector<int64_t> sizes = call.ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, width / 3);
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1 || sizes[0] > width ||
      sizes[1] > width || sizes[0] + sizes[1] + sizes[2] != width)
    call.refuse("weights {} for queries, keys and values: three sizes that add up to {}",
                weight.dims().text(), width);
  Tensor all = x.matmul(weight);
  if (bias.defined()) all = all + bias;
  const std::vector<Tensor> parts = all.split(sizes, -1);
  return {split_heads(call, parts[0], heads), split_heads(call, parts[1], heads),
          split_heads(call, parts[2], heads)};
}

Values attention(const NodeCall& call) {
  require_plain_cache(call);
  const Heads x = projected(call, call.tensor(0), call.tensor(1), optional_tensor(call, 2));
  return attend_with_past(call, x, optional_tensor(call, 3), optional_tensor(call, 4),
                          optional_tensor(call, 5));
}

Values q_attention(const NodeCall& call) {
  require_plain_cache(call);
  const Heads x = projected(call, dequantised_at(call, 0, 3, 6), dequantised_at(call, 1, 4, 7),
                            optional_tensor(call, 2));
  return attend_with_past(call, x, optional_tensor(call, 5), optional_tensor(call, 8), {});
}

// ---- MultiHeadAttention

// (batch, positions, heads, n, size) to n tensors (batch, heads, positions, size).
std::vector<Tensor> unpacked(const Tensor& x, int64_t n) {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < n; ++i)
    parts.push_back(x.index({Slice(), Slice(), Slice(), i}).transpose(1, 2));
  return parts;
}

}  // namespace

Heads heads_of(const NodeCall& call) {
  const int64_t heads = call.integer("num_heads");
  const Tensor& query = call.tensor(0);
  Heads x;
  if (query.ndim() == 5) {
    const auto parts = unpacked(query, 3);
    return {parts[0], parts[1], parts[2]};
  }
  x.q = split_heads(call, query, heads);
  const Tensor& key = call.tensor(1);
  if (key.ndim() == 5) {
    const auto parts = unpacked(key, 2);
    x.k = parts[0], x.v = parts[1];
  } else if (key.ndim() == 4) {  // heads already
    x.k = key, x.v = call.tensor(2);
  } else {
    x.k = split_heads(call, key, heads), x.v = split_heads(call, call.tensor(2), heads);
  }
  return x;
}

void add_bias(const NodeCall& call, size_t input, Heads& x) {
  if (!call.has(input)) return;
  const Tensor& bias = call.tensor(input);
  const int64_t heads = call.integer("num_heads"), q = x.q.size(3) * heads, v = x.v.size(3) * heads;
  if (bias.ndim() != 1 || bias.size(0) != 2 * q + v)
    call.refuse("bias {} for queries of {} and values of {}: twice the one and the other",
                bias.dims().text(), q, v);
  const auto part = [&](int64_t begin, int64_t width) {
    return bias.index({Slice(Dim(begin), Dim(begin + width))}).reshape({heads, 1, width / heads});
  };
  x.q = x.q + part(0, q);
  const bool cross = call.has(1) && call.tensor(1).ndim() == 4;
  if (!cross) x.k = x.k + part(q, q), x.v = x.v + part(2 * q, v);
}

namespace {

Values multi_head_attention(const NodeCall& call) {
  if (call.has(8) || call.has(9))
    call.refuse(
        "buffers shared by past and present are not supported; export the model without "
        "them");
  Heads x = heads_of(call);
  add_bias(call, 3, x);
  if (call.has(6) && call.has(7)) {
    x.k = Tensor::cat({call.tensor(6), x.k}, 2);
    x.v = Tensor::cat({call.tensor(7), x.v}, 2);
  }
  const Seen seen = seen_of(call, optional_tensor(call, 4), optional_tensor(call, 5), x.q, x.k);
  const Attended made = attended(x, seen, scores_of(call), call.wants(3));
  Values results = {made.output, x.k, x.v};
  if (call.wants(3)) results.emplace_back(made.weights);
  return results;
}

// ---- RotaryEmbedding

Values rotary_embedding(const NodeCall& call) {
  const Tensor &x = call.tensor(0), &places = call.tensor(1), &cosines = call.tensor(2);
  if (cosines.ndim() != 2) call.refuse("cos_cache {}: (positions, half)", cosines.dims().text());
  const int64_t turned = call.integer("rotary_embedding_dim", 0);
  const int64_t heads = call.integer("num_heads", 0);
  const bool flat = x.ndim() == 3;
  if (!flat && x.ndim() != 4)
    call.refuse("input {}: (batch, positions, width) or (batch, heads, positions, size)",
                x.dims().text());
  if (flat && turned > 0 && heads < 1)
    call.refuse("rotary_embedding_dim {} needs num_heads", turned);
  const int64_t count = !flat        ? 0
                        : turned > 0 ? heads
                                     : x.size(2) / (2 * std::max<int64_t>(cosines.size(1), 1));
  const Tensor split = flat ? split_heads(call, x, count) : x;
  const Dim length = split.dim(2);
  const Tensor at = places.ndim() == 2
                        ? places
                        : places.reshape({1, 1}) + Tensor::arange(length).cast(places.dtype());
  const Tensor y = rotated(split, cosines.index({at}), call.tensor(3).index({at}),
                           call.integer("interleaved", 0) != 0);
  return {flat ? merged_heads(y) : y};
}

}  // namespace

std::span<const Operator> contrib_attention_operators() {
  static constexpr Operator kRows[] = {
      {kMicrosoft, "Attention", 1, attention},
      {kMicrosoft, "DecoderMaskedMultiHeadAttention", 1, decoder_masked_attention},
      {kMicrosoft, "GroupQueryAttention", 1, group_query_attention},
      {kMicrosoft, "MultiHeadAttention", 1, multi_head_attention},
      {kMicrosoft, "QAttention", 1, q_attention},
      {kMicrosoft, "RotaryEmbedding", 1, rotary_embedding},
  };
  return kRows;
}

}  // namespace weft::onnx
