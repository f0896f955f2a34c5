// Sampler: draws a token from a row of logits, as a Sampling says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/llm/generator.h"

namespace weft::llm {

/// Errors: llm.sampling, for options outside their range or ids outside the vocabulary.
void check_sampling(const Sampling& sampling, size_t vocabulary);

/// A token's probability and the likeliest `alternatives` beside it (-1: neither).
GeneratedToken reported(std::span<const float> logits, TokenId id, int32_t alternatives);

/// What a request draws with. The steps, in llama.cpp's default order: logit bias, what is allowed,
/// penalties, top-k, typical, top-p, min-p, temperature, draw; where the temperature is 0 the
/// likeliest after the penalties, of equals the one with the lowest id. The draw number i of a seed
/// is threefry2x32(seed, i), so an answer depends on neither batch nor threads.
///   Sampler sampler(request.sampling);
///   tokens.push_back(sampler.sample(logits, tokens, request.prompt.size()).token.id);
class Sampler {
 public:
  explicit Sampler(Sampling sampling);

  /// `logits`: of the token to come; NaN counts as impossible. `tokens`: the prompt, of
  /// `prompt_size`, and the answer so far. `allowed`: bit i % 64 of word i / 64 for token i; empty:
  /// all. Error: llm.logits, where no token is possible.
  GeneratedToken sample(std::span<const float> logits, std::span<const TokenId> tokens,
                        size_t prompt_size, std::span<const uint64_t> allowed = {});

 private:
  struct Candidate {
    TokenId id;
    float logit;
    float key;  // what the step at hand orders by
  };
  void adjust(std::span<const TokenId> tokens, size_t prompt_size,
              std::span<const uint64_t> allowed);
  void penalise(std::span<const TokenId> tokens, size_t prompt_size);
  TokenId likeliest() const;
  void collect();
  void keep_mass(double mass);
  double sum_of_weights() const;
  void typical();
  void top_p();
  void min_p();
  TokenId draw(double uniform, float temperature);
  TokenId mirostat(double uniform);

  Sampling sampling_;
  float surprise_limit_;       // Mirostat's mu
  std::vector<float> logits_;  // adjusted
  std::vector<Candidate> candidates_;
  float most_ = 0;  // of the candidates' logits
};

/// The two output words of threefry2x32-20 (Salmon et al. 2011).
std::pair<uint32_t, uint32_t> threefry2x32(uint64_t key, uint64_t counter);

}  // namespace weft::llm
