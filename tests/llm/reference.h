// A llama as loops over doubles, from the same file as the network: what it must give.
#pragma once

#include <vector>

#include "weft/llm/config.h"
#include "weft/llm/generator.h"
#include "weft/llm/weights.h"

namespace weft::llm {

/// Logits after each token, (tokens, vocabulary) row-major. Plain attention, gated silu, RMS norms,
/// biases and norms of queries and keys where there are such tensors.
std::vector<double> reference_logits(const Config& config, const Weights& weights,
                                     const std::vector<TokenId>& tokens);

}  // namespace weft::llm
