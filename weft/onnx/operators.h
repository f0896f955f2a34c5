// The table of ONNX operators.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weft/onnx/call.h"

namespace weft::onnx {

constexpr std::string_view kOnnx = "", kMl = "ai.onnx.ml", kMicrosoft = "com.microsoft",
                           kTraining = "ai.onnx.preview.training", kPreview = "ai.onnx.preview";

/// One operator from one opset of its domain on; where its meaning changed, it has several rows.
/// Small changes (an attribute that became an input) are looked up in NodeCall::opset().
struct Operator {
  std::string_view domain, name;
  int since;
  Values (*run)(const NodeCall& call);
};

/// The row with the newest `since` that is not newer than `opset`; null where there is none.
const Operator* find_operator(std::string_view domain, std::string_view name, int64_t opset);
/// Whether two runs of the node may differ: Random*, Bernoulli, Multinomial, Dropout.
bool is_random(const Node& node);
/// All rows, family after family.
std::span<const std::span<const Operator>> operator_families();

// A family is a file of this name. Its rows are sorted by name.
std::span<const Operator> elementwise_operators();
std::span<const Operator> shape_operators();  // Shape, Reshape, Slice, Concat, Pad, Tile, ...
std::span<const Operator>
indexing_operators();  // Gather*, Scatter*, NonZero, TopK, Unique, OneHot, ...
std::span<const Operator> reduction_operators();  // Reduce*, ArgMax, CumSum, Softmax, Hardmax, ...
std::span<const Operator>
product_operators();  // MatMul, Gemm, Einsum, Det, DFT, STFT, windows, ...
std::span<const Operator>
generator_operators();  // Constant, Range, Random*, EyeLike, Bernoulli, ...
std::span<const Operator> convolution_operators();  // Conv*, Pool*, Col2Im, DeformConv, ...
std::span<const Operator> normalisation_operators();
std::span<const Operator>
image_operators();  // Resize, Upsample, GridSample, AffineGrid, RoiAlign, NMS, ...
std::span<const Operator> recurrent_operators();  // RNN, GRU, LSTM
std::span<const Operator> attention_operators();  // Attention, RotaryEmbedding, ...
std::span<const Operator> quantised_operators();  // (De)QuantizeLinear, QLinear*, *Integer, ...
std::span<const Operator> control_operators();    // If, Loop, Scan, Sequence*, Optional*
std::span<const Operator> removed_operators();    // experiments of opset 1: ImageScaler, Crop, ...
std::span<const Operator> text_operators();       // String*, Regex*, TfIdfVectorizer
std::span<const Operator> loss_operators();       // losses, Gradient, Adam, Momentum, Adagrad
std::span<const Operator> ml_operators();         // ai.onnx.ml
std::span<const Operator> contrib_operators();    // com.microsoft
std::span<const Operator> contrib_attention_operators();
std::span<const Operator> contrib_gated_operators();
std::span<const Operator> contrib_quantised_operators();

}  // namespace weft::onnx
