// Attention whose keys and values are added to a state, position after position.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

/// As slices (positions, batch, heads, size). Queries have as many heads as keys, or a multiple.
struct LinearParts {
  Tensor q, k, v;
  Tensor decay = {};  ///< (..., heads, size or 1): what is left of the state; undefined: all
  Tensor beta = {};   ///< (..., heads or 1, 1): the delta rule's; undefined: plain sums
  Tensor state = {};  ///< (batch, heads, size of keys, size of values)
  double scale = 1;   ///< of queries
};
struct LinearResult {
  Tensor output, state;
};
LinearResult linear_recurrence(const LinearParts& parts);

/// What update_rule asks for. An Error where the input that it needs is not given.
struct LinearRule {
  bool gated, delta;
};
LinearRule linear_rule(const NodeCall& call, size_t decay, size_t beta);
/// The attribute, or that of attention.
double linear_scale(const NodeCall& call, int64_t size);

}  // namespace weft::onnx
