// What products of bytes need of small constants, computed on the host: a kernel for a few sums
// takes longer to be made than it saves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/onnx/value.h"

namespace weft::onnx {

/// The sums of x - zero over all axes but `kept`. None unless x is bytes, and it and its zero point
/// (one, one for each place of the kept axis, or none) are constants, and small ones.
std::optional<std::vector<int32_t>> constant_sums(const Value& x, const Value& zero, int64_t kept);

/// (x - zero) * scale in f32 of a constant vector of integers, with constants of one element or as
/// many; none for others.
std::optional<Value> constant_dequantised(const Value& x, const Value& scale, const Value& zero);

/// a * b / c in f32, rounded as often, where all are constants; c may be None. One element each, of
/// which b may have more, along one axis.
std::optional<Tensor> constant_scale(const Value& a, const Value& b, const Value& c);

}  // namespace weft::onnx
