// Attention in the forms of com.microsoft: heads, what each query sees, rotary positions.
#pragma once

#include "weft/onnx/contrib.h"

namespace weft::onnx {

/// Queries, keys and values as (batch, heads, positions, size).
struct Heads {
  Tensor q, k, v;
};

/// What weakens or hides keys.
struct Seen {
  Tensor bias = {};     ///< added to the scores (batch or 1, heads or 1, queries, keys)
  Tensor visible = {};  ///< bool, of such a shape
  Tensor hidden = {};   ///< bool: padding, whose scores become `filter`
  double filter = -10000;
  bool causal = false;  ///< the last query sees all keys, the one before one less, ...
};

struct Scores {
  double scale = 0;    ///< 0: 1 / sqrt(size)
  double softcap = 0;  ///< cap tanh(score / cap)
  Tensor sink = {};    ///< (heads): a score of nothing, which takes its share
};

struct Attended {
  Tensor output;   ///< (batch, positions, heads times size)
  Tensor weights;  ///< (batch, heads, queries, keys), only if they were asked for
};
/// Attention as ONNX Runtime computes it. Fewer heads of keys than of queries are repeated.
Attended attended(const Heads& x, const Seen& seen, const Scores& scores, bool weights = false);

/// (batch, positions, heads * size) to (batch, heads, positions, size), and back.
Tensor split_heads(const NodeCall& call, const Tensor& x, int64_t heads);
Tensor merged_heads(const Tensor& x);

/// Of the inputs 0 to 2: (batch, positions, width), heads already, or packed together.
Heads heads_of(const NodeCall& call);
/// Adds a bias for the widths of q, k and v one after another, where `input` is given; for q alone
/// where the keys are heads already.
void add_bias(const NodeCall& call, size_t input, Heads& x);

/// x (batch, heads, positions, size) turned by angles whose cosines and sines are (batch or 1,
/// positions, half of what is turned): pairs of neighbours, or of the two halves (Su et al. 2021).
Tensor rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine, bool interleaved);

Values group_query_attention(const NodeCall& call);
// contrib_decoder_attention.cpp
Values decoder_masked_attention(const NodeCall& call);

}  // namespace weft::onnx
