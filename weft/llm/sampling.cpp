#include "weft/llm/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/llm/request_options.h"

namespace weft::llm {

namespace {
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

}  // namespace

void check_sampling(const Sampling& s, size_t vocabulary) {
  Sampling copy = s;
  check_options(options_of(copy));
  if (s.logprobs < -1 || s.logprobs > static_cast<int64_t>(vocabulary))
    fail("llm.sampling", "logprobs is {}; it has to be -1 (none) up to the vocabulary's size ({})",
         s.logprobs, vocabulary);
  for (const auto& [id, bias] : s.logit_bias) {
    if (id < 0 || static_cast<size_t>(id) >= vocabulary)
      fail("llm.sampling", "logit_bias has token {}; the vocabulary has {}", id, vocabulary);
    if (std::isnan(bias))
      fail("llm.sampling", "the logit_bias of token {} is {}; it has to be a number", id, bias);
  }
}

Sampler::Sampler(Sampling sampling)
    : sampling_(std::move(sampling)), surprise_limit_(2 * sampling_.mirostat_tau) {}

GeneratedToken Sampler::sample(std::span<const float> logits, std::span<const TokenId> tokens,
                               size_t prompt_size, std::span<const uint64_t> allowed) {
  logits_.assign(logits.begin(), logits.end());
  adjust(tokens, prompt_size, allowed);
  GeneratedToken result;
  if (sampling_.temperature == 0) {
    result.token.id = likeliest();
  } else {
    collect();
    const auto [high, low] = threefry2x32(sampling_.seed, tokens.size() - prompt_size);
    const double uniform = static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
    if (sampling_.mirostat_tau > 0) {
      result.token.id = mirostat(uniform);
    } else {
      typical();
      top_p();
      min_p();
      result.token.id = draw(uniform, sampling_.temperature);
    }
  }
  return reported(logits, result.token.id, sampling_.logprobs);
}

void Sampler::adjust(std::span<const TokenId> tokens, size_t prompt_size,
                     std::span<const uint64_t> allowed) {
  for (const auto& [id, bias] : sampling_.logit_bias)
    if (id >= 0 && static_cast<size_t>(id) < logits_.size())
      logits_[static_cast<size_t>(id)] += bias;
  for (size_t word = 0; word < (allowed.empty() ? 0 : (logits_.size() + 63) / 64); ++word) {
    uint64_t refused = word < allowed.size() ? ~allowed[word] : ~uint64_t{0};
    if (word == logits_.size() / 64) refused &= (uint64_t{1} << logits_.size() % 64) - 1;
    for (; refused != 0; refused &= refused - 1)
      logits_[word * 64 + static_cast<size_t>(std::countr_zero(refused))] = kImpossible;
  }
  penalise(tokens, prompt_size);
}

/// Keskar et al. 2019 (CTRL) for all tokens looked at, OpenAI's two for those generated.
void Sampler::penalise(std::span<const TokenId> tokens, size_t prompt_size) {
  const bool repetition = sampling_.repetition_penalty != 1;
  if (!repetition && sampling_.presence_penalty == 0 && sampling_.frequency_penalty == 0) return;
  size_t from = 0;
  if (sampling_.penalised_tokens >= 0)
    from = tokens.size() - std::min(tokens.size(), static_cast<size_t>(sampling_.penalised_tokens));
  std::vector<std::pair<TokenId, bool>> seen;  // and whether it was generated
  for (size_t i = from; i < tokens.size(); ++i)
    if (tokens[i] >= 0 && static_cast<size_t>(tokens[i]) < logits_.size())
      seen.emplace_back(tokens[i], i >= prompt_size);
  std::sort(seen.begin(), seen.end());
  for (size_t i = 0; i < seen.size();) {
    const TokenId id = seen[i].first;
    float count = 0;
    for (; i < seen.size() && seen[i].first == id; ++i) count += seen[i].second ? 1.0f : 0.0f;
    float& logit = logits_[static_cast<size_t>(id)];
    if (repetition)
      logit =
          logit > 0 ? logit / sampling_.repetition_penalty : logit * sampling_.repetition_penalty;
    if (count > 0) logit -= sampling_.presence_penalty + count * sampling_.frequency_penalty;
  }
}

TokenId Sampler::likeliest() const {
  size_t best = 0;
  float most = kImpossible;
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (!(logits_[i] > most)) continue;
    best = i;
    most = logits_[i];
  }
  if (most == kImpossible)
    fail_runtime("llm.logits",
                 "no token is possible: {} logits are all -inf or NaN; the model's "
                 "numbers overflow, or bias and grammar leave nothing",
                 logits_.size());
  return static_cast<TokenId>(best);
}

/// The top_k likeliest that are possible, or all. A heap of k keeps the scan cheap: most logits are
/// below its least.
void Sampler::collect() {
  most_ = logits_[static_cast<size_t>(likeliest())];
  candidates_.clear();
  // Beyond any top_k; and what is infinite leaves only what is infinite.
  const bool infinite = most_ == std::numeric_limits<float>::infinity();
  const size_t k = sampling_.top_k == 0 || sampling_.mirostat_tau > 0
                       ? logits_.size()
                       : static_cast<size_t>(sampling_.top_k);
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  float least = infinite ? most_ : std::numeric_limits<float>::lowest();
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (!(logits_[i] >= least)) continue;
    const Candidate c{static_cast<TokenId>(i), infinite ? 0.0f : logits_[i], 0};
    if (candidates_.size() < k) {
      candidates_.push_back(c);
      if (k < logits_.size()) std::push_heap(candidates_.begin(), candidates_.end(), before);
    } else if (before(c, candidates_.front())) {
      std::pop_heap(candidates_.begin(), candidates_.end(), before);
      candidates_.back() = c;
      std::push_heap(candidates_.begin(), candidates_.end(), before);
      if (!infinite) least = candidates_.front().logit;
    }
  }
  if (infinite) most_ = 0;
}

double Sampler::sum_of_weights() const {
  double sum = 0;
  for (const Candidate& c : candidates_) sum += std::exp(c.logit - most_);
  return sum;
}

/// Those with the greatest keys whose probabilities sum to `mass`, one at least, the greatest
/// first. A heap gives them one by one: seldom are all of them needed in order.
void Sampler::keep_mass(double mass) {
  const auto behind = [](const Candidate& a, const Candidate& b) {
    return a.key != b.key ? a.key < b.key : a.id > b.id;
  };
  const double wanted = mass * sum_of_weights();
  std::make_heap(candidates_.begin(), candidates_.end(), behind);
  double sum = 0;
  auto end = candidates_.end();
  do {
    std::pop_heap(candidates_.begin(), end, behind);
    sum += std::exp((--end)->logit - most_);
  } while (sum < wanted && end != candidates_.begin());
  candidates_.erase(candidates_.begin(), end);
  std::reverse(candidates_.begin(), candidates_.end());
}

/// Meister et al. 2023: those whose surprise is closest to the entropy.
void Sampler::typical() {
  if (sampling_.typical_p >= 1) return;
  const double log_sum = std::log(sum_of_weights()) + most_;
  double entropy = 0;
  for (const Candidate& c : candidates_) {
    const double log_p = c.logit - log_sum;
    entropy -= std::exp(log_p) * log_p;
  }
  for (Candidate& c : candidates_)
    c.key = static_cast<float>(-std::fabs(log_sum - c.logit - entropy));
  keep_mass(sampling_.typical_p);
  most_ = kImpossible;  // the likeliest may be gone
  for (const Candidate& c : candidates_) most_ = std::max(most_, c.logit);
}

void Sampler::top_p() {
  if (sampling_.top_p >= 1) return;
  for (Candidate& c : candidates_) c.key = c.logit;
  keep_mass(sampling_.top_p);
}

void Sampler::min_p() {
  if (sampling_.min_p <= 0) return;
  const float least = most_ + std::log(sampling_.min_p);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
}

TokenId Sampler::draw(double uniform, float temperature) {
  const auto weight = [&](const Candidate& c) { return std::exp((c.logit - most_) / temperature); };
  double sum = 0;
  for (Candidate& c : candidates_) sum += c.key = weight(c);
  double left = uniform * sum;
  for (const Candidate& c : candidates_) {
    left -= c.key;
    if (left < 0) return c.id;
  }
  // Rounding: the last that is possible.
  for (auto c = candidates_.rbegin(); c != candidates_.rend(); ++c)
    if (c->key > 0) return c->id;
  return candidates_.front().id;
}

/// Basu et al. 2021, algorithm 2: what surprises more than mu bits is left out, and mu goes to
/// where the surprise is tau.
TokenId Sampler::mirostat(double uniform) {
  const auto bits = [](const Candidate& c, double log_sum) {
    return (log_sum - static_cast<double>(c.logit)) / std::log(2.0);
  };
  for (Candidate& c : candidates_) c.logit = (c.logit - most_) / sampling_.temperature;
  most_ = 0;
  const double log_sum = std::log(sum_of_weights());
  std::erase_if(candidates_, [&](const Candidate& c) {
    return c.logit < 0 && bits(c, log_sum) > static_cast<double>(surprise_limit_);
  });
  const double kept = std::log(sum_of_weights());
  const TokenId id = draw(uniform, 1);
  const auto drawn = std::find_if(candidates_.begin(), candidates_.end(),
                                  [&](const Candidate& c) { return c.id == id; });
  surprise_limit_ -=
      sampling_.mirostat_eta *
      static_cast<float>(bits(*drawn, kept) - static_cast<double>(sampling_.mirostat_tau));
  return id;
}

/// Of the model's own distribution.
GeneratedToken reported(std::span<const float> logits, TokenId id, int32_t alternatives) {
  GeneratedToken token{{id, 0}, {}};
  if (alternatives < 0) return token;
  float most = kImpossible;
  for (const float x : logits) most = x > most ? x : most;
  double sum = 0;
  for (const float x : logits)
    if (x > kImpossible) sum += std::exp(x - most);
  const auto log_sum = static_cast<float>(std::log(sum) + static_cast<double>(most));
  const auto log_probability = [&](size_t i) {
    return std::isnan(logits[i]) ? kImpossible : logits[i] - log_sum;
  };
  token.token.logprob = log_probability(static_cast<size_t>(id));
  std::vector<TokenProbability>& best = token.alternatives;
  const auto before = [](const TokenProbability& a, const TokenProbability& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  };
  const auto most_wanted = static_cast<size_t>(alternatives);
  for (size_t i = 0; i < logits.size() && most_wanted > 0; ++i) {
    const TokenProbability p{static_cast<TokenId>(i), log_probability(i)};
    if (best.size() == most_wanted && !before(p, best.front())) continue;
    if (best.size() == most_wanted) {
      std::pop_heap(best.begin(), best.end(), before);
      best.pop_back();
    }
    best.push_back(p);
    std::push_heap(best.begin(), best.end(), before);
  }
  std::sort_heap(best.begin(), best.end(), before);
  return token;
}

// The rotations and the key schedule's constant are the paper's (table 2 and section 2.2).
std::pair<uint32_t, uint32_t> threefry2x32(uint64_t key, uint64_t counter) {
  constexpr int kRotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {
      static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
      0x1bd11bda ^ static_cast<uint32_t>(key) ^ static_cast<uint32_t>(key >> 32)};
  uint32_t x = static_cast<uint32_t>(counter) + keys[0];
  uint32_t y = static_cast<uint32_t>(counter >> 32) + keys[1];
  for (uint32_t round = 0; round < 20; ++round) {
    x += y;
    y = std::rotl(y, kRotations[round % 8]) ^ x;
    if (round % 4 != 3) continue;
    const uint32_t step = round / 4 + 1;
    x += keys[step % 3];
    y += keys[(step + 1) % 3] + step;
  }
  return {x, y};
}

}  // namespace weft::llm
