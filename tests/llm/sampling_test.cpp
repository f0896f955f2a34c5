#include "weft/llm/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "weft/base/error.h"

namespace weft::llm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Logits = std::vector<float>;
using Tokens = std::vector<TokenId>;

/// How often each token is drawn, one draw per place in the answer.
std::vector<double> counts(const Sampling& sampling, const Logits& logits, int draws) {
  Sampler sampler(sampling);
  std::vector<double> counted(logits.size());
  Tokens tokens(static_cast<size_t>(draws), 0);
  for (int i = 0; i < draws; ++i) {
    const std::span<const TokenId> so_far(tokens.data(), static_cast<size_t>(i));
    ++counted[static_cast<size_t>(sampler.sample(logits, so_far, 0).token.id)];
  }
  return counted;
}

std::vector<double> softmax(const Logits& logits, double temperature = 1) {
  std::vector<double> p;
  for (const float x : logits) p.push_back(std::exp(static_cast<double>(x) / temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

/// Pearson's statistic; what may not be drawn has to be drawn never.
double chi_square(const std::vector<double>& counted, const std::vector<double>& p) {
  const double draws = std::accumulate(counted.begin(), counted.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      EXPECT_EQ(counted[i], 0) << "token " << i;
      continue;
    }
    sum += (counted[i] - draws * p[i]) * (counted[i] - draws * p[i]) / (draws * p[i]);
  }
  return sum;
}
// 7 degrees of freedom at most: 1 of 100,000 random statistics is above this.
constexpr double kMostChiSquare = 36;
constexpr int kDraws = 20000;
const Logits kLogits = {0.5f, -1, 2, 1.5f, 0, -3, 1, 0.25f};

std::vector<double> only(std::vector<double> p, const std::vector<size_t>& kept) {
  double sum = 0;
  for (const size_t i : kept) sum += p[i];
  std::vector<double> q(p.size(), 0);
  for (const size_t i : kept) q[i] = p[i] / sum;
  return q;
}

TEST(Sampler, DrawsFromTheModelsDistribution) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}})
    EXPECT_LT(chi_square(counts({.seed = seed}, kLogits, kDraws), softmax(kLogits)),
              kMostChiSquare);
  for (const float t : {0.3f, 2.0f})
    EXPECT_LT(chi_square(counts({.temperature = t}, kLogits, kDraws),
                         softmax(kLogits, static_cast<double>(t))),
              kMostChiSquare);
}

TEST(Sampler, CutsTheTail) {
  const std::vector<double> p = softmax(kLogits);  // in order: 2 3 6 0 7 4 1 5
  EXPECT_LT(chi_square(counts({.top_k = 3}, kLogits, kDraws), only(p, {2, 3, 6})), kMostChiSquare);
  const float two = static_cast<float>(p[2] + p[3] / 2);  // reached by the second
  EXPECT_LT(chi_square(counts({.top_p = two}, kLogits, kDraws), only(p, {2, 3})), kMostChiSquare);
  EXPECT_LT(chi_square(counts({.min_p = std::exp(-1.1f)}, kLogits, kDraws), only(p, {2, 3, 6})),
            kMostChiSquare);
  EXPECT_EQ(counts({.top_p = 0}, kLogits, 100)[2], 100);
  EXPECT_EQ(counts({.top_k = 1}, kLogits, 100)[2], 100);
  EXPECT_EQ(counts({.min_p = 1}, kLogits, 100)[2], 100);
  // Top-p counts in what top-k left: 2 has 0.51 of {2, 3, 6}.
  EXPECT_EQ(counts({.top_k = 3, .top_p = 0.5f}, kLogits, 100)[2], 100);
}

TEST(Sampler, KeepsTypicalTokens) {
  const std::vector<double> p = softmax(kLogits);
  double entropy = 0;
  for (const double x : p) entropy -= x * std::log(x);
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::fabs(-std::log(p[a]) - entropy) < std::fabs(-std::log(p[b]) - entropy);
  });
  const float three = static_cast<float>(p[order[0]] + p[order[1]] + p[order[2]] / 2);
  EXPECT_LT(chi_square(counts({.typical_p = three}, kLogits, kDraws),
                       only(p, {order[0], order[1], order[2]})),
            kMostChiSquare);
}

TEST(Sampler, TakesTheLikeliestAtTemperatureZero) {
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(sampler.sample(kLogits, {}, 0).token.id, 2);
  EXPECT_EQ(sampler.sample(Logits{1, 3, 3, 2}, {}, 0).token.id, 1);
  EXPECT_EQ(sampler.sample(Logits{NAN, -kInfinity, -5, NAN}, {}, 0).token.id, 2);
}

TEST(Sampler, PenalisesWhatWasSaid) {
  const Tokens tokens = {0, 0, 1, 2, 2, 3};  // a prompt of three
  const auto next = [&](Sampling sampling, const Logits& logits) {
    sampling.temperature = 0;
    return Sampler(sampling).sample(logits, tokens, 3).token.id;
  };
  // CTRL's looks at the prompt too, OpenAI's do not.
  EXPECT_EQ(next({.repetition_penalty = 2}, {4, 3, 3, 3, 2.5f}), 4);
  EXPECT_EQ(next({.repetition_penalty = 2}, {-1, -1, -1, -1, -1.5f}), 4);
  EXPECT_EQ(next({.presence_penalty = 1}, {2, 1, 2.5f, 2.5f, 1.75f}), 0);
  EXPECT_EQ(next({.frequency_penalty = 1}, {0, 0, 2.5f, 2, 0}), 3);
  EXPECT_EQ(next({.frequency_penalty = 1, .penalised_tokens = 2}, {0, 0, 2.5f, 2, 0}), 2);
  EXPECT_EQ(next({.frequency_penalty = 1, .penalised_tokens = 0}, {0, 0, 2.5f, 2, 0}), 2);
  EXPECT_EQ(next({.repetition_penalty = 2, .penalised_tokens = -1}, {4, 1, 1, 1, 2.5f}), 4);
  EXPECT_EQ(next({.logit_bias = {{1, 9.0f}, {4, -kInfinity}}}, {4, 1, 1, 1, 20}), 1);
}

TEST(Sampler, DrawsOnlyWhatIsAllowed) {
  Logits logits(130, 1);
  logits[128] = 50;
  const std::vector<uint64_t> allowed = {0, uint64_t{1} << 63, 2};
  for (const float t : {0.0f, 1.0f}) {
    Sampler sampler({.temperature = t});
    for (int i = 0; i < 50; ++i) {
      const Tokens tokens(static_cast<size_t>(i), 0);
      const TokenId id = sampler.sample(logits, tokens, 0, allowed).token.id;
      EXPECT_TRUE(id == 127 || id == 129) << id;
    }
  }
  EXPECT_THROW(Sampler(Sampling{}).sample(logits, {}, 0, std::vector<uint64_t>(3, 0)), Error);
}

TEST(Sampler, TellsTheModelsProbabilities) {
  Sampler sampler({.temperature = 0.1f, .top_k = 1, .logit_bias = {{5, 99.0f}}, .logprobs = 3});
  const GeneratedToken token = sampler.sample(kLogits, {}, 0);
  EXPECT_EQ(token.token.id, 5);
  const std::vector<double> p = softmax(kLogits);
  EXPECT_NEAR(token.token.logprob, std::log(p[5]), 1e-5);
  ASSERT_EQ(token.alternatives.size(), 3u);
  for (const auto& [place, id] : std::map<size_t, TokenId>{{0, 2}, {1, 3}, {2, 6}}) {
    EXPECT_EQ(token.alternatives[place].id, id);
    EXPECT_NEAR(token.alternatives[place].logprob, std::log(p[static_cast<size_t>(id)]), 1e-5);
  }
  EXPECT_TRUE(Sampler(Sampling{}).sample(kLogits, {}, 0).alternatives.empty());
}

TEST(Sampler, HoldsTheSurpriseWithMirostat) {
  // Zipf: from 2 to 12 bits of surprise.
  Logits logits;
  for (int i = 1; i <= 2000; ++i) logits.push_back(-1.1f * std::log(static_cast<float>(i)));
  const std::vector<double> p = softmax(logits);
  for (const float tau : {3.0f, 5.0f}) {
    Sampler sampler({.mirostat_tau = tau});
    Tokens tokens;
    double bits = 0;
    for (int i = 0; i < 1000; ++i) {
      tokens.push_back(sampler.sample(logits, tokens, 0).token.id);
      if (i < 200) continue;
      bits -= std::log2(p[static_cast<size_t>(tokens.back())]);
    }
    // Mirostat holds the surprise in what is kept; in all it is a little more.
    EXPECT_GT(bits / 800, static_cast<double>(tau) - 0.2);
    EXPECT_LT(bits / 800, static_cast<double>(tau) + 1.5);
  }
}

TEST(Sampler, DependsOnSeedAndPlaceAlone) {
  Sampler a({.seed = 7}), b({.seed = 7}), c({.seed = 8});
  Tokens tokens = {1, 2};
  int same = 0;
  for (int i = 0; i < 50; ++i) {
    const TokenId id = a.sample(kLogits, tokens, 2).token.id;
    EXPECT_EQ(b.sample(kLogits, tokens, 2).token.id, id);
    same += c.sample(kLogits, tokens, 2).token.id == id ? 1 : 0;
    tokens.push_back(id);
  }
  EXPECT_LT(same, 35);
}

TEST(Sampler, TakesInfiniteLogits) {
  Sampler sampler({});
  for (int i = 0; i < 20; ++i) {
    const TokenId id =
        sampler.sample(Logits{1, kInfinity, 3, kInfinity}, Tokens(static_cast<size_t>(i), 0), 0)
            .token.id;
    EXPECT_TRUE(id == 1 || id == 3);
  }
  EXPECT_THROW(sampler.sample(Logits{-kInfinity, NAN}, {}, 0), Error);
  EXPECT_THROW(sampler.sample(Logits{}, {}, 0), Error);
}

// The known answers of Random123 (kat_vectors): threefry2x32, 20 rounds.
TEST(Sampler, HasThreefrysKnownAnswers) {
  const auto pair = [](uint32_t a, uint32_t b) { return std::pair(a, b); };
  EXPECT_EQ(threefry2x32(0, 0), pair(0x6b200159, 0x99ba4efe));
  EXPECT_EQ(threefry2x32(~uint64_t{0}, ~uint64_t{0}), pair(0x1cb996fc, 0xbb002be7));
  EXPECT_EQ(threefry2x32(0x03707344'13198a2e, 0x85a308d3'243f6a88), pair(0xc4923a9c, 0x483df7a0));
}

TEST(Sampler, RefusesOptionsOutsideTheirRange) {
  const std::pair<Sampling, const char*> kWrong[] = {
      {{.temperature = -1}, "temperature is -1; it has to be 0 to 100"},
      {{.temperature = NAN}, "temperature is nan"},
      {{.top_k = -2}, "top_k is -2; it has to be 0 or more"},
      {{.top_p = 1.5f}, "top_p is 1.5"},
      {{.min_p = -0.5f}, "min_p is -0.5"},
      {{.typical_p = NAN}, "typical_p is nan"},
      {{.repetition_penalty = 0}, "repetition_penalty is 0"},
      {{.presence_penalty = 1e9f}, "presence_penalty is 1000000000"},
      {{.frequency_penalty = NAN}, "frequency_penalty is nan"},
      {{.penalised_tokens = -5}, "penalised_tokens is -5"},
      {{.logit_bias = {{10, 1.0f}}}, "logit_bias has token 10; the vocabulary has 10"},
      {{.logit_bias = {{-1, 1.0f}}}, "logit_bias has token -1"},
      {{.logit_bias = {{1, NAN}}}, "the logit_bias of token 1 is nan"},
      {{.mirostat_tau = -1}, "mirostat_tau is -1"},
      {{.logprobs = 11}, "logprobs is 11"},
  };
  check_sampling({}, 10);
  for (const auto& [sampling, want] : kWrong) {
    try {
      check_sampling(sampling, 10);
      ADD_FAILURE() << want;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "llm.sampling");
      EXPECT_NE(e.message().find(want), std::string::npos) << e.message();
    }
  }
}

}  // namespace
}  // namespace weft::llm
