#include "weft/onnx/dequantised_movement.h"

#include <algorithm>
#include <array>

#include "weft/onnx/quantised_types.h"

namespace weft::onnx {

namespace {

constexpr std::array<std::string_view, 9> kMovements = {"Flatten", "Gather",    "Identity",
                                                        "Reshape", "Slice",     "Split",
                                                        "Squeeze", "Transpose", "Unsqueeze"};

}  // namespace

std::optional<Values> moved_dequantised(const NodeCall& call, const Operator& op) {
  const Dequantised* from = call.has(0) ? call.input(0).dequantised_from() : nullptr;
  if (!from || op.domain != kOnnx || !(from->scale.dims().product() == Dim(1)) ||
      std::ranges::find(kMovements, op.name) == kMovements.end())
    return std::nullopt;
  Values inputs{from->x};
  for (size_t i = 1; i < call.inputs(); ++i)
    inputs.push_back(call.has(i) ? call.input(i) : Value());
  Values outputs = op.run(call.as(call.opset(), std::move(inputs)));
  for (Value& y : outputs)
    if (y) y = dequantised({y, from->scale, from->zero, 0}, call.input(0).type());
  return outputs;
}

}  // namespace weft::onnx
