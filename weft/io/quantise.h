// Numbers to ggml's packed blocks, on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/dtype/codec.h"

namespace weft {

/// The blocks of f32 numbers in row-major order; a row is the last axis of `shape`. Plain floats,
/// Q4_0 to Q8_0, TQ1_0, TQ2_0 and MXFP4 are byte for byte what gguf.quants.quantize() gives; the
/// others choose for every block the scale (and offset) of least squared error among candidates
/// around the one that just fits, solved for again after rounding. decode() reads them. Errors:
/// numbers that are not finite (packed formats), a last axis that blocks do not divide, other than
/// `shape` has numbers, a format without an encoder.
std::vector<std::byte> quantise(std::span<const float> values, Codec codec,
                                std::span<const int64_t> shape);
bool can_quantise(Codec codec);

}  // namespace weft
