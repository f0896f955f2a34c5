// Shape arithmetic on the host: what is known of sizes stays known, and compiles no kernel.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "weft/onnx/call.h"
#include "weft/onnx/known_elements.h"

namespace weft::onnx {

/// What the node gives where its inputs are known and few (Value::integers(), small constants) and
/// its operator is one that shapes are computed with. Symbolic sizes survive arithmetic.
std::optional<Values> folded(const NodeCall& call);

// ---- below the surface: one table of what folds
using Known = std::vector<KnownElements>;
/// Nothing: leave it to the operator.
using Folded = std::optional<Known>;
struct FoldRow {
  std::string_view name;
  Folded (*fold)(const NodeCall& call, const Known& inputs);
};
std::span<const FoldRow> arithmetic_folds();
std::span<const FoldRow> movement_folds();

}  // namespace weft::onnx
