// Multi-head attention and the layers of transformers (Vaswani et al. 2017). layers.h says what
// holds for all layers.
#pragma once

#include <vector>

#include "weft/nn/layers.h"

namespace weft::nn {

struct HeadOptions {
  double dropout = 0;  // of the weights, while training
  bool bias = true;
  int64_t key_dim = 0, value_dim = 0;  // of keys and values where not the embedding's; 0: that
  bool batch_first = false;            // (batch, positions, dim), not (positions, batch, dim)
};

// Which keys a query sees: those that every part allows. Note that PyTorch's bool masks are true
// where these are false.
struct Visible {
  // bool, true takes part, or numbers that are added to the scores; broadcasts to (batch, heads,
  // queries, keys).
  Tensor mask = {};
  Tensor keys = {};     // bool (batch, keys): true is a key, false padding
  bool causal = false;  // query i sees keys up to i
};

// Query (queries, batch, dim), key (keys, batch, key_dim) and value (keys, batch, value_dim) to
// (queries, batch, dim). dim is a multiple of heads.
struct MultiheadAttention {
  MultiheadAttention(int64_t dim, int64_t heads, const HeadOptions& options = {},
                     CallSite at = CallSite::here());
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const Visible& visible = {}, CallSite = CallSite::here()) const;
  // Of x with itself: one product where three would be.
  Tensor operator()(const Tensor& x, const Visible& visible = {},
                    CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor in_proj_weight;  // (3 dim, dim) for query, key, value, Glorot uniform; or these three:
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;  // where keys or values have other sizes
  Tensor in_proj_bias;                                 // (3 dim,), zeros
  Linear out_proj;                                     // its bias starts with zeros
  int64_t heads;
  HeadOptions options;

 private:
  std::vector<Tensor> project(const std::vector<Tensor>& inputs) const;
  Tensor attend(const std::vector<Tensor>& projected, const Visible& visible) const;
};

enum class Activation : uint8_t { Relu, Gelu };

struct TransformerOptions {
  int64_t feedforward = 2048;
  double dropout = 0.1;  // while training: of attention's weights and before every sum
  Activation activation = Activation::Relu;
  double eps = 1e-5;  // of the norms
  bool batch_first = false;
  bool norm_first = false;  // normalise what a part takes, not the sum that it gives
  bool bias = true;         // of everything, the norms, too
};

// Attention of x with itself, then two Linears, each with a norm and added to what it took. x
// (positions, batch, dim) to the same shape.
struct TransformerEncoderLayer {
  TransformerEncoderLayer(int64_t dim, int64_t heads, const TransformerOptions& options = {},
                          CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, const Visible& visible = {},
                    CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  TransformerOptions options;
  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
};

// The same with an attention to `memory` (positions of its own, batch, dim) in between.
struct TransformerDecoderLayer {
  TransformerDecoderLayer(int64_t dim, int64_t heads, const TransformerOptions& options = {},
                          CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, const Tensor& memory, const Visible& visible = {},
                    const Visible& memory_visible = {}, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  TransformerOptions options;
  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
};

// Layers one after the other, and a norm after the last where final_norm. The layers start with
// weights of their own; PyTorch's start as copies of one.
struct TransformerEncoder {
  TransformerEncoder(int64_t layer_count, int64_t dim, int64_t heads,
                     const TransformerOptions& options = {}, bool final_norm = false,
                     CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, const Visible& visible = {},
                    CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  std::vector<TransformerEncoderLayer> layers;
  std::vector<LayerNorm> norm;  // one or none
};
struct TransformerDecoder {
  TransformerDecoder(int64_t layer_count, int64_t dim, int64_t heads,
                     const TransformerOptions& options = {}, bool final_norm = false,
                     CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, const Tensor& memory, const Visible& visible = {},
                    const Visible& memory_visible = {}, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  std::vector<TransformerDecoderLayer> layers;
  std::vector<LayerNorm> norm;  // one or none
};

}  // namespace weft::nn
