// Tables of the cosines and sines of rotary positions, as models' scalings have them.
#pragma once

#include "weft/llm/config.h"
#include "weft/tensor/tensor.h"

namespace weft::llm {

/// (positions, size / 2) each, f32.
struct RopeTable {
  Tensor cosine, sine;
};

/// Of the positions below `context`. LongRope takes its long divisors, and Dynamic the frequencies
/// of a text of that length, where the context is longer than what the model was trained with.
/// Undefined tensors where nothing is turned.
RopeTable rope_table(const Rope& rope, int64_t context);

/// x (batch, positions, heads, size) turned by the rows of the table at `positions` (batch,
/// positions); the numbers behind what is turned stay.
Tensor turned(const Tensor& x, const RopeTable& table, const Tensor& positions, bool neighbours);

}  // namespace weft::llm
