#include "weft/app/gpt2.h"

namespace weft {

Gpt2Block::Gpt2Block(const Gpt2Config& c)
    : heads(c.heads),
      norm1(c.dim),
      norm2(c.dim),
      qkv(c.dim, 3 * c.dim),
      out(c.dim, c.dim),
      up(c.dim, 4 * c.dim),
      down(4 * c.dim, c.dim) {}

Tensor Gpt2Block::attention(const Tensor& x) const {
  const Dim batch = x.dim(0), length = x.dim(1), dim = x.dim(2);
  const auto split = [&](const Tensor& t) {  // (batch, heads, length, dim / heads)
    return t.reshape({batch, length, heads, dim / heads}).transpose(1, 2);
  };
  const std::vector<Tensor> parts = qkv(x).chunk(3, -1);
  const Tensor mixed = split(parts[0]).scaled_dot_product_attention(
      split(parts[1]), split(parts[2]), {.causal = true});
  return out(mixed.transpose(1, 2).reshape({batch, length, dim}));
}

Tensor Gpt2Block::operator()(const Tensor& x) const {
  const Tensor y = x + attention(norm1(x));
  return y + down(up(norm2(y)).gelu());
}

void Gpt2Block::visit(StateVisitor& v) {
  v("ln_1", norm1);
  v("attn.c_attn", qkv);
  v("attn.c_proj", out);
  v("ln_2", norm2);
  v("mlp.c_fc", up);
  v("mlp.c_proj", down);
}

Gpt2::Gpt2(const Gpt2Config& c)
    : tokens(c.vocabulary, c.dim), positions(c.context, c.dim), norm(c.dim) {
  for (int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(c);
}

Tensor Gpt2::operator()(const Tensor& ids) const {
  Tensor x = tokens(ids) + positions(Tensor::arange(ids.dim(1)));
  for (const Gpt2Block& block : blocks) x = block(x);
  return norm(x).linear(tokens.weight.T());
}

void Gpt2::visit(StateVisitor& v) {
  v("wte", tokens);
  v("wpe", positions);
  v("h", blocks);
  v("ln_f", norm);
}

}  // namespace weft
