// The two orders that a head's numbers have in files: rotary pairs as neighbours (llama's GGUF
// files), or in the two halves (Hugging Face's).
#pragma once

#include <string_view>

#include "weft/llm/config.h"
#include "weft/tensor/tensor.h"

namespace weft::llm {

/// Whether GGUF files of the family have pairs as neighbours where Hugging Face's have halves.
bool has_pair_order(std::string_view family);
/// Whether this model's weights have them so, where both are possible.
inline bool has_pairs(const Config& config) {
  return has_pair_order(config.family) && config.rope.neighbours;
}
/// Of how many heads a weight's outputs are that are turned; 0: they are not turned.
int64_t heads_of(std::string_view name, const Config& config);
/// x (heads * size, ...), each head's halves in turns.
Tensor in_pair_order(const Tensor& x, int64_t heads);
Tensor in_half_order(const Tensor& x, int64_t heads);

}  // namespace weft::llm
