// Functions of Tensors as ONNX models.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/io/tensors.h"
#include "weft/onnx/write.h"
#include "weft/tensor/transforms.h"

namespace weft {
struct CapturedFunction;
}

namespace weft::onnx {

struct ExportOptions {
  /// "input_0", "output_0", ... where none is given.
  std::vector<std::string> input_names = {}, output_names = {};
  /// Tensors that the function uses, by the names that their initialisers get: a module's
  /// state_dict().
  std::vector<NamedTensor> state = {};
  /// Axes of inputs, by the input's name, whose sizes have a name instead of a number: {"x", {{0,
  /// "batch"}}}. The function must not look at their sizes.
  std::map<std::string, std::map<int64_t, std::string>> dynamic_axes = {};
  int64_t opset = 20;
  std::string name = "weft";  ///< of the graph
};
constexpr int64_t kOldestExportOpset = 18, kNewestExportOpset = 23;

/// What f computes for inputs like these, as a model: f is called once, with placeholders, and the
/// graph that it builds is written as ONNX operators. Products are MatMul, Gemm and Conv, softmax
/// is Softmax, and so on; what is computed from constants alone is a constant. What f writes,
/// draws at random or runs in kernels of its own cannot be exported: one Error (code
/// "onnx.export") says all of it, with the lines that made it.
///
///   nn::Linear layer(784, 10);
///   save_onnx("layer.onnx", export_onnx([&](const Tensors& in) { return Tensors{layer(in[0])}; },
///                                       {Tensor::zeros({1, 784})},
///                                       {.state = state_dict(layer),
///                                        .dynamic_axes = {{"input_0", {{0, "batch"}}}}}));
Model export_onnx(const TensorFunction& f, const Tensors& inputs,
                  const ExportOptions& options = {});
/// What a captured function computes (jit.h, io/functions.h): its state becomes initialisers, its
/// bound sizes names. An Error where it writes arguments or state.
Model export_onnx(const CapturedFunction& f, const ExportOptions& options = {});
}  // namespace weft::onnx
