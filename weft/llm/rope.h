// Tables of the cosines and sines of rotary positions, as models' scalings have them.
#pragma once

#include "weft/llm/config.h"
#include "weft/tensor/tensor.h"

namespace weft::llm {

/// Of each pair, for texts of `context` tokens, on which LongRope's and Dynamic's depend. In f32, as
/// models are trained and others compute them.
std::vector<float> rope_frequencies(const Rope& rope, int64_t context = 0);
/// Of cosines and sines.
double rope_attention_factor(const Rope& rope);
/// YaRN's for a context that is `factor` times as long.
double yarn_attention_factor(double factor, double scale = 1);

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
