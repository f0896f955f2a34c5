// Network: a model's layers as Tensor expressions, for every family the same ones, over a cache of
// keys and values.
#pragma once

#include <string>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/llm/config.h"
#include "weft/llm/kv_cache.h"
#include "weft/llm/rope.h"
#include "weft/llm/weights.h"
#include "weft/tensor/packed.h"

namespace weft::llm {

/// Rows of tokens, all equally many.
struct Batch {
  Tensor tokens, positions;   ///< (rows, tokens) i32
  std::vector<Place> places;  ///< of each row
};

struct Projection {
  Weight weight;  ///< (out, in)
  Tensor bias;    ///< may be undefined
  Factors factors = Factors::F32;
  bool mixed = false;
  Tensor operator()(const Tensor& x) const;
  bool defined() const { return weight.defined(); }
  /// Nothing but a product with the weight.
  bool is_bare() const { return !bias.defined() && !mixed && weight.factors.empty(); }
};

struct Scale {
  Tensor weight, bias;  ///< of a norm
  bool defined() const { return weight.defined(); }
};

struct ExpertWeights {
  Projection router, gate, up, down;  ///< weights (experts, out, in), biases (experts, out)
  Tensor rank_bias;  ///< (experts): of scores where experts are chosen, not of their shares
  Projection shared_gate, shared_up, shared_down, shared_router;
};

struct Layer {
  Scale attention_norm, ffn_norm, attention_post_norm, ffn_post_norm, q_norm, k_norm;
  Projection q, k, v, qkv, output;
  Projection q_a, q_b, kv_a, kv_b;  ///< of latent attention
  Weight k_b, v_b;  ///< in place of kv_b: (heads, rank, plain), (heads, value size, rank)
  Scale q_a_norm, kv_a_norm;
  Tensor sinks;  ///< (heads): scores of nothing
  Projection gate, up, down;
  ExpertWeights experts;
};

class Network {
 public:
  /// `positions`: so many there will be at most; what fills up a step may lie behind them.
  /// `factors`: of products with matrices. `mixed`: what products multiply and give is bf16, and
  /// what their gradients do, as training in mixed precision does; `factors` do not count then.
  /// Errors: "llm.weights" with all tensors that are missing or of another shape.
  Network(Config config, const Weights& weights, int64_t positions, Factors factors = Factors::F32,
          bool mixed = false);

  const Config& config() const { return config_; }
  bool writes() const { return output_.defined(); }  ///< not embeddings only
  /// Weights with the same numbers that lie otherwise.
  void use(const Weights& weights, Factors factors);
  /// (rows, tokens, dim), normed; writes the batch's keys and values to the cache.
  Tensor hidden(const Batch& batch, KvCache& cache) const;
  /// The same of whole texts (rows, tokens) i32 from their beginnings, without a cache: what
  /// gradients flow through to weights with requires_grad_(). `dropout`, in a TrainingScope: of the
  /// embeddings, of attention's shares and of what each part adds.
  Tensor hidden(const Tensor& tokens, double dropout = 0) const;
  /// Of an encoder: the first `count` of `tokens` (1, n) i32 are a text, the others fill it up.
  /// (1, n, dim).
  Tensor encoded(const Tensor& tokens, const Dim& count) const;
  Tensor logits(const Tensor& hidden) const;  ///< (..., dim) to (..., vocabulary)
  /// Where only rows of the tokens' table are looked at, none of it need stay in memory.
  void let_go_of_tokens() const;

 private:
  Tensor normed(const Tensor& x, const Scale& scale) const;
  Tensor embedded(const Tensor& tokens, const Tensor& positions) const;
  struct Heads {
    Tensor q, k, v;  // (rows, tokens, heads, size)
  };
  using Attend = FunctionRef<Tensor(const Heads& heads, int64_t layer)>;
  /// `attend` gives (rows, tokens, heads * size).
  Tensor through_layers(Tensor x, const Tensor& positions, double dropout, Attend attend) const;
  Tensor over_cache(const Heads& x, int64_t layer, const Batch& batch, KvCache& cache) const;
  Tensor over_itself(const Heads& x, int64_t layer, const Dim& rows, double dropout) const;
  Tensor over_all(const Heads& x, int64_t layer, const Tensor& mask) const;
  Tensor mask_over_all(const Dim& length, const Dim& count) const;
  Heads heads(const Tensor& x, int64_t layer, const Tensor& positions) const;
  Heads latent_heads(const Tensor& x, int64_t layer, const Tensor& positions) const;
  Tensor attended(const Heads& x, int64_t layer, const Batch& batch, size_t row,
                  const KvCache& cache) const;
  Tensor shares(const Tensor& products, const Tensor& visible, int64_t layer) const;
  Tensor over_itself_by_scores(const Tensor& q, const Tensor& k, const Tensor& v, int64_t layer,
                               double dropout) const;
  Tensor activated(const Tensor& gate, const Tensor& up) const;
  /// activated() of what the two give, of which neither needs to be in memory as a whole.
  Tensor gated(const Projection& gate, const Projection& up, const Tensor& x) const;
  Tensor feed_forward(const Tensor& x, const Layer& layer) const;
  Tensor experts(const Tensor& x, const ExpertWeights& w) const;
  Tensor by_expert(const Tensor& x, const ExpertWeights& w, const Tensor& ids, bool prompt) const;
  double attention_scale(int64_t layer) const;
  void bind(const Weights& weights, Factors factors);
  void bind_encoder(const Weights& weights, Factors factors);

  Config config_;
  bool mixed_, tied_ = false;
  Weight tokens_, positions_, token_types_;
  Tensor by_distance_;  ///< (2 context - 1, heads): what scores have for a key's distance
  std::vector<Layer> layers_;
  Scale embedding_norm_, output_norm_;
  Projection output_;
  RopeTable rope_, local_rope_;
};

}  // namespace weft::llm
