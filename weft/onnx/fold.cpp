#include "weft/onnx/fold.h"

#include "weft/onnx/operators.h"

namespace weft::onnx {

namespace {

const FoldRow* find_fold(const Node& node) {
  if (node.domain != kOnnx) return nullptr;
  for (const auto rows : {arithmetic_folds(), movement_folds()})
    for (const FoldRow& row : rows)
      if (row.name == node.op) return &row;
  return nullptr;
}

}  // namespace

std::optional<Values> folded(const NodeCall& call) {
  const FoldRow* row = find_fold(call.node());
  if (!row || !call.has(0)) return std::nullopt;
  Known inputs;
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (i > 0 && !call.has(i)) {
      inputs.emplace_back();  // such as Slice's axes
      continue;
    }
    auto known = KnownElements::of(call.input(i));
    if (!known) return std::nullopt;
    inputs.push_back(*std::move(known));
  }
  const Folded outputs = row->fold(call, inputs);
  if (!outputs) return std::nullopt;
  Values values;
  for (const KnownElements& elements : *outputs) {
    auto value = elements.value();
    if (!value) return std::nullopt;
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace weft::onnx
