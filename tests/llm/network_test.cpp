// Networks against plain loops: whole prompts, parts, tokens one by one, several texts at once.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/llm/reference.h"
#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/llm/model_file.h"
#include "weft/llm/random_model.h"
#include "weft/llm/stepper.h"
#include "weft/tensor/packed.h"

namespace weft::llm {
namespace {

constexpr RandomShape kSmall = {"small", "llama", 2, 64, 4, 2, 96, 300, 256};

std::vector<TokenId> some_tokens(int64_t count, int64_t salt = 0) {
  std::vector<TokenId> all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(static_cast<TokenId>((i * i * 7 + 13 * i + salt * 31 + 5) % 300));
  return all;
}

double distance(std::span<const float> got, std::span<const double> wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  double most = 0, scale = 0;
  for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    most = std::max(most, std::abs(static_cast<double>(got[i]) - wanted[i]));
    scale = std::max(scale, std::abs(wanted[i]));
  }
  return most / scale;
}

class Networks : public testing::TestWithParam<const char*> {
 protected:
  Networks() {
    RandomShape shape = kSmall;
    shape.family = GetParam();
    model = gguf_model(random_model(shape, Codec::F32, 3));
    weights.emplace(model);
    config = read_config(model.content);
  }
  GgufModel model;
  std::optional<Weights> weights;
  Config config;
};

TEST_P(Networks, AreWhatLoopsGive) {
  const std::vector<TokenId> tokens = some_tokens(100);
  const std::vector<double> wanted = reference_logits(config, *weights, tokens);
  Stepper stepper(config, *weights, 1, 128, DType::F32);
  const auto width = static_cast<size_t>(config.vocabulary);
  std::vector<float> got;
  size_t at = 0;
  while (at < 76) {  // 64 at once, then 12 in a step of 16
    const auto count =
        static_cast<size_t>(stepper.part(static_cast<int64_t>(at), static_cast<int64_t>(76 - at)));
    const StepRow row{0, static_cast<int64_t>(at), std::span(tokens).subspan(at, count)};
    const auto part = stepper.run(std::span(&row, 1), Give::AllLogits);
    got.insert(got.end(), part.begin(), part.end());
    at += count;
  }
  for (; at < tokens.size(); ++at) {
    const StepRow row{0, static_cast<int64_t>(at), std::span(tokens).subspan(at, 1)};
    const auto part = stepper.run(std::span(&row, 1));
    ASSERT_EQ(part.size(), width);
    got.insert(got.end(), part.begin(), part.end());
  }
  EXPECT_LT(distance(got, wanted), 1e-5);
}

TEST_P(Networks, ATextIsTheSameAloneAndAmongOthers) {
  Stepper alone(config, *weights, 1, 64, DType::F32), together(config, *weights, 4, 64, DType::F32);
  std::vector<std::vector<TokenId>> texts;
  for (int64_t i = 0; i < 4; ++i) texts.push_back(some_tokens(8 + i, i));
  std::vector<float> mine;
  for (size_t i = 0; i < 11; ++i) {
    const StepRow row{0, static_cast<int64_t>(i), std::span(texts[3]).subspan(i, 1)};
    mine = alone.run(std::span(&row, 1));
  }
  std::vector<float> all;
  for (size_t i = 0; i < 11; ++i) {
    std::vector<StepRow> rows;
    for (size_t slot = 0; slot < 4; ++slot)
      if (i < texts[slot].size() || slot == 3)
        rows.push_back({static_cast<int64_t>(slot), static_cast<int64_t>(i),
                        std::span(texts[slot]).subspan(std::min(i, texts[slot].size() - 1), 1)});
    all = together.run(rows);
  }
  const auto width = static_cast<size_t>(config.vocabulary);
  const std::vector<float> last(all.end() - static_cast<std::ptrdiff_t>(width), all.end());
  std::vector<double> wanted(mine.begin(), mine.end());
  EXPECT_LT(distance(last, wanted), 1e-6);
}

TEST_P(Networks, RowsOfSeveralTokens) {
  const std::vector<TokenId> a = some_tokens(11, 1), b = some_tokens(9, 2);
  const auto width = static_cast<size_t>(config.vocabulary);
  const auto behind = [&](const std::vector<TokenId>& tokens, size_t from) {
    const std::vector<double> all = reference_logits(config, *weights, tokens);
    return std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(from * width), all.end());
  };
  std::vector<double> wanted = behind(a, 5);
  for (const double x : behind(b, 6)) wanted.push_back(x);
  Stepper stepper(config, *weights, 2, 64, DType::F32);
  const StepRow before[] = {{0, 0, std::span(a).first(5)}, {1, 0, std::span(b).first(6)}};
  for (const StepRow& row : before) stepper.run(std::span(&row, 1));
  const StepRow wrong[] = {{0, 5, std::span(b).first(4)}, {1, 6, std::span(a).first(6)}};
  stepper.run(wrong, Give::AllLogits);  // what did not hold is written over
  const StepRow rows[] = {{0, 5, std::span(a).subspan(5)}, {1, 6, std::span(b).subspan(6)}};
  const std::vector<float> got = stepper.run(rows, Give::AllLogits);
  EXPECT_LT(distance(got, wanted), 1e-5);
}

class DeterministicNetworks : public testing::Test {
 protected:
  static Options options() {
    Options options = Options::from_environment();
    options.deterministic = true;
    return options;
  }
  Context context{options()};
  ContextScope scope{context};
};

TEST_F(DeterministicNetworks, RowsOfSeveralTokensHaveTheBitsOfOne) {
  const GgufModel file = gguf_model(random_model(*find_random_shape("tiny"), Codec::Q8_0, 3));
  const Weights own(file);
  Stepper stepper(read_config(file.content), own, 2, 64, DType::F16);
  const std::vector<TokenId> tokens = some_tokens(12);
  std::vector<float> one_by_one;
  for (size_t i = 0; i < 12; ++i) {
    const StepRow row{0, static_cast<int64_t>(i), std::span(tokens).subspan(i, 1)};
    for (const float x : stepper.run(std::span(&row, 1))) one_by_one.push_back(x);
  }
  for (const size_t count : {2, 4, 6}) {
    std::vector<float> got;
    for (size_t at = 0; at < 12; at += count) {
      const StepRow row{1, static_cast<int64_t>(at), std::span(tokens).subspan(at, count)};
      for (const float x : stepper.run(std::span(&row, 1), Give::AllLogits)) got.push_back(x);
    }
    EXPECT_EQ(got, one_by_one) << count << " at once";
  }
}

TEST_F(DeterministicNetworks, AMixturesAnswerHasItsBitsAmongOthers) {
  const GgufModel file = gguf_model(random_model(*find_random_shape("tiny-moe"), Codec::Q8_0, 3));
  const Weights own(file);
  const Config config = read_config(file.content);
  Stepper alone(config, own, 1, 64, DType::F16), together(config, own, 8, 64, DType::F16);
  const std::vector<TokenId> tokens = some_tokens(5, 7);
  std::vector<float> wanted;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const StepRow row{0, static_cast<int64_t>(i), std::span(tokens).subspan(i, 1)};
    wanted = alone.run(std::span(&row, 1));
  }
  std::vector<float> got;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::vector<std::vector<TokenId>> others;
    std::vector<StepRow> rows;
    for (int64_t slot = 0; slot < 7; ++slot) {
      others.push_back({slot == 5 ? tokens[i] : some_tokens(6, slot)[i]});
      rows.push_back({slot, static_cast<int64_t>(i), {}});
    }
    for (size_t r = 0; r < rows.size(); ++r) rows[r].tokens = others[r];
    fill_rows(rows, 8);
    got = together.run(rows);
  }
  const size_t width = wanted.size();
  ASSERT_EQ(got.size(), 8 * width);
  EXPECT_EQ(std::vector<float>(got.begin() + static_cast<std::ptrdiff_t>(5 * width),
                               got.begin() + static_cast<std::ptrdiff_t>(6 * width)),
            wanted);
}

TEST_P(Networks, CacheOf8Bits) {
  const std::vector<TokenId> tokens = some_tokens(100);
  const std::vector<double> wanted = reference_logits(config, *weights, tokens);
  Stepper stepper(config, *weights, 1, 128, DType::I8);
  std::vector<float> got;
  for (size_t at = 0; at < tokens.size();) {
    const auto left = static_cast<int64_t>(tokens.size() - at);
    const auto count = static_cast<size_t>(stepper.part(static_cast<int64_t>(at), left));
    const StepRow row{0, static_cast<int64_t>(at), std::span(tokens).subspan(at, count)};
    const std::vector<float> part = stepper.run(std::span(&row, 1), Give::AllLogits);
    got.insert(got.end(), part.begin(), part.end());
    at += count;
  }
  EXPECT_LT(distance(got, wanted), 0.02);
}

TEST(KeptNumbersOf8Bits, AreOffByHalfAStep) {
  for (const int64_t size : {64, 20}) {  // two groups of 32, one of 20
    KeptNumbers kept({2, 3, 128, size}, DType::I8);
    const Variable slot("slot", 0, 1), start("start", 0, 120);
    Tensor x = Tensor::randn({1, 3, 4, size}).realize();
    x.index({0, 0, 0}).assign(0.0F);
    const Dim at = start.bind(70), in = slot.bind(1);
    kept.write(x, in, at);
    const Tensor back = kept.read(in, {at, 4}).squeeze(2);
    const int64_t group = size == 64 ? 32 : size;
    const Tensor groups = x.reshape({3, 4, size / group, group});
    const Tensor step = groups.abs().max(-1, true) / 127.0F;
    const Tensor off = (back.reshape(groups.dims()) - groups).abs();
    EXPECT_TRUE((off <= step * 0.51F).all().item<bool>());
    EXPECT_TRUE((back.index({0, 0, 0}) == 0.0F).all().item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Networks, testing::Values("llama", "qwen2", "qwen3"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Experts, OfManyTokensGiveWhatThoseOfOneGive) {
  const GgufModel model = gguf_model(random_model(*find_random_shape("tiny-moe"), Codec::Q8_0, 3));
  const Weights weights(model);
  Stepper stepper(read_config(model.content), weights, 2, 128, DType::F32);
  const std::vector<TokenId> tokens = some_tokens(90);
  std::vector<double> wanted;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const StepRow row{1, static_cast<int64_t>(i), std::span(tokens).subspan(i, 1)};
    for (const float x : stepper.run(std::span(&row, 1))) wanted.push_back(static_cast<double>(x));
  }
  std::vector<float> got;
  for (size_t at = 0; at < tokens.size();) {  // 64 at once, then 16, 10 of 16
    const auto left = static_cast<int64_t>(tokens.size() - at);
    const auto count = std::min<size_t>(
        at == 64 ? 16 : 64, static_cast<size_t>(stepper.part(static_cast<int64_t>(at), left)));
    const StepRow row{0, static_cast<int64_t>(at), std::span(tokens).subspan(at, count)};
    const std::vector<float> part = stepper.run(std::span(&row, 1), Give::AllLogits);
    got.insert(got.end(), part.begin(), part.end());
    at += count;
  }
  EXPECT_LT(distance(got, wanted), 1e-5);
}

/// Alone, and among so many others that tokens are put together by expert.
TEST(Experts, OfAnswersMultiplyBytes) {
  const GgufModel model = gguf_model(random_model(*find_random_shape("tiny-moe"), Codec::Q8_0, 3));
  const Weights weights(model);
  Config config = read_config(model.content);
  config.experts.used = config.experts.count;  // rounding chooses no others
  const std::vector<TokenId> tokens = some_tokens(12);
  const auto answers = [&](Factors factors, int64_t slots) {
    Stepper stepper(config, weights, slots, 64, DType::F32, factors);
    std::vector<float> all;
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::vector<StepRow> rows;
      for (int64_t slot = 0; slot < slots; ++slot)
        rows.push_back({slot, static_cast<int64_t>(i), std::span(tokens).subspan(i, 1)});
      const std::vector<float> logits = stepper.run(rows);
      all.insert(all.end(), logits.begin(),
                 logits.end() - (slots - 1) * std::ssize(logits) / slots);
    }
    return all;
  };
  const std::vector<float> plain = answers(Factors::F32, 1), alone = answers(Factors::Q8, 1),
                           others = answers(Factors::Q8, 8);
  const std::vector<double> wanted(plain.begin(), plain.end()), one(alone.begin(), alone.end());
  EXPECT_LT(distance(alone, wanted), 0.03);
  EXPECT_GT(distance(alone, wanted), 1e-4);  // they are rounded
  EXPECT_LT(distance(others, one), 0.01);
}

class Windows : public testing::Test {
 protected:
  Windows() : model_(gguf_model(random_model(shape(), Codec::F32, 3))), weights_(model_) {
    config_ = read_config(model_.content);
    config_.window = 24;
    config_.local = {true, false};
  }
  static RandomShape shape() {
    RandomShape shape = kSmall;
    shape.context = 1024;
    return shape;
  }
  /// Without a cache.
  std::vector<double> wanted(const std::vector<TokenId>& tokens) const {
    const Network network(config_, weights_, 1024);
    const auto length = static_cast<int64_t>(tokens.size());
    const Tensor whole = network.hidden(Tensor::from(tokens, {1, length}));
    const std::vector<float> all = network.logits(whole).to_vector<float>();
    return {all.begin(), all.end()};
  }
  std::vector<float> behind(Stepper& stepper, std::span<const TokenId> tokens, size_t at,
                            size_t most, int64_t slot = 1) const {
    std::vector<float> got;
    while (at < tokens.size()) {
      const auto left = static_cast<int64_t>(std::min(most, tokens.size() - at));
      const auto count = static_cast<size_t>(stepper.part(static_cast<int64_t>(at), left));
      const StepRow row{slot, static_cast<int64_t>(at), tokens.subspan(at, count)};
      const auto part = stepper.run(std::span(&row, 1), Give::AllLogits);
      got.insert(got.end(), part.begin(), part.end());
      at += count;
    }
    return got;
  }
  std::vector<double> from(const std::vector<double>& all, size_t at) const {
    const size_t width = static_cast<size_t>(config_.vocabulary);
    return {all.begin() + static_cast<std::ptrdiff_t>(at * width), all.end()};
  }

  GgufModel model_;
  Weights weights_;
  Config config_;
};

TEST_F(Windows, MoveAndTextsGoOn) {
  const std::vector<TokenId> tokens = some_tokens(700);
  const std::vector<double> all = wanted(tokens);
  for (const DType dtype : {DType::F32, DType::I8}) {
    const double bound = dtype == DType::F32 ? 1e-5 : 0.02;
    Stepper stepper(config_, weights_, 2, 1024, dtype);
    const std::span<const TokenId> text(tokens);
    EXPECT_LT(distance(behind(stepper, text, 0, 256), all), bound);
    // A few tokens back, others in between.
    EXPECT_TRUE(stepper.can_go_on(1, 690));
    const std::vector<TokenId> guesses = some_tokens(5, 9);
    const StepRow wrong{1, 690, guesses};
    stepper.run(std::span(&wrong, 1), Give::AllLogits);
    EXPECT_LT(distance(behind(stepper, text, 690, 4), from(all, 690)), bound);
    // Far back its window is gone; from the beginning any text may come.
    EXPECT_FALSE(stepper.can_go_on(1, 100));
    EXPECT_TRUE(stepper.can_go_on(0, 100));
    EXPECT_TRUE(stepper.can_go_on(1, 0));
    const std::vector<TokenId> other = some_tokens(40, 5);
    EXPECT_LT(distance(behind(stepper, other, 0, 16), wanted(other)), bound);
  }
}

TEST_F(Windows, TokenByTokenAmongOthers) {
  const std::vector<TokenId> tokens = some_tokens(560), other = some_tokens(560, 4);
  Stepper stepper(config_, weights_, 2, 1024, DType::F32);
  behind(stepper, std::span(tokens).first(500), 0, 256, 0);
  behind(stepper, std::span(other).first(480), 0, 256, 1);
  std::vector<float> got;
  for (size_t i = 0; i < 60; ++i) {
    const StepRow rows[] = {
        {0, static_cast<int64_t>(500 + i), std::span(tokens).subspan(500 + i, 1)},
        {1, static_cast<int64_t>(480 + i), std::span(other).subspan(480 + i, 1)}};
    const std::vector<float> both = stepper.run(rows);
    got.insert(got.end(), both.begin(), both.begin() + config_.vocabulary);
  }
  EXPECT_LT(distance(got, from(wanted(tokens), 500)), 1e-5);
}

TEST_F(Windows, TakeNoMoreMemoryThanTheyNeed) {
  const Stepper stepper(config_, weights_, 1, 1024, DType::F32);
  config_.local = {false, false};
  const Stepper whole(config_, weights_, 1, 1024, DType::F32);
  EXPECT_EQ(4 * stepper.cache_bytes(), 3 * whole.cache_bytes());  // 512 positions of one of two
}

TEST(PackedNetworks, AreTheirNumbersNetworks) {
  RandomShape shape = kSmall;
  shape.dim = 256, shape.ffn = 512;
  const GgufModel packed = gguf_model(random_model(shape, Codec::Q4_K, 3));
  const Config config = read_config(packed.content);
  const Weights weights(packed);
  const std::vector<TokenId> tokens = some_tokens(20);
  const std::vector<double> wanted = reference_logits(config, weights, tokens);
  Stepper stepper(config, weights, 1, 64, DType::F32);
  const StepRow row{0, 0, tokens};
  EXPECT_LT(distance(stepper.run(std::span(&row, 1), Give::AllLogits), wanted), 1e-5);
}

/// Rows side by side are the same numbers, in prompts, alone and among others.
TEST(PackedNetworks, OfInterleavedRowsGiveTheSame) {
  RandomShape shape = kSmall;
  shape.dim = 256, shape.ffn = 512;
  const std::vector<TokenId> tokens = some_tokens(40), other = some_tokens(40, 1);
  shape.dim = 512;  // two blocks, which lie in pairs where they are no words
  for (const Codec codec :
       {Codec::Q4_K, Codec::Q5_K, Codec::Q2_K, Codec::Q4_1, Codec::Q5_1, Codec::IQ4_XS,
        Codec::NVFP4, Codec::Q8_K, Codec::Q4_0, Codec::Q5_0, Codec::Q6_K, Codec::Q3_K}) {
    const GgufModel packed = gguf_model(random_model(shape, codec, 3));
    const Config config = read_config(packed.content);
    const auto steps = [&](int64_t rows) {
      Weights weights(packed);
      weights.interleave_rows([rows](Codec) { return rows; });
      EXPECT_EQ(weights.find("blk.1.ffn_up.weight")->interleaved, rows > 0) << name(codec);
      EXPECT_FALSE(weights.find("token_embd.weight")->interleaved) << "300 are no whole groups";
      Stepper stepper(config, weights, 2, 64, DType::F32, fastest_factors());
      std::vector<std::vector<float>> all;
      for (int64_t slot : {0, 1}) {
        const StepRow prompt{slot, 0, slot == 0 ? tokens : other};
        all.push_back(stepper.run(std::span(&prompt, 1)));
      }
      for (int64_t at = 40; at < 43; ++at) {
        const StepRow both[] = {{0, at, std::span(tokens).subspan(7, 1)},
                                {1, at, std::span(other).subspan(9, 1)}};
        all.push_back(stepper.run(std::span(both, 1)));
        all.push_back(stepper.run(both));
      }
      return all;
    };
    const std::vector<std::vector<float>> got = steps(16), wanted = steps(0);
    // Where rows as they lie cannot be transposed, sums are taken word by word, and pairs of blocks
    // have one sum: in another order, by which roundings to bytes fall on the other side.
    const Target& target = Context::current().get<DeviceTable>().default_device().target();
    const bool exact = target.permutes_pairs(DType::U32) && row(codec).bytes % 4 == 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const std::vector<double> expected(wanted[i].begin(), wanted[i].end());
      EXPECT_LT(distance(got[i], expected), exact ? 1e-5 : 0.02) << name(codec);
      if (interleaving_may_wait(codec) && interleaved_rows(codec, 1) > 0) {
        EXPECT_EQ(got[i], wanted[i]) << name(codec);
      }
    }
  }
}

TEST(PackedNetworks, RowsOfWideCodesStayWhereRegistersTranspose) {
  const Target& target = Context::current().get<DeviceTable>().default_device().target();
  const int64_t others = interleaved_rows(Codec::Q4_0, 1);
  const int64_t wide = target.permutes_pairs(DType::U32) ? 0 : others;
  for (const int64_t rows : {1, 8}) {
    EXPECT_EQ(interleaved_rows(Codec::Q8_0, rows), wide);
    for (const Codec codec : {Codec::F16, Codec::MXFP4})
      EXPECT_EQ(interleaved_rows(codec, rows), 0) << name(codec);
  }
  EXPECT_EQ(interleaved_rows(Codec::Q8_K, 8), wide);
  for (const Codec codec : {Codec::Q6_K, Codec::Q8_K})
    EXPECT_EQ(interleaved_rows(codec, 1), 0) << "one row is multiplied by words";
  EXPECT_EQ(interleaved_rows(Codec::Q6_K, 2), others);
  EXPECT_EQ(interleaved_rows(Codec::TQ1_0, 16), 0) << "many rows share what it takes to decode";
  EXPECT_EQ(interleaved_rows(Codec::TQ1_0, 4), interleaved_rows(Codec::Q4_0, 16));
}

TEST(PackedNetworks, MatricesOfNothingAreLeftAsTheyLie) {
  GgufModel model;
  model.content.tensors.resize(2);
  model.tensors.push_back(
      {"blk.0.attn_q.weight", Codec::Q4_K, {0, 256}, Tensor::empty({0}, DType::U8)});
  model.tensors.push_back({"blk.0.attn_norm.weight", Codec::F32, {0}, Tensor::empty({0})});
  Weights weights(model);
  weights.interleave_rows([](Codec) { return int64_t{16}; });
  for (const auto& [name, weight] : weights.all()) EXPECT_FALSE(weight.interleaved) << name;
}

TEST(PackedNetworks, OfBlocksThatAreNoWordsAreLeftAsTheyLie) {
  RandomShape shape = kSmall;
  shape.dim = 256, shape.ffn = 256;  // one block of Q6_K, and no pair
  for (const Codec codec : {Codec::MXFP4, Codec::Q6_K, Codec::F16}) {
    Weights weights(gguf_model(random_model(shape, codec, 3)));
    weights.interleave_rows([](Codec) { return int64_t{16}; });
    for (const auto& [name, weight] : weights.all()) EXPECT_FALSE(weight.interleaved) << name;
  }
}

}  // namespace
}  // namespace weft::llm
