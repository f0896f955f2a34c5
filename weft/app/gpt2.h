// GPT-2 (Radford et al. 2019) as a graph for benchmarks: random weights, no tokens of meaning.
#pragma once

#include <vector>

#include "weft/nn/layers.h"

namespace weft {

struct Gpt2Config {
  int64_t layers = 12, dim = 768, heads = 12, vocabulary = 50257, context = 1024;
};

struct Gpt2Block {
  explicit Gpt2Block(const Gpt2Config& config);
  Tensor operator()(const Tensor& x) const;  // (batch, length, dim) to the same
  void visit(StateVisitor& v);

  int64_t heads;
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, out;  // attention: dim to 3 * dim, dim to dim
  nn::Linear up, down;  // dim to 4 * dim and back

 private:
  Tensor attention(const Tensor& x) const;
};

struct Gpt2 {
  explicit Gpt2(const Gpt2Config& config = {});
  // Token ids (batch, length) to logits (batch, length, vocabulary).
  Tensor operator()(const Tensor& ids) const;
  void visit(StateVisitor& v);

  nn::Embedding tokens, positions;  // the logits use the tokens' table again
  std::vector<Gpt2Block> blocks;
  nn::LayerNorm norm;
};

}  // namespace weft
