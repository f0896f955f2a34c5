// Networks against plain loops: whole prompts, parts, tokens one by one, several texts at once.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/llm/reference.h"
#include "weft/base/context.h"
#include "weft/llm/model_file.h"
#include "weft/llm/random_model.h"
#include "weft/llm/stepper.h"

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
  const std::vector<TokenId> a = some_tokens(12, 1), b = some_tokens(9, 2);
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
  const StepRow wrong[] = {{0, 5, std::span(b).first(4)}, {1, 6, std::span(a).first(8)}};
  stepper.run(wrong, Give::AllLogits);  // what did not hold is written over
  const StepRow rows[] = {{0, 5, std::span(a).subspan(5)}, {1, 6, std::span(b).subspan(6)}};
  const std::vector<float> got = stepper.run(rows, Give::AllLogits);
  EXPECT_LT(distance(got, wanted), 1e-5);
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
    const Place at{slot.bind(1), start.bind(70), {}, {}};
    kept.write(x, at);
    const Tensor back = kept.read(at.slot, {at.start, 4}).squeeze(2);
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

}  // namespace
}  // namespace weft::llm
