// Draw: the next token out of a row of logits.
#pragma once

#include <span>

#include "weft/llm/generator.h"

namespace weft::llm {

/// Temperature, top-k, top-p and min-p, in this order of cuts; one random number a token, from the
/// sampling's seed, so that a request gives the same tokens whoever else is served.
class Draw {
 public:
  explicit Draw(const Sampling& sampling) : sampling_(sampling), state_(sampling.seed) {}
  GeneratedToken operator()(std::span<const float> logits);

 private:
  double uniform();
  Sampling sampling_;
  uint64_t state_;
};

}  // namespace weft::llm
