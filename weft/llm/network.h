// Network: a model's layers as Tensor expressions, for every family the same ones, over a cache of
// keys and values.
#pragma once

#include <string>
#include <vector>

#include "weft/llm/config.h"
#include "weft/llm/rope.h"
#include "weft/llm/weights.h"
#include "weft/tensor/packed.h"

namespace weft::llm {

/// Keys and values of all layers, (slots, heads, positions, size) each. A slot holds one text.
struct KvCache {
  KvCache(const Config& config, int64_t slots, int64_t positions, DType dtype);
  int64_t bytes() const;
  std::vector<Tensor> keys, values;
  int64_t slots, positions;
};

/// Where a row of a batch lies: its slot, its first position, and how many positions of the slot
/// are looked at, which covers the row's last one.
struct Place {
  Dim slot, start, used;
};

/// Rows of tokens, all equally many.
struct Batch {
  Tensor tokens, positions;   ///< (rows, tokens) i32
  std::vector<Place> places;  ///< of each row
};

struct Projection {
  Weight weight;  ///< (out, in)
  Tensor bias;    ///< may be undefined
  Factors factors = Factors::F32;
  Tensor operator()(const Tensor& x) const;
  bool defined() const { return weight.defined(); }
};

struct Scale {
  Tensor weight, bias;  ///< of a norm
  bool defined() const { return weight.defined(); }
};

struct ExpertWeights {
  Projection router, gate, up, down;  ///< weights (experts, out, in), biases (experts, out)
  Projection shared_gate, shared_up, shared_down, shared_router;
};

struct Layer {
  Scale attention_norm, ffn_norm, attention_post_norm, ffn_post_norm, q_norm, k_norm;
  Projection q, k, v, qkv, output;
  Projection q_a, q_b, kv_a, kv_b;  ///< of latent attention
  Scale q_a_norm, kv_a_norm;
  Tensor sinks;  ///< (heads): scores of nothing
  Projection gate, up, down;
  ExpertWeights experts;
};

class Network {
 public:
  /// `positions`: so many there will be at most. `factors`: of products with matrices, but those of
  /// experts. Errors: "llm.weights" with all tensors that are missing or of another shape.
  Network(Config config, const Weights& weights, int64_t positions,
          Factors factors = Factors::F32);

  const Config& config() const { return config_; }
  /// (rows, tokens, dim), normed; writes the batch's keys and values to the cache.
  Tensor hidden(const Batch& batch, KvCache& cache) const;
  Tensor logits(const Tensor& hidden) const;  ///< (..., dim) to (..., vocabulary)

 private:
  Tensor normed(const Tensor& x, const Scale& scale) const;
  Tensor embedded(const Batch& batch) const;
  Tensor attention(const Tensor& x, int64_t layer, const Batch& batch, KvCache& cache) const;
  struct Heads {
    Tensor q, k, v;  // (rows, tokens, heads, size)
  };
  Heads heads(const Tensor& x, int64_t layer, const Tensor& positions) const;
  Heads latent_heads(const Tensor& x, int64_t layer, const Tensor& positions) const;
  Tensor attended(const Heads& x, int64_t layer, const Batch& batch, size_t row,
                  const KvCache& cache) const;
  Tensor activated(const Tensor& gate, const Tensor& up) const;
  Tensor feed_forward(const Tensor& x, const Layer& layer) const;
  Tensor experts(const Tensor& x, const ExpertWeights& w) const;
  void bind(const Weights& weights, Factors factors);

  Config config_;
  Weight tokens_, positions_;
  std::vector<Layer> layers_;
  Scale output_norm_;
  Projection output_;
  RopeTable rope_, local_rope_;
};

}  // namespace weft::llm
