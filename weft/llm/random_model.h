// Models of random weights with all that a file needs, for tests and measurements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/io/gguf.h"

namespace weft::llm {

struct RandomShape {
  std::string_view name, family;  ///< family: llama, qwen2, qwen3 or gpt2
  int64_t layers, dim, heads, kv_heads, ffn, vocabulary, context;
  int64_t experts = 0, used = 0;  ///< of a mixture, as mixtral's: each as wide as ffn
};

std::span<const RandomShape> random_shapes();
/// Null: unknown.
const RandomShape* find_random_shape(std::string_view name);

/// Matrices in `codec`, vectors in f32. A matrix repeats a few thousand random blocks in random
/// order, so that a gigabyte takes seconds. The vocabulary has all bytes and made-up words. The
/// same seed gives the same file. Errors: "llm.random" where blocks do not divide the widths or the
/// vocabulary has no room for the bytes.
GgufContent random_model(const RandomShape& shape, Codec codec, uint64_t seed = 0);

}  // namespace weft::llm
