// What operators of com.microsoft have in common. Their meaning: ONNX Runtime's documentation of
// its contributed operators (docs/ContribOperators.md, 1.32), and its CPU results.
#pragma once

#include "weft/onnx/operators.h"

namespace weft::onnx {

/// What ai.onnx's operator makes of these inputs and the call's attributes.
Values standard(const NodeCall& call, std::string_view name, int64_t opset, Values inputs);
/// The call's own inputs from `first` on, at most `count`.
Values inputs_of(const NodeCall& call, size_t first = 0, size_t count = SIZE_MAX);

/// f16 and bf16 as f32.
Tensor widened(const Tensor& x);

/// An activation by its name ("Relu", "LeakyRelu", ...), with up to two numbers; "" is none.
Tensor activated(const NodeCall& call, const Tensor& x, const std::string& name,
                 const std::vector<double>& numbers);
/// (x - mean) / sqrt(var + eps) * gamma + beta over the last axis, in f32 at least, as x's dtype;
/// without mean for RMS norms. gamma and beta may be undefined.
Tensor normed(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon,
              bool centered);

/// (x - zero) * scale in f32, and back with saturation; zero may be undefined, and the scale on the
/// way back where y is in steps already. Scales and zeros of one element or of a vector along the
/// last axis.
Tensor dequantised(const Tensor& x, const Tensor& scale, const Tensor& zero);
Tensor requantised(const Tensor& y, const Tensor& scale, const Tensor& zero, DType dtype);
/// The same with what is given at input i: a tensor, its scale and its zero; of `tensor` the
/// number.
Tensor dequantised_at(const NodeCall& call, size_t tensor, size_t scale, size_t zero);
/// Undefined where it is not given.
Tensor optional_tensor(const NodeCall& call, size_t i);

/// Embeddings of words, positions and segments added, then a norm; how many words the mask says;
/// the sum. Of tensors in the order of EmbedLayerNormalization's inputs.
Values embedded(const NodeCall& call, const std::vector<Tensor>& inputs);

// contrib_packed_weights.cpp
Values matmul_n_bits(const NodeCall& call);
Values matmul_bnb4(const NodeCall& call);
Values gather_block_quantized(const NodeCall& call);
/// Weights (experts, out, in) of numbers packed along the last axis, with scales (experts, out) or
/// (experts, out, blocks); zeros, packed as the weights are along the scales' last axis, may be
/// undefined.
Tensor decoded_experts(const NodeCall& call, const Tensor& packed, const Tensor& scales,
                       const Tensor& zeros, int64_t bits);
// unique_operator.cpp
Values unique_in_order(const NodeCall& call);
// contrib_experts.cpp
Values mixture_of_experts(const NodeCall& call);
Values quantised_mixture_of_experts(const NodeCall& call);
// contrib_sequences.cpp
Values bifurcation_detector(const NodeCall& call);
Values dynamic_time_warping(const NodeCall& call);
Values murmur_hash3(const NodeCall& call);
Values ngram_repeat_block(const NodeCall& call);

}  // namespace weft::onnx
