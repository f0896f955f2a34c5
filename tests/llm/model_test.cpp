// Many requests out of one model.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "tests/llm/tiny_models.h"
#include "weft/base/context.h"
#include "weft/base/resident_memory.h"
#include "weft/device/device.h"
#include "weft/io/host_memory.h"
#include "weft/llm/grammar.h"
#include "weft/llm/interleaved.h"
#include "weft/run/realize.h"
#include "weft/run/stats.h"

namespace weft::llm {
namespace {

TEST_F(Models, RefuseWhatIsNoPrompt) {
  Model m = model({.context = 64, .queue = 1});
  expect_refused(m, request({}, 1), "llm.prompt", "the prompt has no tokens");
  expect_refused(m, request({5, 320}, 1), "llm.prompt", "token 320 is none of the model's 320");
  expect_refused(m, request({5, -1}, 1), "llm.prompt", "token -1 is none");
  expect_refused(m, request(std::vector<TokenId>(65, 3), 1), "llm.context",
                 "the prompt has 65 tokens, and the context is 64");
  m.submit(request({5}, 1));
  expect_refused(m, request({5}, 1), "llm.queue", "1 requests wait already");
}

TEST_F(Models, SameTextAloneAndAmongOthers) {
  Model alone = model({.context = 128}), busy = model({.context = 128, .slots = 3});
  std::vector<std::vector<TokenId>> wanted;
  for (int i = 0; i < 5; ++i) {
    const RequestId id = alone.submit(request({1, 40 + i, 7, 9 * i}, 12, i % 2 == 0 ? 0 : 5));
    wanted.push_back(run(alone)[id].tokens);
  }
  std::vector<RequestId> ids;
  for (int i = 0; i < 5; ++i)
    ids.push_back(busy.submit(request({1, 40 + i, 7, 9 * i}, 12, i % 2 == 0 ? 0 : 5)));
  auto got = run(busy);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(got[ids[i]].tokens, wanted[i]) << "request " << i;
    EXPECT_EQ(got[ids[i]].finish, Finish::Length);
  }
}

/// Copies with rows side by side come once a token is out, or what began them ends, and change
/// nothing of answers.
TEST_F(Models, CopyWeightsBehindTheFirstToken) {
  for (const Codec codec : {Codec::Q4_0, Codec::Q6_K}) {
    Model early = model({.context = 128, .slots = 2}, codec),
          late = model({.context = 128, .slots = 2}, codec);
    const bool waits = interleaved_rows(codec, 2) > 0 && interleaving_may_wait(codec);
    EXPECT_EQ(early.work_ahead(), waits) << "the first of several matrices";
    while (early.work_ahead()) {}
    std::vector<std::vector<TokenId>> wanted;
    for (const TokenId id : {40, 41}) {
      const RequestId alone = early.submit(request({1, id, 7}, 40, 5));
      wanted.push_back(run(early)[alone].tokens);
    }
    Model begun = model({.context = 128, .slots = 2}, codec);
    begun.work_ahead();
    for (Model* m : {&late, &begun}) {
      const RequestId first = m->submit(request({1, 40, 7}, 40, 5)),
                      second = m->submit(request({1, 41, 7}, 40, 5));
      auto got = run(*m);
      EXPECT_EQ(got[first].tokens, wanted[0]) << name(codec);
      EXPECT_EQ(got[second].tokens, wanted[1]) << name(codec);
      EXPECT_FALSE(m->work_ahead()) << "all is copied";
    }
  }
}

/// A file's pages leave memory one matrix after the other, as they are copied.
TEST_F(Models, AreInMemoryOnceWhileTheyAreCopied) {
  const RandomShape wide = {"wide", "llama", 2, 2048, 8, 8, 4096, 320, 256};
  const std::string file = at("wide.gguf");
  save_gguf(file, random_model(wide, Codec::Q4_0, 1));
  const ModelFile read = read_model(file);
  AnswerWeights weights(read, Factors::Q8, 1);
  if (weights.complete()) GTEST_SKIP() << "this machine does not copy, or before the first token";
  for (const auto& [name, weight] : weights.now().all()) fetch(weight.stored);
  const int64_t before = resident_memory().now, whole = read.weights.bytes();
  int64_t most = 0;
  while (!weights.copy_next()) most = std::max(most, resident_memory().now - before);
  EXPECT_LT(most, whole / 2) << "of " << whole;
}

TEST_F(Models, EndWhereTheContextEnds) {
  Model m = model({.context = 64});
  const RequestId id = m.submit(request(std::vector<TokenId>(60, 9), -1));
  const Result r = run(m)[id];
  EXPECT_EQ(r.finish, Finish::Length);
  EXPECT_EQ(r.tokens.size(), 5U) << "4 places behind the prompt, and what follows the last";
}

TEST_F(Models, ReuseWhatASlotHolds) {
  Model m = model({.context = 128});
  std::vector<TokenId> prompt;
  for (int i = 0; i < 40; ++i) prompt.push_back(3 + i);
  const RequestId first = m.submit(request(prompt, 4));
  const std::vector<TokenId> wanted = run(m)[first].tokens;
  const RequestId again = m.submit(request(prompt, 4));
  EXPECT_EQ(run(m)[again].tokens, wanted);
  EXPECT_EQ(counter(m, "reused_tokens"), 39);
  prompt[20] = 250;
  m.submit(request(prompt, 1));
  run(m);
  EXPECT_EQ(counter(m, "reused_tokens"), 59);
}

TEST_F(Models, WhereAWindowIsGoneAPromptIsComputedAgain) {
  RandomShape shape = *find_random_shape("tiny");
  shape.context = 1024;
  const GgufModel file = gguf_model(random_model(shape, Codec::Q8_0, 1));
  Config config = read_config(file.content);
  config.window = 24;
  config.local = {true, true};
  const auto made = [&](int64_t guesses) {
    return Model(ModelFile{config, Weights(file)}, text::Tokenizer::from_gguf(file.content),
                 {.context = 1024, .factors = Factors::F32, .draft_tokens = guesses});
  };
  std::vector<TokenId> first, second;
  for (int i = 0; i < 600; ++i) first.push_back(3 + i * i % 301);
  second.assign(first.begin(), first.begin() + 100);
  for (int i = 0; i < 30; ++i) second.push_back(5 + 3 * i);
  const auto answer = [](Model& m, const std::vector<TokenId>& prompt) {
    const RequestId id = m.submit(request(prompt, 8));
    return run(m)[id].tokens;
  };
  Model fresh = made(0), m = made(4);
  const std::vector<TokenId> wanted = answer(fresh, second);
  EXPECT_EQ(answer(m, first).size(), 8U);
  EXPECT_EQ(answer(m, second), wanted);
  EXPECT_EQ(counter(m, "reused_tokens"), 0) << "what layers kept was of the end";
  EXPECT_EQ(answer(m, second), wanted);
  EXPECT_EQ(counter(m, "reused_tokens"), 129);
}

TEST_F(Models, CancelFreesTheSlot) {
  Model m = model({.context = 128});
  const RequestId a = m.submit(request({4, 5}, 100)), b = m.submit(request({6, 7}, 3));
  const RequestId c = m.submit(request({6, 7}, 3));
  m.step();
  m.cancel(a);
  m.cancel(c);
  m.cancel(999);
  auto rest = run(m);
  EXPECT_EQ(rest[a].finish, Finish::Cancelled);
  EXPECT_EQ(rest[c].finish, Finish::Cancelled);
  EXPECT_TRUE(rest[c].tokens.empty());
  EXPECT_EQ(rest[b].finish, Finish::Length);
  EXPECT_EQ(rest[b].tokens.size(), 3U);
}

/// A step that fails in the middle, of whose writes nothing is known: those that run fail, and the
/// model goes on.
TEST_F(Models, GoOnAfterAStepThatFailed) {
  Model alone = model({.context = 128});
  const RequestId first = alone.submit(request({1, 40, 7}, 12));
  const std::vector<TokenId> wanted = run(alone)[first].tokens;
  Device& device = Context::current().get<DeviceTable>().default_device();
  for (const int64_t drafts : {0, 3}) {
    Model m = model({.context = 128, .slots = 2, .draft_tokens = drafts});
    for (const int64_t command : {0, 5, 20}) {
      const RequestId a = m.submit(request({1, 40, 7}, 100)), b = m.submit(request({5, 6}, 100));
      for (int i = 0; i < 4; ++i) m.step();
      device.fail_after(command, Device::Fault::Stop);
      auto got = run(m);
      device.fail_after(-1, Device::Fault::Stop);
      EXPECT_EQ(got[a].finish, Finish::Failed);
      EXPECT_EQ(got[b].finish, Finish::Failed);
      EXPECT_GT(counter(m, "cache_bytes"), 0);
      const RequestId again = m.submit(request({1, 40, 7}, 12));
      EXPECT_EQ(run(m)[again].tokens, wanted);
      EXPECT_EQ(m.embedding(std::vector<TokenId>{1, 2}).size(), 256U);
    }
  }
}

TEST_F(Models, StopTexts) {
  Model m = model({.context = 128});
  Request r = request({4, 5, 6}, 30);
  const RequestId whole = m.submit(r);
  const std::string text = run(m)[whole].text;
  ASSERT_GT(text.size(), 12U);
  const std::string stop = text.substr(6, 4);
  r.stop = {"never occurs", stop};
  const RequestId cut = m.submit(r);
  const Result got = run(m)[cut];
  EXPECT_EQ(got.finish, Finish::Stop);
  EXPECT_EQ(got.text, text.substr(0, text.find(stop)));
}

/// Of the logits of all: the model's distribution.
double logprob(std::span<const float> logits, TokenId id) {
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  return static_cast<double>(logits[static_cast<size_t>(id)]) - std::log(sum);
}

TEST_F(Models, ProbabilitiesOfAPrompt) {
  Model m = model({.context = 256, .slots = 2});
  std::vector<TokenId> prompt;
  for (int i = 0; i < 150; ++i) prompt.push_back(3 + 7 * i % 300);
  const std::vector<float> logits = m.logits(prompt);
  Request r = request(prompt, 0);
  r.prompt_logprobs = 2;
  for (int again = 0; again < 2; ++again) {  // also where a slot holds it
    m.submit(r);
    std::vector<GeneratedToken> got;
    while (!m.idle())
      for (Progress& p : m.step()) {
        EXPECT_EQ(p.tokens.size(), 0U);
        EXPECT_EQ(p.finish, Finish::Length);
        got = std::move(p.prompt);
      }
    ASSERT_EQ(got.size(), prompt.size());
    EXPECT_TRUE(std::isnan(got[0].token.logprob));
    for (size_t i = 1; i < got.size(); ++i) {
      EXPECT_EQ(got[i].token.id, prompt[i]);
      const double wanted = logprob(std::span(logits).subspan((i - 1) * 320, 320), prompt[i]);
      EXPECT_NEAR(static_cast<double>(got[i].token.logprob), wanted, 1e-4) << i;
      ASSERT_EQ(got[i].alternatives.size(), 2U);
      EXPECT_GE(got[i].alternatives[0].logprob, got[i].token.logprob);
    }
  }
  r = request(prompt, 1);
  m.submit(r);
  EXPECT_EQ(m.step().at(0).reused_tokens, 149);
  r.reuse_prefix = false;
  m.submit(r);
  std::vector<Progress> all;
  while (all.empty()) all = m.step();
  EXPECT_EQ(all.at(0).reused_tokens, 0);
}

TEST_F(Models, StopTokensAndTheLeastLength) {
  Model m = model({.context = 128});
  Request r = request({4, 5, 6}, 20, 3);
  const RequestId whole = m.submit(r);
  const std::vector<TokenId> tokens = run(m)[whole].tokens;
  r.stop_tokens = {tokens[5]};
  const RequestId cut = m.submit(r);
  const Result got = run(m)[cut];
  EXPECT_EQ(got.finish, Finish::Stop);
  EXPECT_EQ(got.tokens.back(), tokens[5]);
  EXPECT_LE(got.tokens.size(), 6U);
  r.min_tokens = 12;
  const RequestId longer = m.submit(r);
  const std::vector<TokenId> least = run(m)[longer].tokens;
  EXPECT_GE(least.size(), 12U);
  const auto end = std::ranges::find(least, tokens[5]) - least.begin();
  EXPECT_GE(end, 12);
  r.min_tokens = 21;
  expect_refused(m, r, "llm.sampling", "min_tokens is 21");
  r.min_tokens = 0;
  r.stop_tokens = {320};
  expect_refused(m, r, "llm.sampling", "token 320 shall end the answer");
  // A grammar's end comes first.
  r = request({4, 5, 6}, 20, 3);
  r.ignore_end = false;
  r.min_tokens = 12;
  r.grammar = std::make_shared<const Grammar>(Grammar::from_gbnf("root ::= [a-z] [a-z]"));
  const RequestId short_one = m.submit(r);
  EXPECT_EQ(run(m)[short_one].finish, Finish::Stop);
}

TEST_F(Models, Embeddings) {
  Model m = model({.context = 64});
  const std::vector<TokenId> tokens = {1, 50, 60};
  const std::vector<float> e = m.embedding(tokens);
  ASSERT_EQ(e.size(), 256U);
  double square = 0;
  for (const float x : e) square += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(square, 1, 1e-5);
  EXPECT_EQ(m.embedding(tokens), e);
}

/// Of "plan: 12 bytes = 4 inputs + 4 new outputs + 4 intermediates", as WEFT_DEBUG=2 prints it.
void note_intermediates(void* most, std::string_view text) {
  const size_t at = text.rfind("plan: ");
  int64_t inputs = 0, outputs = 0, intermediates = 0, sum = 0;
  if (at != std::string_view::npos && std::sscanf(std::string(text.substr(at)).c_str(),
                                                  "plan: %" SCNd64 " bytes = %" SCNd64
                                                  " inputs + %" SCNd64 " new outputs + %" SCNd64,
                                                  &sum, &inputs, &outputs, &intermediates) == 4)
    *static_cast<int64_t*>(most) = std::max(*static_cast<int64_t*>(most), intermediates);
}

/// Bytes between what a part of 256 tokens is given and what it gives.
int64_t intermediates_of_prompt(int64_t layers) {
  Options options = Options::from_environment();
  options.debug = 2;
  Context context(options);
  const ContextScope scope(context);
  int64_t most = 0;
  context.log_sink() = {note_intermediates, &most};
  const RandomShape shape{"deep", "llama", layers, 256, 4, 2, 512, 320, 512};
  const GgufModel file = gguf_model(random_model(shape, Codec::Q8_0, 1));
  Model m(ModelFile{read_config(file.content), Weights(file)},
          text::Tokenizer::from_gguf(file.content), {.context = 512});
  Request request;
  for (TokenId i = 0; i < 256; ++i) request.prompt.push_back(i % 320);
  request.max_tokens = 1;
  m.submit(std::move(request));
  while (!m.idle()) m.step();
  return most;
}

TEST_F(Models, RefusesNumbersBelowNone) {
  EXPECT_THROW(model({.context = -1}), Error);
  Model m = model({.context = 64});
  Request request;
  request.prompt = {1};
  request.max_tokens = -2;
  EXPECT_THROW(m.submit(request), Error);
  request.max_tokens = -1;
  EXPECT_NO_THROW(m.submit(request));
}

TEST_F(Models, MemoryOfAPromptDoesNotGrowWithTheLayers) {
  const int64_t few = intermediates_of_prompt(2);
  constexpr int64_t kSum = 256 * 256 * 4;  // of what is before a layer and what the layer makes
  EXPECT_GT(few, kSum);
  EXPECT_LT(intermediates_of_prompt(10), few + 2 * kSum) << "eight layers have 16 such sums";
}

TEST_F(Models, StepsOfSeveralShapesShareTheirMemoryAndStayRightInTurns) {
  Context context(Options::from_environment());
  const ContextScope scope(context);
  Model m = model({.context = 512, .slots = 2});
  std::vector<TokenId> text;
  for (TokenId i = 0; i < 300; ++i) text.push_back(1 + i * 7 % 300);
  const auto answers = [&](const std::vector<TokenId>& firsts) {
    for (const TokenId first : firsts) {
      text.front() = first;
      m.submit(request(text, 8));
    }
    std::vector<std::vector<TokenId>> all;
    for (const auto& [id, result] : run(m)) all.push_back(result.tokens);
    return all;
  };
  const auto live = [&] {
    collect_garbage(context);
    return run_stats(context).memory_live;
  };
  const auto one = answers({1});
  answers({2});  // replayed, too
  const int64_t before = live();
  const auto two = answers({3, 4});
  answers({5, 6});
  EXPECT_LE(live(), before + (int64_t{64} << 10)) << "steps of two rows have memory of their own";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(answers({1}), one);
    EXPECT_EQ(answers({3, 4}), two);
    EXPECT_EQ(answers({4})[0], two[1]);
    answers({5, 6});  // no slot holds the others any more
  }
}

}  // namespace
}  // namespace weft::llm
