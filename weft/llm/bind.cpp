// What a network takes from a model's weights, with all that is missing said at once.
#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/llm/network.h"

namespace weft::llm {

namespace {

/// (n) as (1, n).
Weight as_row(Weight w) {
  w.shape = {1, w.shape[0]};
  w.stored = w.stored.reshape(w.shape);
  return w;
}

class Binder {
 public:
  Binder(const Weights& weights, Factors factors, bool mixed)
      : weights_(weights), factors_(factors), mixed_(mixed) {}

  /// One of this shape; where it is not there: a problem, or an undefined one.
  Weight weight(const std::string& name, const std::vector<int64_t>& shape, bool required) {
    const Weight* found = weights_.find(name);
    if (found == nullptr) {
      if (required) problem(strformat("{} {} is missing", name, Dims(shape).text()));
      return {};
    }
    if (found->shape == Dims(shape)) return *found;
    problem(strformat("{} is {}, not {}", name, found->shape.text(), Dims(shape).text()));
    return {};
  }
  Tensor vector(const std::string& name, const std::vector<int64_t>& shape, bool required) {
    const Weight found = weight(name, shape, required);
    return found.defined() ? found.computed() : Tensor();
  }
  /// Any bias is taken; a matrix that is not required may be missing.
  Projection projection(const std::string& name, std::vector<int64_t> shape, bool required = true) {
    Projection p;
    p.weight = weight(name + ".weight", shape, required);
    shape.pop_back();
    p.bias = vector(name + ".bias", shape, false);
    p.factors = factors_;
    p.mixed = mixed_;
    return p;
  }
  /// (1, in), which GGUF files have as (in).
  Projection row(const std::string& name, int64_t in) {
    const Weight* found = weights_.find(name + ".weight");
    if (found == nullptr || found->shape != Dims({in}) || !is_plain(found->codec))
      return projection(name, {1, in});
    Projection p;
    p.weight = as_row(*found);
    p.factors = factors_;
    p.mixed = mixed_;
    return p;
  }
  /// Of any number of rows, where there is one. A single row is a vector in files that llama.cpp
  /// wrote: it counts dimensions without the last ones of 1 (ggml_n_dims).
  Weight table(const std::string& name, int64_t dim) {
    const Weight* found = weights_.find(name);
    if (found == nullptr) return {};
    if (found->shape == Dims({dim}) && is_plain(found->codec)) return as_row(*found);
    if (found->shape.size() == 2 && found->shape[0].value() > 0 && found->shape[1].value() == dim)
      return *found;
    problem(strformat("{} is {}, not rows of {}", name, found->shape.text(), dim));
    return {};
  }
  Scale scale(const std::string& name, const std::vector<int64_t>& shape, bool required = true) {
    return {vector(name + ".weight", shape, required), vector(name + ".bias", shape, false)};
  }
  Scale scale(const std::string& name, int64_t size, bool required = true) {
    return scale(name, std::vector{size}, required);
  }
  bool has(const std::string& name) const { return weights_.find(name) != nullptr; }
  /// Throws where there were problems.
  void finish(const std::string& family) const {
    if (count_ == 0) return;
    fail("llm.weights", "the file's tensors do not make up a {}, {} wrong:{}{}", family, count_,
         text_, count_ > kMost ? "\n  ..." : "");
  }

 private:
  static constexpr int kMost = 12;
  void problem(const std::string& text) {
    if (++count_ <= kMost) text_ += "\n  " + text;
  }
  const Weights& weights_;
  const Factors factors_;
  const bool mixed_;
  std::string text_;
  int count_ = 0;
};

void bind_latent(Binder& b, const Config& c, const std::string& at, Layer& layer) {
  const int64_t q_wide = c.heads * c.head_dim, kv_wide = c.heads * (c.latent.plain + c.value_dim);
  if (c.latent.q_rank > 0) {
    layer.q_a = b.projection(at + "attn_q_a", {c.latent.q_rank, c.dim});
    layer.q_a_norm = b.scale(at + "attn_q_a_norm", c.latent.q_rank);
    layer.q_b = b.projection(at + "attn_q_b", {q_wide, c.latent.q_rank});
  } else {
    layer.q = b.projection(at + "attn_q", {q_wide, c.dim});
  }
  layer.kv_a = b.projection(at + "attn_kv_a_mqa", {c.latent.kv_rank + c.rope.size, c.dim});
  layer.kv_a_norm = b.scale(at + "attn_kv_a_norm", c.latent.kv_rank);
  if (!b.has(at + "attn_k_b.weight")) {
    layer.kv_b = b.projection(at + "attn_kv_b", {kv_wide, c.latent.kv_rank});
    return;
  }
  layer.k_b = b.weight(at + "attn_k_b.weight", {c.heads, c.latent.kv_rank, c.latent.plain}, true);
  layer.v_b = b.weight(at + "attn_v_b.weight", {c.heads, c.value_dim, c.latent.kv_rank}, true);
}

void bind_attention(Binder& b, const Config& c, const std::string& at, Layer& layer) {
  const int64_t wide = c.heads * c.head_dim, keys = c.kv_heads * c.head_dim;
  const int64_t values = c.kv_heads * c.value_dim;
  if (c.latent.kv_rank > 0) {
    bind_latent(b, c, at, layer);
  } else if (b.has(at + "attn_qkv.weight")) {
    layer.qkv = b.projection(at + "attn_qkv", {wide + keys + values, c.dim});
  } else {
    layer.q = b.projection(at + "attn_q", {wide, c.dim});
    layer.k = b.projection(at + "attn_k", {keys, c.dim});
    layer.v = b.projection(at + "attn_v", {values, c.dim});
  }
  layer.output = b.projection(at + "attn_output", {c.dim, c.heads * c.value_dim});
  const auto head_norm = [&](const char* name, int64_t heads) {
    std::vector<int64_t> shape = {c.norm_whole_heads ? heads * c.head_dim : c.head_dim};
    if (c.norm_each_head) shape.insert(shape.begin(), heads);
    return b.scale(at + name, shape, false);
  };
  layer.q_norm = head_norm("attn_q_norm", c.heads);
  layer.k_norm = head_norm("attn_k_norm", c.kv_heads);
  layer.sinks = b.vector(at + "attn_sinks.weight", {c.heads}, false);
}

void bind_ffn(Binder& b, const Config& c, const std::string& at, Layer& layer) {
  const bool apart = c.gated && b.has(at + "ffn_gate.weight");
  if (apart) layer.gate = b.projection(at + "ffn_gate", {c.ffn, c.dim});
  layer.up = b.projection(at + "ffn_up", {c.gated && !apart ? 2 * c.ffn : c.ffn, c.dim});
  layer.down = b.projection(at + "ffn_down", {c.dim, c.ffn});
}

void bind_experts(Binder& b, const Config& c, const std::string& at, ExpertWeights& w) {
  const Experts& e = c.experts;
  w.router = b.projection(at + "ffn_gate_inp", {e.count, c.dim});
  w.gate = b.projection(at + "ffn_gate_exps", {e.count, e.ffn, c.dim});
  w.up = b.projection(at + "ffn_up_exps", {e.count, e.ffn, c.dim});
  w.down = b.projection(at + "ffn_down_exps", {e.count, c.dim, e.ffn});
  w.rank_bias = b.vector(at + "exp_probs_b.bias", {e.count}, false);
  if (e.shared_ffn == 0) return;
  w.shared_gate = b.projection(at + "ffn_gate_shexp", {e.shared_ffn, c.dim});
  w.shared_up = b.projection(at + "ffn_up_shexp", {e.shared_ffn, c.dim});
  w.shared_down = b.projection(at + "ffn_down_shexp", {c.dim, e.shared_ffn});
  if (b.has(at + "ffn_gate_inp_shexp.weight"))
    w.shared_router = b.row(at + "ffn_gate_inp_shexp", c.dim);
}

/// Names are llama.cpp's. Norms come behind, where the network has its others.
void bind_encoder_layer(Binder& b, const Config& c, const std::string& at, Layer& layer) {
  bind_attention(b, c, at, layer);
  bind_ffn(b, c, at, layer);
  const bool named = b.has(at + "ffn_norm.weight");  // as transformers' nomic_bert, by what follows
  layer.ffn_norm = b.scale(at + (named ? "ffn_norm" : "attn_output_norm"), c.dim);
  layer.ffn_post_norm = b.scale(at + "layer_output_norm", c.dim);
}

/// T5's (Raffel et al. 2020): half of the buckets for keys ahead, half of those for a distance
/// each, the others for ranges that grow up to 128.
int32_t distance_bucket(int64_t distance, int64_t buckets) {
  constexpr float kFar = 128;
  const int64_t half = buckets / 2, near = half / 2, n = std::abs(distance);
  const int64_t side = distance > 0 ? half : 0;
  if (n < near) return static_cast<int32_t>(side + n);
  const auto first = static_cast<float>(near);
  const float range = std::log(static_cast<float>(n) / first) / std::log(kFar / first) *
                      static_cast<float>(half - near);
  return static_cast<int32_t>(side + std::min(near + static_cast<int64_t>(range), half - 1));
}

/// The table's rows for all distances that there are, from the last token's to the first's on.
Tensor by_distance(const Tensor& table, int64_t context) {
  std::vector<int32_t> buckets;
  for (int64_t d = 1 - context; d < context; ++d)
    buckets.push_back(distance_bucket(d, table.size(0)));
  return table.index({Tensor::from(buckets)}).realize();
}

}  // namespace

void Network::bind_encoder(const Weights& weights, Factors factors) {
  const Config& c = config_;
  Binder b(weights, factors, mixed_);
  tokens_ = b.weight("token_embd.weight", {c.vocabulary, c.dim}, true);
  if (c.learned_positions)
    positions_ = b.weight("position_embd.weight", {c.context + c.first_position, c.dim}, true);
  token_types_ = b.table("token_types.weight", c.dim);
  Weight distances;
  if (c.distance_buckets > 0)
    distances = b.weight("attn_rel_b.weight", {c.distance_buckets, c.heads}, true);
  embedding_norm_ = b.scale("token_embd_norm", c.dim);
  for (int64_t i = 0; i < c.layers; ++i)
    bind_encoder_layer(b, c, strformat("blk.{}.", i), layers_.emplace_back());
  b.finish(c.family);
  // Now a context is as long as the table of positions: no file asks for more than it has.
  if (distances.defined()) by_distance_ = by_distance(distances.value(), c.context);
}

void Network::bind(const Weights& weights, Factors factors) {
  const Config& c = config_;
  if (c.encoder) return bind_encoder(weights, factors);
  Binder b(weights, factors, mixed_);
  tokens_ = b.weight("token_embd.weight", {c.vocabulary, c.dim}, true);
  if (c.learned_positions) positions_ = b.weight("position_embd.weight", {c.context, c.dim}, true);
  output_norm_ = b.scale("output_norm", c.dim);
  tied_ = !b.has("output.weight") && !c.own_output;
  if (tied_ || !c.embeds || b.has("output.weight"))
    output_ = b.projection(tied_ ? "token_embd" : "output", {c.vocabulary, c.dim});
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = strformat("blk.{}.", i);
    Layer& layer = layers_.emplace_back();
    // gpt-oss's GGUF files call the norm before the feed-forward part by what it comes after.
    const bool moved = !c.post_norms && !b.has(at + "ffn_norm.weight");
    if (c.pre_norms) {
      layer.attention_norm = b.scale(at + "attn_norm", c.dim);
      if (!c.parallel)
        layer.ffn_norm = b.scale(at + (moved ? "post_attention_norm" : "ffn_norm"), c.dim);
    }
    if (c.post_norms) {
      layer.attention_post_norm = b.scale(at + "post_attention_norm", c.dim);
      layer.ffn_post_norm = b.scale(at + "post_ffw_norm", c.dim);
    }
    bind_attention(b, c, at, layer);
    if (c.has_experts(i))
      bind_experts(b, c, at, layer.experts);
    else
      bind_ffn(b, c, at, layer);
  }
  b.finish(c.family);
}

}  // namespace weft::llm
