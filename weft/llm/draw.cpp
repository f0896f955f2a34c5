#include "weft/llm/draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::llm {

namespace {

double log_sum(std::span<const float> logits, float top) {
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - static_cast<double>(top));
  return static_cast<double>(top) + std::log(sum);
}

/// The `count` likeliest, the likeliest first; of equal ones the one with the lower id.
std::vector<TokenId> likeliest(std::span<const float> logits, size_t count) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto before = [&](TokenId a, TokenId b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  count = std::min(count, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    before);
  ids.resize(count);
  return ids;
}

}  // namespace

/// SplitMix64 (Steele et al. 2014), 53 bits.
double Draw::uniform() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

GeneratedToken Draw::operator()(std::span<const float> logits) {
  const Sampling& s = sampling_;
  const bool greedy = s.temperature <= 0;
  size_t wanted = greedy ? 1 : s.top_k > 0 ? static_cast<size_t>(s.top_k) : logits.size();
  wanted = std::max<size_t>(wanted, static_cast<size_t>(std::max(s.logprobs, 0)));
  std::vector<TokenId> ids = likeliest(logits, wanted);
  const float top = logits[static_cast<size_t>(ids[0])];
  const double total = s.logprobs >= 0 ? log_sum(logits, top) : 0;
  const auto reported = [&](TokenId id) {
    const double x = static_cast<double>(logits[static_cast<size_t>(id)]);
    return TokenProbability{id, static_cast<float>(x - total)};
  };
  GeneratedToken result;
  for (size_t i = 0; i < std::min(ids.size(), static_cast<size_t>(std::max(s.logprobs, 0))); ++i)
    result.alternatives.push_back(reported(ids[i]));
  size_t kept = greedy        ? 1
                : s.top_k > 0 ? std::min(ids.size(), static_cast<size_t>(s.top_k))
                              : ids.size();
  std::vector<double> weights;
  for (size_t i = 0; i < kept; ++i) {
    const double x = static_cast<double>(logits[static_cast<size_t>(ids[i])] - top);
    weights.push_back(greedy ? 1 : std::exp(x / static_cast<double>(s.temperature)));
  }
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    const bool small = weights[i] < static_cast<double>(s.min_p);
    if (i > 0 && (small || sum >= static_cast<double>(s.top_p) * all)) kept = i;
    if (i < kept) sum += weights[i];
  }
  size_t at = 0;
  if (!greedy)
    for (double left = uniform() * sum; at + 1 < kept && left >= weights[at]; ++at)
      left -= weights[at];
  result.token = s.logprobs >= 0 ? reported(ids[at]) : TokenProbability{ids[at], 0};
  return result;
}

}  // namespace weft::llm
