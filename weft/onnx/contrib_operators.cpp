// com.microsoft: activations, norms, fused products and convolutions, and small ones. Attention is
// in contrib_attention_operators.cpp, integers in contrib_quantised_operators.cpp.
#include <cmath>

#include "weft/onnx/contrib.h"
#include "weft/onnx/convolution_operators.h"
#include "weft/onnx/host.h"
#include "weft/onnx/image_operators.h"
#include "weft/onnx/image_order.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/products.h"

namespace weft::onnx {
namespace {

// ---- activations

Values gelu(const NodeCall& call) { return {call.tensor(0).gelu(false)}; }
Values bias_gelu(const NodeCall& call) { return {(call.tensor(0) + call.tensor(1)).gelu(false)}; }
Values fast_gelu(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  return {(call.has(1) ? x + call.tensor(1) : x).gelu(true)};
}
Values gemm_fast_gelu(const NodeCall& call) {
  const Tensor y = call.tensor(0).matmul(call.tensor(1));
  return {(call.has(2) ? y + call.tensor(2) : y).gelu(true)};
}
Values quick_gelu(const NodeCall& call) {
  const Tensor x = widened(call.tensor(0));
  return {(x * (x * call.number("alpha", 1.702)).sigmoid()).cast(call.tensor(0).dtype())};
}

std::pair<Tensor, Tensor> halves(const NodeCall& call, const Tensor& x) {
  const Dim width = x.dim(-1);
  if (!(width % Dim(2) == Dim(0)))
    call.refuse("input {}: the last axis has two halves of equal size", x.dims().text());
  return {x.index({kEllipsis, Slice(width / Dim(2))}),
          x.index({kEllipsis, Slice(width / Dim(2), width)})};
}

Values bias_split_gelu(const NodeCall& call) {
  const auto [left, right] = halves(call, call.tensor(0) + call.tensor(1));
  return {left * right.gelu(false)};
}

Values swi_glu(const NodeCall& call) {
  auto [gate, up] =
      call.has(1) ? std::pair(call.tensor(0), call.tensor(1)) : halves(call, call.tensor(0));
  const DType dtype = gate.dtype();
  const double limit = call.number("limit", 0), beta = call.number("activation_beta", 0);
  gate = widened(gate), up = widened(up);
  if (limit > 0) gate = gate.clamp_max(limit), up = up.clamp(-limit, limit);
  const Tensor active = gate * (gate * call.number("activation_alpha", 1)).sigmoid();
  return {(active * (up + beta)).cast(dtype)};
}

Values bias_softmax(const NodeCall& call) {
  const Tensor x = call.tensor(0) + call.tensor(1);
  const int64_t axis = call.axis(call.integer("axis", 1), x.ndim());
  return {x.flatten(axis).softmax(-1).reshape(x.dims())};
}

// ---- norms

Values simplified_layer_norm(const NodeCall& call) {
  const Tensor &x = call.tensor(0), &scale = call.tensor(1);
  const int64_t axis = call.axis(call.integer("axis", -1), x.ndim());
  Axes axes;
  for (int64_t a = axis; a < static_cast<int64_t>(x.ndim()); ++a) axes.push_back(a);
  const Tensor wide = widened(x);
  const Tensor inverse = ((wide * wide).mean(axes, true) + call.number("epsilon", 1e-5)).rsqrt();
  return {(wide * inverse).cast(scale.dtype()) * scale, inverse};
}

// Sums of the input, what was skipped, and a bias, and their norm.
Values skip_norm(const NodeCall& call, bool centered) {
  const size_t bias = centered ? 4 : 3;
  Tensor sum = call.tensor(0) + call.tensor(1);
  if (call.has(bias)) sum = sum + call.tensor(bias);
  const double epsilon = call.number("epsilon", 1e-12);
  Values results = {normed(sum, call.tensor(2), centered ? optional_tensor(call, 3) : Tensor(),
                           epsilon, centered),
                    Value(), Value(), sum};
  const Tensor wide = widened(sum), mean = wide.mean(-1, true);
  const Tensor shifted = centered ? wide - mean : wide;
  if (call.wants(1)) results[1] = mean;
  if (call.wants(2)) results[2] = ((shifted * shifted).mean(-1, true) + epsilon).rsqrt();
  return results;
}
Values skip_layer_norm(const NodeCall& call) { return skip_norm(call, true); }
Values skip_simplified_layer_norm(const NodeCall& call) { return skip_norm(call, false); }

Values embed_layer_norm(const NodeCall& call) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < 9; ++i) inputs.push_back(optional_tensor(call, i));
  return embedded(call, inputs);
}

// x, given as (N, ..., C) or (N, C, ...), in groups of channels.
Tensor group_normed(const NodeCall& call, const Tensor& x) {
  const bool last = call.integer("channels_last", 1) != 0;
  const Tensor first = widened(last ? channels_first(x) : x);
  const int64_t groups = call.integer("groups");
  if (groups < 1 || first.size(1) % groups != 0)
    call.refuse("{} groups of {} channels: a divisor", groups, first.size(1));
  Dims per_channel(std::vector<Dim>(first.ndim(), Dim(1)));
  per_channel[1] = first.dim(1);
  const auto vector = [&](size_t i) { return widened(call.tensor(i)).reshape(per_channel); };
  Tensor y = first.reshape({first.dim(0), Dim(groups), Dim(-1)})
                     .layernorm(-1, call.number("epsilon", 1e-5))
                     .reshape(first.dims()) *
                 vector(1) +
             vector(2);
  if (call.integer("activation", 0) != 0) y = y.silu();
  return (last ? channels_last(y) : y).cast(x.dtype());
}
Values group_norm(const NodeCall& call) { return {group_normed(call, call.tensor(0))}; }
Values skip_group_norm(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  Tensor skip = call.tensor(3);
  if (skip.ndim() == 2) {  // (N, C)
    const bool last = call.integer("channels_last", 1) != 0;
    skip = last ? skip.reshape({skip.dim(0), 1, 1, skip.dim(1)})
                : skip.reshape({skip.dim(0), skip.dim(1), 1, 1});
  }
  Tensor sum = x + skip;
  if (call.has(4)) sum = sum + call.tensor(4);
  return {group_normed(call, sum), sum};
}

Values bias_add(const NodeCall& call) { return {call.tensor(0) + call.tensor(1) + call.tensor(2)}; }
// As it is outside of training.
Values bias_dropout(const NodeCall& call) {
  Tensor y = call.tensor(0) + call.tensor(1);
  if (call.has(2)) y = y + call.tensor(2);
  if (call.has(4) && number_now(call.input(4)) != 0)
    call.refuse("training_mode 1: only 0 is supported");
  return {y, Tensor::ones(y.dims(), DType::Bool)};
}

// ---- products and convolutions

// One operand as the product takes it: its first axis is moved behind the batch, then the last two
// change places.
Tensor arranged(const Tensor& x, bool batch, bool transposed) {
  const Tensor y = batch && x.ndim() > 2 ? movedim(x, 0, -2) : x;
  return transposed && y.ndim() > 1 ? y.T() : y;
}

Tensor fused_product(const NodeCall& call) {
  const Tensor a =
      arranged(call.tensor(0), call.integer("transBatchA", 0) != 0, call.integer("transA", 0) != 0);
  const Tensor b =
      arranged(call.tensor(1), call.integer("transBatchB", 0) != 0, call.integer("transB", 0) != 0);
  const double alpha = call.number("alpha", 1);
  return alpha == 1 ? a.matmul(b) : a.matmul(b) * alpha;
}

std::vector<double> activation_numbers(const NodeCall& call) {
  std::vector<double> numbers = call.numbers("activation_params");
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (call.has(name)) numbers.push_back(call.number(name));
  return numbers;
}
Value activated_by(const NodeCall& call, const Tensor& x) {
  return activated(call, x, call.text("activation", ""), activation_numbers(call));
}

Values fused_matmul(const NodeCall& call) { return {fused_product(call)}; }
Values fused_matmul_activation(const NodeCall& call) {
  return {activated_by(call, fused_product(call))};
}
Values fused_gemm(const NodeCall& call) {
  return {activated_by(call, standard(call, "Gemm", 13, inputs_of(call))[0].tensor())};
}
Values fused_conv(const NodeCall& call) {
  Tensor y = standard(call, "Conv", 11, inputs_of(call, 0, 3))[0].tensor();
  if (call.has(3)) y = y + call.tensor(3);
  return {activated_by(call, y)};
}
Values nhwc_conv(const NodeCall& call) {
  Values inputs = inputs_of(call, 0, 3);
  inputs[0] = channels_first(call.tensor(0));
  Tensor y = channels_last(standard(call, "Conv", 11, std::move(inputs))[0].tensor());
  if (call.has(3)) y = y + call.tensor(3);
  return {activated_by(call, y)};
}
Values nhwc_max_pool(const NodeCall& call) {
  return {
      channels_last(standard(call, "MaxPool", 12, {channels_first(call.tensor(0))})[0].tensor())};
}

// Everything that a transposed convolution gives, less `pads` at the ends of its spatial axes.
Values conv_transpose_with_pads(const NodeCall& call) {
  Values inputs = inputs_of(call, 0, 2);
  if (call.has(3)) inputs.push_back(call.input(3));
  const Tensor y = standard(call, "ConvTranspose", 11, std::move(inputs))[0].tensor();
  const size_t axes = y.ndim() - 2;
  const std::vector<int64_t> pads = call.has(2) ? call.ints(2) : std::vector<int64_t>(2 * axes, 0);
  std::vector<DimPair> kept = {{0, y.dim(0)}, {0, y.dim(1)}};
  for (size_t i = 0; i < axes && pads.size() == 2 * axes; ++i) {
    const int64_t n = y.size(static_cast<int64_t>(i) + 2), begin = pads[i], end = pads[axes + i];
    if (begin < 0 || end < 0 || begin > n || end > n - begin) break;
    kept.emplace_back(begin, n - end);
  }
  if (kept.size() != y.ndim())
    call.refuse("{} pads of {}: two for each spatial axis, of at least 0, inside of it",
                pads.size(), y.dims().text());
  return {y.shrink(kept)};
}

Values complex_product(const NodeCall& call, double sign) {
  const auto part = [&](size_t i, int64_t which) {
    return call.tensor(i).index({kEllipsis, which});
  };
  const Tensor a = part(0, 0), b = part(0, 1), c = part(1, 0), d = part(1, 1) * sign;
  return {Tensor::stack({a * c - b * d, a * d + b * c}, -1)};
}
Values complex_mul(const NodeCall& call) { return complex_product(call, 1); }
Values complex_mul_conj(const NodeCall& call) { return complex_product(call, -1); }

Values c_dist(const NodeCall& call) {
  const std::string metric = call.text("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    call.refuse("metric {}: sqeuclidean or euclidean", quoted_name(metric));
  const Tensor d = call.tensor(0).unsqueeze(1) - call.tensor(1).unsqueeze(0);
  const Tensor squares = (d * d).sum(-1);
  return {metric == "euclidean" ? squares.sqrt() : squares};
}

// ---- others

Values inverse(const NodeCall& call) { return {linalg::inv(call.tensor(0))}; }
Values trilu(const NodeCall& call) { return standard(call, "Trilu", 14, inputs_of(call)); }
Values grid_sample_16(const NodeCall& call) {
  return standard(call, "GridSample", 16, inputs_of(call));
}
Values gather_nd(const NodeCall& call) { return standard(call, "GatherND", 11, inputs_of(call)); }
Values expand_dims(const NodeCall& call) {
  return {moved(call.input(0), [&](const Tensor& x) {
    return x.unsqueeze(call.axis(call.integer(1), x.ndim() + 1));
  })};
}
Values pad(const NodeCall& call) {
  Values inputs = inputs_of(call);
  const std::vector<int64_t> amounts = call.ints(1);  // (2 rank) or (1, 2 rank)
  inputs[1] = host_value(amounts, {static_cast<int64_t>(amounts.size())});
  return standard(call, "Pad", 13, std::move(inputs));
}
Values range(const NodeCall& call) {
  Values inputs = inputs_of(call);
  inputs.resize(3);
  if (!inputs[2]) inputs[2] = host_numbers({1}, {}, call.input(0).dtype());
  return standard(call, "Range", 11, std::move(inputs));
}
Values torch_embedding(const NodeCall& call) { return {call.tensor(0).index({call.tensor(1)})}; }
Values unfold_tensor(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t axis = call.axis(call.integer("dim", -1), x.ndim());
  return {x.window(axis, call.integer("size"), call.integer("step", 1))};
}
Values is_all_finite(const NodeCall& call) {
  const bool nan = call.integer("isinf_only", 0) == 0, inf = call.integer("isnan_only", 0) == 0;
  Tensor fine = Tensor::ones({}, DType::Bool);
  for (const Tensor& x : call.tensors()) {
    if (nan) fine = fine & (~x.isnan()).all();
    if (inf) fine = fine & (~x.isinf()).all();
  }
  return {fine};
}

void require_plain_transform(const NodeCall& call) {
  if (call.integer("onesided", 1) != 1 || call.integer("normalized", 0) != 0 ||
      call.integer("signal_ndim", 1) != 1)
    call.refuse("onesided {}, normalized {}, signal_ndim {}: only 1, 0 and 1 are supported",
                call.integer("onesided", 1), call.integer("normalized", 0),
                call.integer("signal_ndim", 1));
}
Values rfft(const NodeCall& call) {
  require_plain_transform(call);
  return {fft::rfft(call.tensor(0))};
}
Values irfft(const NodeCall& call) {
  require_plain_transform(call);
  return {fft::irfft(call.tensor(0))};
}

}  // namespace

std::span<const Operator> contrib_operators() {
  static constexpr Operator kRows[] = {
      {kMicrosoft, "BiasAdd", 1, bias_add},
      {kMicrosoft, "BiasDropout", 1, bias_dropout},
      {kMicrosoft, "BiasGelu", 1, bias_gelu},
      {kMicrosoft, "BiasSoftmax", 1, bias_softmax},
      {kMicrosoft, "BiasSplitGelu", 1, bias_split_gelu},
      {kMicrosoft, "BifurcationDetector", 1, bifurcation_detector},
      {kMicrosoft, "CDist", 1, c_dist},
      {kMicrosoft, "CausalConvWithState", 1, causal_convolution},
      {kMicrosoft, "ComplexMul", 1, complex_mul},
      {kMicrosoft, "ComplexMulConj", 1, complex_mul_conj},
      {kMicrosoft, "ConvTransposeWithDynamicPads", 1, conv_transpose_with_pads},
      {kMicrosoft, "CropAndResize", 1, crop_and_resize},
      {kMicrosoft, "DynamicTimeWarping", 1, dynamic_time_warping},
      {kMicrosoft, "EmbedLayerNormalization", 1, embed_layer_norm},
      {kMicrosoft, "ExpandDims", 1, expand_dims},
      {kMicrosoft, "FastGelu", 1, fast_gelu},
      {kMicrosoft, "FusedConv", 1, fused_conv},
      {kMicrosoft, "FusedGemm", 1, fused_gemm},
      {kMicrosoft, "FusedMatMul", 1, fused_matmul},
      {kMicrosoft, "FusedMatMulActivation", 1, fused_matmul_activation},
      {kMicrosoft, "GatherND", 1, gather_nd},
      {kMicrosoft, "Gelu", 1, gelu},
      {kMicrosoft, "GemmFastGelu", 1, gemm_fast_gelu},
      {kMicrosoft, "GridSample", 1, grid_sample_16},
      {kMicrosoft, "GroupNorm", 1, group_norm},
      {kMicrosoft, "Inverse", 1, inverse},
      {kMicrosoft, "Irfft", 1, irfft},
      {kMicrosoft, "IsAllFinite", 1, is_all_finite},
      {kMicrosoft, "MoE", 1, mixture_of_experts},
      {kMicrosoft, "MurmurHash3", 1, murmur_hash3},
      {kMicrosoft, "NGramRepeatBlock", 1, ngram_repeat_block},
      {kMicrosoft, "NhwcConv", 1, nhwc_conv},
      {kMicrosoft, "NhwcFusedConv", 1, nhwc_conv},
      {kMicrosoft, "NhwcMaxPool", 1, nhwc_max_pool},
      {kMicrosoft, "Pad", 1, pad},
      {kMicrosoft, "QMoE", 1, quantised_mixture_of_experts},
      {kMicrosoft, "QuickGelu", 1, quick_gelu},
      {kMicrosoft, "Range", 1, range},
      {kMicrosoft, "Rfft", 1, rfft},
      {kMicrosoft, "SimplifiedLayerNormalization", 1, simplified_layer_norm},
      {kOnnx, "SimplifiedLayerNormalization", 1, simplified_layer_norm},
      {kMicrosoft, "SkipGroupNorm", 1, skip_group_norm},
      {kMicrosoft, "SkipLayerNormalization", 1, skip_layer_norm},
      {kMicrosoft, "SkipSimplifiedLayerNormalization", 1, skip_simplified_layer_norm},
      {kMicrosoft, "SwiGLU", 1, swi_glu},
      {kMicrosoft, "TorchEmbedding", 1, torch_embedding},
      {kMicrosoft, "TransposeMatMul", 1, fused_matmul},
      {kMicrosoft, "Trilu", 1, trilu},
      {kMicrosoft, "UnfoldTensor", 1, unfold_tensor},
      {kMicrosoft, "Unique", 1, unique_in_order},
  };
  return kRows;
}

}  // namespace weft::onnx
