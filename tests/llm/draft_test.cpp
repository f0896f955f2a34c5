// Speculative decoding: what is guessed, how often, and that answers are what they are without.
#include "weft/llm/draft.h"

#include "tests/llm/tiny_models.h"
#include "weft/llm/grammar.h"

namespace weft::llm {
namespace {

using Tokens = std::vector<TokenId>;

Tokens looked_up(const Tokens& text, int64_t most) {
  const Sampler sampler{Sampling{}};
  Draft d{0, text, text.size(), most, &sampler, text.size()};
  LookupDrafter().guess(std::span(&d, 1));
  const auto guesses = d.guesses();
  return {guesses.begin(), guesses.end()};
}

TEST(Lookup, FindsWhatFollowedTheLongestMatch) {
  EXPECT_EQ(looked_up({1, 2, 3, 4, 5, 9, 2, 3}, 3), (Tokens{4, 5, 9}));
  EXPECT_EQ(looked_up({7, 1, 2, 5, 8, 1, 2, 6, 7, 1, 2}, 1), Tokens{5}) << "three tokens, not two";
  EXPECT_EQ(looked_up({1, 2, 5, 1, 2, 6, 1, 2}, 1), Tokens{6}) << "of equals the latest";
  EXPECT_EQ(looked_up({4, 4, 4}, 4), (Tokens{4, 4, 4, 4})) << "reads what it guessed";
  EXPECT_EQ(looked_up({1, 2, 3, 4, 2}, 4), Tokens{}) << "one token is no match";
  EXPECT_EQ(looked_up({1}, 4), Tokens{});
  EXPECT_EQ(looked_up({1, 2, 1, 2}, 0), Tokens{});
}

TEST(DraftPaces, FollowWhatHolds) {
  DraftPace pace(7);
  EXPECT_EQ(pace.next(), 3);
  pace.note(3, 3);
  EXPECT_EQ(pace.next(), 7);
  pace.note(7, 2);
  EXPECT_EQ(pace.next(), 3);
  std::vector<int64_t> steps;
  for (int i = 0; i < 12; ++i) {
    steps.push_back(pace.next());
    pace.note(steps.back(), 0);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{3, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}));
}

class Drafts : public Models {
 protected:
  /// Requests of all kinds of sampling, some with a grammar.
  static std::vector<Request> requests() {
    std::vector<Request> all;
    const auto add = [&](auto change, uint64_t seed = 0) {
      const auto i = static_cast<TokenId>(all.size());
      Request r = request({1, 40 + i, 7, 9, 40 + i, 7}, 24, seed);
      change(r);
      all.push_back(std::move(r));
    };
    add([](Request&) {});
    add([](Request&) {}, 3);
    add([](Request& r) { r.sampling.temperature = 0.3F; }, 4);
    add([](Request& r) { r.sampling.top_k = 20, r.sampling.top_p = 0.9F; }, 5);
    add([](Request& r) { r.sampling.min_p = 0.1F, r.sampling.typical_p = 0.8F; }, 6);
    add([](Request& r) { r.sampling.repetition_penalty = 1.3F; });
    add([](Request& r) {
      r.sampling.frequency_penalty = 0.4F, r.sampling.presence_penalty = 0.2F;
    });
    add([](Request& r) { r.sampling.mirostat_tau = 4; }, 7);
    add([](Request& r) { r.sampling.logit_bias = {{30, 40}, {31, 40}}; }, 8);
    add([](Request& r) { r.grammar = grammar("root ::= (\"ab\" | \"cd\"){30}"); });
    add([](Request& r) { r.grammar = grammar("root ::= [a-z]+ \";\""); }, 9);
    return all;
  }
  static std::shared_ptr<const Grammar> grammar(std::string_view text) {
    return std::make_shared<Grammar>(Grammar::from_gbnf(text));
  }
  /// In f32: several tokens of a text in one step are summed in another order, and what is then
  /// rounded to 8 bits may be another byte.
  static Model exact_model(ModelOptions options) {
    options.factors = Factors::F32;
    return model(options);
  }
  static std::vector<Result> answers(Model& m) {
    std::vector<RequestId> ids;
    for (Request& r : requests()) ids.push_back(m.submit(std::move(r)));
    auto all = run(m);
    std::vector<Result> in_order;
    for (const RequestId id : ids) in_order.push_back(all[id]);
    return in_order;
  }
  static void expect_same(const std::vector<Result>& got, const std::vector<Result>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tokens, wanted[i].tokens) << "request " << i;
      EXPECT_EQ(got[i].text, wanted[i].text) << "request " << i;
      EXPECT_EQ(got[i].finish, wanted[i].finish) << "request " << i;
    }
  }
  std::string draft_file(uint64_t seed, std::string_view shape = "tiny") const {
    save_gguf(at("draft.gguf"), random_model(*find_random_shape(shape), Codec::Q8_0, seed));
    return at("draft.gguf");
  }
};

TEST_F(Drafts, LookupKeepsAnswers) {
  Model plain = exact_model({.context = 128});
  const auto wanted = answers(plain);
  for (const int64_t slots : {1, 3}) {
    Model m = exact_model({.context = 128, .slots = slots, .draft_tokens = 5});
    expect_same(answers(m), wanted);
    EXPECT_GT(counter(m, "accepted_tokens"), 0);
    EXPECT_LT(counter(m, "steps"), counter(plain, "steps"));
  }
}

TEST_F(Drafts, ADraftModelKeepsAnswers) {
  Model plain = exact_model({.context = 128});
  const auto wanted = answers(plain);
  Model same = exact_model({.context = 128, .draft_tokens = 4, .draft_model = draft_file(1)});
  expect_same(answers(same), wanted);
  EXPECT_GT(counter(same, "accepted_tokens"), 0.95 * counter(same, "drafted_tokens"))
      << "the same model guesses what is drawn, by the same grammars";
  Model other =
      exact_model({.context = 128, .slots = 4, .draft_tokens = 5, .draft_model = draft_file(2)});
  expect_same(answers(other), wanted);
  EXPECT_GT(counter(other, "drafted_tokens"), 0);
}

TEST_F(Drafts, EndWhereTheContextEnds) {
  Model m = model({.context = 64, .draft_tokens = 5});
  const RequestId id = m.submit(request(Tokens(60, 9), -1));
  EXPECT_EQ(run(m)[id].tokens.size(), 5U);
  const RequestId few = m.submit(request(Tokens(20, 9), 3));
  EXPECT_EQ(run(m)[few].tokens.size(), 3U);
}

TEST_F(Drafts, WhatIsWrong) {
  EXPECT_ERROR(model({.context = 64, .draft_tokens = 6}), "6 tokens guessed ahead: 0 to 5");
  EXPECT_ERROR(model({.context = 64, .draft_tokens = 3, .draft_model = at("none.gguf")}),
               "none.gguf");
  RandomShape shape = *find_random_shape("tiny");
  shape.vocabulary = 300;
  save_gguf(at("small.gguf"), random_model(shape, Codec::Q8_0, 1));
  EXPECT_ERROR(model({.context = 64, .draft_tokens = 3, .draft_model = at("small.gguf")}),
               "has 300 tokens and the model 320");
}

}  // namespace
}  // namespace weft::llm
