#include "weft/nn/attention.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::nn {

namespace {

Tensor glorot(int64_t out, int64_t in) { return trained(Tensor::glorot_uniform({out, in})); }

void check_sequence(const Tensor& x) {
  if (x.ndim() == 3) return;
  fail("MultiheadAttention", "inputs have three axes (positions, batch, dim), got shape {}",
       x.dims().text());
}

// (..., positions, heads * size) to (..., heads, positions, size) and back.
Tensor split_heads(const Tensor& x, int64_t heads) {
  return x.unflatten(-1, {heads, -1}).transpose(-3, -2);
}
Tensor join_heads(const Tensor& x) { return x.transpose(-3, -2).flatten(-2); }

// What `mask` and the bool `seen` both allow: bool, or numbers that are added.
Tensor narrowed(const Tensor& mask, const Tensor& seen) {
  if (!mask.defined()) return seen;
  return is_bool(mask.dtype()) ? mask & seen : seen.where(mask, -INFINITY);
}

// (batch, keys) beside scores (batch, heads, queries, keys).
Tensor key_mask(const Tensor& keys) {
  if (keys.ndim() != 2 || !is_bool(keys.dtype())) {
    fail("MultiheadAttention", "the mask of keys must be bool (batch, keys), got {} {}",
         name(keys.dtype()), keys.dims().text());
  }
  return keys.reshape({keys.dim(0), 1, 1, keys.dim(1)});
}

// (queries, keys): query i sees keys up to i.
Tensor causal_mask(const Tensor& query, const Tensor& key) {
  const Tensor rows = Tensor::arange(query.dim(-2)).unsqueeze(1);
  return Tensor::arange(key.dim(-2)) <= rows;
}

HeadOptions head_options(const TransformerOptions& o) {
  return {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first};
}

LayerNorm norm_of(int64_t dim, const TransformerOptions& o, CallSite at) {
  LayerNorm norm(Ints(dim), o.eps, true, at);
  if (!o.bias) norm.bias = Tensor();
  return norm;
}

// x + part(x) with the norm on either side of it.
template <class Part>
Tensor residual(const Tensor& x, const LayerNorm& norm, const TransformerOptions& o, Part part) {
  if (o.norm_first) return x + part(norm(x)).dropout(o.dropout);
  return norm(x + part(x).dropout(o.dropout));
}

template <class Layer>
Tensor feed_forward(const Layer& layer, const Tensor& x) {
  const TransformerOptions& o = layer.options;
  const Tensor inner = layer.linear1(x);
  const Tensor active = o.activation == Activation::Relu ? inner.relu() : inner.gelu(false);
  return layer.linear2(active.dropout(o.dropout));
}

template <class Layer>
void append_layers(std::vector<Layer>& layers, std::vector<LayerNorm>& norm, int64_t count,
                   int64_t dim, int64_t heads, const TransformerOptions& options, bool final_norm) {
  check_positive("transformer", "the number of layers", count);
  for (int64_t i = 0; i < count; ++i) layers.emplace_back(dim, heads, options);
  if (final_norm) norm.push_back(norm_of(dim, options, CallSite::here()));
}

// "norm", not "norm.0": PyTorch has one or none.
void visit_stack(StateVisitor& v, auto& stack) {
  v("layers", stack.layers);
  if (!stack.norm.empty()) v("norm", stack.norm[0]);
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t dim, int64_t head_count, const HeadOptions& given,
                                       CallSite at)
    : out_proj(dim, dim, given.bias, at), heads(head_count), options(given) {
  const CallSiteScope site(at);
  check_positive("MultiheadAttention", "heads", heads);
  if (dim % heads != 0) {
    fail("MultiheadAttention", "dim must be a multiple of heads: got {} and {}", dim, heads);
  }
  const int64_t key_dim = options.key_dim == 0 ? dim : options.key_dim;
  const int64_t value_dim = options.value_dim == 0 ? dim : options.value_dim;
  check_positive("MultiheadAttention", "key_dim and value_dim", std::min(key_dim, value_dim));
  if (key_dim == dim && value_dim == dim) {
    in_proj_weight = glorot(3 * dim, dim);
  } else {
    q_proj_weight = glorot(dim, dim);
    k_proj_weight = glorot(dim, key_dim);
    v_proj_weight = glorot(dim, value_dim);
  }
  in_proj_bias = zeros_if(options.bias, {3 * dim});
  out_proj.bias = zeros_if(options.bias, {dim});
}

// Query, key and value of one input, or of one for each.
std::vector<Tensor> MultiheadAttention::project(const std::vector<Tensor>& inputs) const {
  const bool joint = in_proj_weight.defined();
  if (inputs.size() == 1 && joint) {
    return inputs[0].linear(in_proj_weight.T(), in_proj_bias).chunk(3, -1);
  }
  const std::vector<Tensor> weights =
      joint ? in_proj_weight.chunk(3)
            : std::vector<Tensor>{q_proj_weight, k_proj_weight, v_proj_weight};
  const std::vector<Tensor> biases = options.bias ? in_proj_bias.chunk(3) : std::vector<Tensor>(3);
  std::vector<Tensor> projected;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor& input = inputs[inputs.size() == 1 ? 0 : i];
    projected.push_back(input.linear(weights[i].T(), biases[i]));
  }
  return projected;
}

Tensor MultiheadAttention::attend(const std::vector<Tensor>& projected,
                                  const Visible& visible) const {
  std::vector<Tensor> parts;
  for (const Tensor& part : projected) {
    parts.push_back(split_heads(options.batch_first ? part : part.transpose(0, 1), heads));
  }
  Tensor mask = visible.mask;
  if (visible.keys.defined()) mask = narrowed(mask, key_mask(visible.keys));
  const bool causal = visible.causal && !mask.defined();
  if (visible.causal && !causal) mask = narrowed(mask, causal_mask(parts[0], parts[1]));
  const Tensor y = join_heads(parts[0].scaled_dot_product_attention(
      parts[1], parts[2],
      {.mask = mask.defined() ? &mask : nullptr, .dropout = options.dropout, .causal = causal}));
  return out_proj(options.batch_first ? y : y.transpose(0, 1));
}

Tensor MultiheadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Visible& visible, CallSite at) const {
  const CallSiteScope site(at);
  for (const Tensor* x : {&query, &key, &value}) check_sequence(*x);
  return attend(project({query, key, value}), visible);
}

Tensor MultiheadAttention::operator()(const Tensor& x, const Visible& visible, CallSite at) const {
  const CallSiteScope site(at);
  check_sequence(x);
  return attend(project({x}), visible);
}

void MultiheadAttention::visit(StateVisitor& v) {
  v("in_proj_weight", in_proj_weight);
  v("q_proj_weight", q_proj_weight);
  v("k_proj_weight", k_proj_weight);
  v("v_proj_weight", v_proj_weight);
  v("in_proj_bias", in_proj_bias);
  v("out_proj", out_proj);
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t dim, int64_t heads,
                                                 const TransformerOptions& given, CallSite at)
    : options(given),
      self_attn(dim, heads, head_options(given), at),
      linear1(dim, given.feedforward, given.bias, at),
      linear2(given.feedforward, dim, given.bias, at),
      norm1(norm_of(dim, given, at)),
      norm2(norm_of(dim, given, at)) {}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const Visible& visible,
                                           CallSite at) const {
  const CallSiteScope site(at);
  const Tensor y =
      residual(x, norm1, options, [&](const Tensor& in) { return self_attn(in, visible); });
  return residual(y, norm2, options, [&](const Tensor& in) { return feed_forward(*this, in); });
}

void TransformerEncoderLayer::visit(StateVisitor& v) {
  v("self_attn", self_attn);
  v("linear1", linear1);
  v("linear2", linear2);
  v("norm1", norm1);
  v("norm2", norm2);
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t dim, int64_t heads,
                                                 const TransformerOptions& given, CallSite at)
    : options(given),
      self_attn(dim, heads, head_options(given), at),
      multihead_attn(dim, heads, head_options(given), at),
      linear1(dim, given.feedforward, given.bias, at),
      linear2(given.feedforward, dim, given.bias, at),
      norm1(norm_of(dim, given, at)),
      norm2(norm_of(dim, given, at)),
      norm3(norm_of(dim, given, at)) {}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory,
                                           const Visible& visible, const Visible& memory_visible,
                                           CallSite at) const {
  const CallSiteScope site(at);
  const Tensor y =
      residual(x, norm1, options, [&](const Tensor& in) { return self_attn(in, visible); });
  const Tensor z = residual(y, norm2, options, [&](const Tensor& in) {
    return multihead_attn(in, memory, memory, memory_visible);
  });
  return residual(z, norm3, options, [&](const Tensor& in) { return feed_forward(*this, in); });
}

void TransformerDecoderLayer::visit(StateVisitor& v) {
  v("self_attn", self_attn);
  v("multihead_attn", multihead_attn);
  v("linear1", linear1);
  v("linear2", linear2);
  v("norm1", norm1);
  v("norm2", norm2);
  v("norm3", norm3);
}

TransformerEncoder::TransformerEncoder(int64_t layer_count, int64_t dim, int64_t heads,
                                       const TransformerOptions& options, bool final_norm,
                                       CallSite at) {
  const CallSiteScope site(at);
  append_layers(layers, norm, layer_count, dim, heads, options, final_norm);
}

Tensor TransformerEncoder::operator()(const Tensor& x, const Visible& visible, CallSite at) const {
  const CallSiteScope site(at);
  Tensor y = x;
  for (const TransformerEncoderLayer& layer : layers) y = layer(y, visible);
  return norm.empty() ? y : norm[0](y);
}

void TransformerEncoder::visit(StateVisitor& v) { visit_stack(v, *this); }

TransformerDecoder::TransformerDecoder(int64_t layer_count, int64_t dim, int64_t heads,
                                       const TransformerOptions& options, bool final_norm,
                                       CallSite at) {
  const CallSiteScope site(at);
  append_layers(layers, norm, layer_count, dim, heads, options, final_norm);
}

Tensor TransformerDecoder::operator()(const Tensor& x, const Tensor& memory, const Visible& visible,
                                      const Visible& memory_visible, CallSite at) const {
  const CallSiteScope site(at);
  Tensor y = x;
  for (const TransformerDecoderLayer& layer : layers) {
    y = layer(y, memory, visible, memory_visible);
  }
  return norm.empty() ? y : norm[0](y);
}

void TransformerDecoder::visit(StateVisitor& v) { visit_stack(v, *this); }

}  // namespace weft::nn
