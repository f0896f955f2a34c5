#include "weft/llm/network.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/io/host_memory.h"
#include "weft/tensor/transforms.h"

namespace weft::llm {

namespace {

/// Of numbers in bf16, which are rounded once, both ways, rather than in each product that uses
/// them.
Tensor mixed_product(const Tensor& x, const Tensor& weight) {
  const auto half = [](const Tensor& t) { return t.cast(DType::BF16).contiguous(); };
  return contiguous_backward(half(x).matmul(half(weight).T())).cast(DType::F32);
}

}  // namespace

Tensor Projection::operator()(const Tensor& x) const {
  Tensor y = mixed ? mixed_product(x, weight.value()) : product_with(x, weight.value(), factors);
  for (const LowRank& f : weight.factors) y = y + x.matmul(f.a.T()).matmul(f.b.T()) * f.scale;
  return bias.defined() ? y + bias : y;
}

Network::Network(Config config, const Weights& weights, int64_t positions, Factors factors,
                 bool mixed)
    : config_(std::move(config)),
      mixed_(mixed),
      rope_(rope_table(config_.rope, positions)),
      local_rope_(config_.local_rope.size > 0 ? rope_table(config_.local_rope, positions) : rope_) {
  bind(weights, factors);
}

void Network::use(const Weights& weights, Factors factors) {
  layers_.clear();
  bind(weights, factors);
}

Tensor Network::normed(const Tensor& x, const Scale& scale) const {
  if (!scale.defined()) return x;
  Tensor y = config_.norm == Norm::Layer
                 ? x.layernorm(-1, config_.norm_epsilon)
                 : x * ((x * x).mean(-1, true) + config_.norm_epsilon).rsqrt();
  y = y * scale.weight;
  return scale.bias.defined() ? y + scale.bias : y;
}

Tensor Network::embedded(const Tensor& tokens, const Tensor& positions) const {
  Tensor x = tokens_.value().index({tokens});
  if (config_.embedding_scale != 1) x = x * config_.embedding_scale;
  if (positions_.defined()) x = x + positions_.value().index({positions + config_.first_position});
  if (token_types_.defined()) x = x + token_types_.value().index({0});  // all are of one text
  return normed(x, embedding_norm_);
}

void Network::let_go_of_tokens() const {
  if (!tied_) let_go(tokens_.stored);
}

Tensor Network::through_layers(Tensor x, const Tensor& positions, double dropout,
                               Attend attend) const {
  const auto part = [&](const Tensor& y) {
    return config_.residual_scale == 1 ? y : y * config_.residual_scale;
  };
  for (int64_t i = 0; i < config_.layers; ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    const Tensor given = normed(x, layer.attention_norm);
    const Heads all =
        config_.latent.kv_rank > 0 ? latent_heads(given, i, positions) : heads(given, i, positions);
    const Tensor seen = layer.output(attend(all, i));
    // Kept whole: who reads it would else add up what all layers before made, which lives as long.
    x = (x + part(normed(seen, layer.attention_post_norm)).dropout(dropout)).contiguous();
    const Tensor y = config_.parallel ? given : normed(x, layer.ffn_norm);
    const Tensor made = config_.has_experts(i) ? experts(y, layer.experts) : feed_forward(y, layer);
    x = config_.encoder ? normed(y + made, layer.ffn_post_norm)
                        : x + part(normed(made, layer.ffn_post_norm)).dropout(dropout);
    x = x.contiguous();
  }
  return normed(x, output_norm_);
}

Tensor Network::hidden(const Batch& batch, KvCache& cache) const {
  return through_layers(
      embedded(batch.tokens, batch.positions), batch.positions, 0,
      [&](const Heads& all, int64_t layer) { return over_cache(all, layer, batch, cache); });
}

/// All rows as one, but in attention: weights' gradients are then sums along one axis.
Tensor Network::hidden(const Tensor& tokens, double dropout) const {
  const Dim rows = tokens.dim(0), length = tokens.dim(1);
  const Tensor positions = Tensor::arange(length).unsqueeze(0);
  const Tensor x = embedded(tokens, positions).dropout(dropout);
  const Tensor y = through_layers(
      x.reshape({1, rows * length, config_.dim}),
      positions.expand({rows, length}).reshape({1, rows * length}), dropout,
      [&](const Heads& all, int64_t layer) { return over_itself(all, layer, rows, dropout); });
  return y.reshape({rows, length, config_.dim});
}

Tensor Network::encoded(const Tensor& tokens, const Dim& count) const {
  const Tensor positions = Tensor::arange(tokens.dim(1)).unsqueeze(0);
  const Tensor mask = mask_over_all(tokens.dim(1), count);
  return through_layers(
      embedded(tokens, positions), positions, 0,
      [&](const Heads& all, int64_t layer) { return over_all(all, layer, mask); });
}

Tensor Network::logits(const Tensor& hidden) const {
  Tensor y = output_(hidden);
  if (config_.logit_divisor != 1) y = y / config_.logit_divisor;
  return config_.logit_cap > 0 ? (y / config_.logit_cap).tanh() * config_.logit_cap : y;
}

// ---- attention

Network::Heads Network::heads(const Tensor& x, int64_t i, const Tensor& positions) const {
  const Config& c = config_;
  const Layer& layer = layers_[static_cast<size_t>(i)];
  Tensor q, k, v;
  if (layer.qkv.defined()) {
    const int64_t wide = c.heads * c.head_dim, narrow = c.kv_heads * c.head_dim;
    const auto parts =
        layer.qkv(x).split(std::vector<int64_t>{wide, narrow, c.kv_heads * c.value_dim}, -1);
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = layer.q(x), k = layer.k(x), v = layer.v(x);
  }
  const auto split = [](const Tensor& t, int64_t count, int64_t size) {
    return t.reshape({t.dim(0), t.dim(1), count, size});
  };
  v = v.contiguous();  // a product of its own, not one in the shape of the cache that it goes to
  if (c.norm_whole_heads) q = normed(q, layer.q_norm), k = normed(k, layer.k_norm);
  if (c.clip > 0)
    for (Tensor* t : {&q, &k, &v}) *t = t->clamp(-c.clip, c.clip);
  q = split(q, c.heads, c.head_dim), k = split(k, c.kv_heads, c.head_dim);
  if (!c.norm_whole_heads) q = normed(q, layer.q_norm), k = normed(k, layer.k_norm);
  const RopeTable none;
  const RopeTable& table = !c.is_placed(i) ? none : c.is_local(i) ? local_rope_ : rope_;
  const bool neighbours = c.rope.neighbours;
  return {turned(q, table, positions, neighbours), turned(k, table, positions, neighbours),
          split(v, c.kv_heads, c.value_dim)};
}

/// DeepSeek-V2's: what a head's key has without positions, and its value, come from a narrow
/// vector; the part with positions is one for all heads.
Network::Heads Network::latent_heads(const Tensor& x, int64_t i, const Tensor& positions) const {
  const Config& c = config_;
  const Layer& layer = layers_[static_cast<size_t>(i)];
  const Dim rows = x.dim(0), length = x.dim(1);
  const Tensor wide =
      layer.q_b.defined() ? layer.q_b(normed(layer.q_a(x), layer.q_a_norm)) : layer.q(x);
  const auto q = wide.reshape({rows, length, c.heads, c.head_dim})
                     .split(std::vector<int64_t>{c.latent.plain, c.rope.size}, -1);
  const auto narrow = layer.kv_a(x).split(std::vector<int64_t>{c.latent.kv_rank, c.rope.size}, -1);
  const Tensor latent = normed(narrow[0], layer.kv_a_norm);
  Tensor plain, values;  // (rows, length, heads, size)
  if (layer.kv_b.defined()) {
    const auto both = layer.kv_b(latent)
                          .reshape({rows, length, c.heads, c.latent.plain + c.value_dim})
                          .split(std::vector<int64_t>{c.latent.plain, c.value_dim}, -1);
    plain = both[0], values = both[1];
  } else {
    const Tensor each = latent.unsqueeze(1);  // for every head
    plain = each.matmul(layer.k_b.value()).transpose(1, 2);
    values = each.matmul(layer.v_b.value().T()).transpose(1, 2);
  }
  const Tensor placed = turned(narrow[1].unsqueeze(2), rope_, positions, c.rope.neighbours)
                            .expand({rows, length, c.heads, c.rope.size});
  return {Tensor::cat({q[0], turned(q[1], rope_, positions, c.rope.neighbours)}, -1),
          Tensor::cat({plain, placed}, -1), values};
}

namespace {

/// One row of heads: (1, heads, tokens, size).
Tensor row_of(const Tensor& x, size_t row) {
  return x.index({Slice(Dim(row), Dim(row + 1))}).transpose(1, 2);
}

/// With a score of nothing for each head, which takes its share (gpt-oss).
Tensor softmax_with(const Tensor& sink, const Tensor& scores) {
  const Tensor top = scores.max(-1, true).maximum(sink).detach();  // any would do
  const Tensor e = (scores - top).exp();
  return e / (e.sum(-1, true) + (sink - top).exp());
}

}  // namespace

double Network::attention_scale(int64_t layer) const {
  const double scale = config_.scale_of_scores();
  return config_.scale_by_layer ? scale / static_cast<double>(layer + 1) : scale;
}

/// How much of each key a query takes, of products (.., key heads, group, queries, keys).
Tensor Network::shares(const Tensor& products, const Tensor& visible, int64_t i) const {
  const Config& c = config_;
  Tensor scores = products * attention_scale(i);
  if (c.attention_cap > 0) scores = (scores / c.attention_cap).tanh() * c.attention_cap;
  scores = visible.where(scores, -INFINITY);
  const Tensor& sinks = layers_[static_cast<size_t>(i)].sinks;
  if (!sinks.defined()) return scores.softmax();
  return softmax_with(sinks.reshape({1, c.kv_heads, c.heads / c.kv_heads, 1, 1}), scores);
}

/// Of one row, which looks at its own slot: (1, tokens, heads * size). Rows do not see each other,
/// and what one gives does not depend on who else is there.
Tensor Network::attended(const Heads& x, int64_t i, const Batch& batch, size_t row,
                         const KvCache& cache) const {
  const Config& c = config_;
  const auto layer = static_cast<size_t>(i);
  const Place& place = batch.places[row];
  const bool local = c.is_local(i);
  const RowPlace& at = local ? place.near : place.all;
  const Dim length = x.q.dim(1);
  const int64_t group = c.heads / c.kv_heads;
  const Tensor q = row_of(x.q, row).reshape({1, c.kv_heads, group, length, c.head_dim});
  const Tensor products = q.matmul(cache.keys[layer].read(place.slot, at.seen).T());
  const auto counted = [](const Dim& from, const Dim& count) {
    return Tensor::arange(from + count).index({Slice(from, from + count)});
  };
  const Tensor here = counted(at.start, length).reshape({1, 1, 1, length, 1});
  const Tensor there = counted(at.seen.first, at.seen.count).reshape({1, 1, 1, 1, at.seen.count});
  Tensor visible = there <= here;
  if (local) visible = visible & (there > here - c.window);
  const Tensor y = shares(products, visible, i)
                       .matmul(cache.values[layer].read(place.slot, at.seen))
                       .reshape({1, c.heads, length, c.value_dim});
  return y.transpose(1, 2).reshape({1, length, c.heads * c.value_dim});
}

Tensor Network::over_cache(const Heads& x, int64_t i, const Batch& batch, KvCache& cache) const {
  const auto layer = static_cast<size_t>(i);
  for (size_t row = 0; row < batch.places.size(); ++row) {
    const Place& at = batch.places[row];
    const Dim& start = config_.is_local(i) ? at.near.start : at.all.start;
    cache.keys[layer].write(row_of(x.k, row), at.slot, start);
    cache.values[layer].write(row_of(x.v, row), at.slot, start);
  }
  std::vector<Tensor> rows;
  for (size_t row = 0; row < batch.places.size(); ++row)
    rows.push_back(attended(x, i, batch, row, cache));
  return rows.size() == 1 ? rows[0] : Tensor::cat(rows, 0);
}

Tensor Network::over_itself(const Heads& x, int64_t i, const Dim& rows, double dropout) const {
  const Config& c = config_;
  const Dim length = x.q.dim(1) / rows;
  const DType dtype = mixed_ ? DType::BF16 : DType::F32;
  const auto side = [&](const Tensor& t) {  // (rows, heads, length, size)
    return t.cast(dtype).reshape({rows, length, t.dim(2), t.dim(3)}).transpose(1, 2);
  };
  const Tensor q = side(x.q), k = side(x.k), v = side(x.v);
  AttentionOptions options;
  options.causal = true;
  options.dropout = dropout;
  options.grouped_queries = c.heads != c.kv_heads;
  options.window = c.is_local(i) ? c.window : 0;
  options.scale = attention_scale(i);
  const bool plain = c.attention_cap == 0 && !layers_[static_cast<size_t>(i)].sinks.defined();
  const Tensor y = plain ? q.scaled_dot_product_attention(k, v, options)
                         : over_itself_by_scores(q, k, v, i, dropout);
  return y.cast(DType::F32).transpose(1, 2).reshape({1, rows * length, c.heads * c.value_dim});
}

/// Which keys are no filling; where distances count, what they do, and -inf for filling. (1, heads
/// or 1, queries or 1, length).
Tensor Network::mask_over_all(const Dim& length, const Dim& count) const {
  const Tensor there = Tensor::arange(length);
  const Tensor visible =
      (there < Tensor::arange(count + Dim(1)).index({Slice(count, count + Dim(1))}))
          .reshape({1, 1, 1, length});
  if (!by_distance_.defined()) return visible;
  const Tensor added = by_distance_.index({there - there.unsqueeze(-1) + (config_.context - 1)});
  return visible.where(added.permute({2, 0, 1}).unsqueeze(0), -INFINITY);
}

Tensor Network::over_all(const Heads& x, int64_t i, const Tensor& mask) const {
  const Dim length = x.q.dim(1);
  AttentionOptions options;
  options.mask = &mask;
  options.scale = attention_scale(i);
  const auto side = [](const Tensor& t) { return t.transpose(1, 2); };
  const Tensor y = side(x.q).scaled_dot_product_attention(side(x.k), side(x.v), options);
  return y.transpose(1, 2).reshape({1, length, config_.heads * config_.value_dim});
}

/// With caps or sinks: (rows, heads, length, size) of each.
Tensor Network::over_itself_by_scores(const Tensor& q, const Tensor& k, const Tensor& v, int64_t i,
                                      double dropout) const {
  const Config& c = config_;
  const int64_t group = c.heads / c.kv_heads;
  const Dim rows = q.dim(0), length = q.dim(2);
  const Tensor queries = q.reshape({rows, c.kv_heads, group, length, c.head_dim});
  const Tensor there = Tensor::arange(length), here = there.unsqueeze(-1);
  Tensor visible = there <= here;
  if (c.is_local(i)) visible = visible & (there > here - c.window);
  const Tensor products = queries.matmul(k.unsqueeze(2).T()).cast(DType::F32);
  const Tensor taken = shares(products, visible, i).dropout(dropout).cast(v.dtype());
  return taken.matmul(v.unsqueeze(2)).reshape({rows, c.heads, length, c.value_dim});
}

// ---- feed-forward

Tensor Network::activated(const Tensor& gate, const Tensor& up) const {
  switch (config_.activation) {
    case Activation::Silu: return gate.silu() * up;
    case Activation::GeluTanh: return gate.gelu(true) * up;
    case Activation::Gelu: return gate.gelu(false) * up;
    case Activation::Relu: return gate.relu() * up;
    case Activation::Relu2: return gate.relu().square() * up;
    case Activation::GptOss: break;
  }
  constexpr double kSlope = 1.702, kLimit = 7;  // gpt-oss's
  const Tensor low = gate.clamp_max(kLimit);
  return low * (low * kSlope).sigmoid() * (up.clamp(-kLimit, kLimit) + 1);
}

Tensor Network::gated(const Projection& gate, const Projection& up, const Tensor& x) const {
  if (!gate.is_bare() || !up.is_bare()) return activated(gate(x), up(x));
  const auto both = [&](const Tensors& products) { return activated(products[0], products[1]); };
  return products_with(x, {gate.weight.value(), up.weight.value()}, both, gate.factors);
}

Tensor Network::feed_forward(const Tensor& x, const Layer& layer) const {
  if (layer.gate.defined()) return layer.down(gated(layer.gate, layer.up, x));
  const Tensor up = layer.up(x);
  if (!config_.gated) return layer.down(activated(up, Tensor(Scalar(1.0F))));
  const std::vector<Tensor> parts = up.chunk(2, -1);  // both in one matrix, the gate first
  return layer.down(activated(parts[0], parts[1]));
}

}  // namespace weft::llm
