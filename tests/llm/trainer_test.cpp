// Training: the network without a cache, resuming, exports.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/io/scratch_dir.h"
#include "weft/llm/model.h"
#include "weft/llm/random_model.h"
#include "weft/llm/stepper.h"
#include "weft/llm/trainer.h"

namespace weft::llm {
namespace {

std::string some_text() {
  std::string text;
  for (int i = 0; i < 60; ++i)
    for (const char* color : {"red", "green", "blue"})
      text += strformat("The {} fox sees {} {} birds and {} cats.\n", color, i, color, i * 7 % 10);
  return text;
}

constexpr const char* kTinyGpt2 =
    R"({"model_type":"gpt2","n_layer":2,"n_embd":32,"n_head":2,"n_positions":32,"vocab_size":1})";
constexpr const char* kTinyQwen3 =
    R"({"model_type":"qwen3","num_hidden_layers":2,"hidden_size":32,"num_attention_heads":4,
        "num_key_value_heads":2,"head_dim":8,"intermediate_size":48,"max_position_embeddings":32,
        "vocab_size":1})";

class TrainerTest : public ScratchDir {
 protected:
  void prepare(const std::string& folder, const std::string& config) {
    prepare_training(
        at(folder),
        {.paths = {write("text.txt", some_text())},
         .config = config.starts_with('{') ? write("config-" + folder + ".json", config) : config,
         .vocabulary = 300,
         .validation = 0.1},
        [](Preparation, size_t, size_t) {});
  }
  static TrainerOptions options() {
    TrainerOptions o;
    o.steps = 8, o.batch = 4, o.warmup = 2, o.lr = 3e-3;
    return o;
  }
  Trainer trainer(const std::string& folder, const TrainerOptions& o, bool resume = false) const {
    return Trainer(at(folder), o, resume);
  }
  static std::vector<float> steps(Trainer& t, int count) {
    std::vector<float> all;
    for (int i = 0; i < count; ++i) all.push_back(t.step());
    return all;
  }
};

TEST(TrainingNetwork, GivesWhatTheCachedOneGives) {
  for (const char* family : {"llama", "qwen2", "qwen3", "gpt2"}) {
    const RandomShape shape = {
        "small", family, 2, 64, 4, std::string_view(family) == "gpt2" ? 4 : 2, 96, 300, 64};
    const GgufModel model = gguf_model(random_model(shape, Codec::F32, 3));
    const Config config = read_config(model.content);
    const Weights weights(model);
    std::vector<TokenId> tokens;
    for (int i = 0; i < 40; ++i) tokens.push_back(i * i % 300);
    Stepper stepper(config, weights, 1, 64, DType::F32);
    std::vector<float> wanted;
    for (size_t at = 0; at < tokens.size();) {
      const auto count = static_cast<size_t>(
          stepper.part(static_cast<int64_t>(at), static_cast<int64_t>(tokens.size() - at)));
      const StepRow row{0, static_cast<int64_t>(at), std::span(tokens).subspan(at, count)};
      const auto part = stepper.run(std::span(&row, 1), Give::AllLogits);
      wanted.insert(wanted.end(), part.begin(), part.end());
      at += count;
    }
    const Network network(config, weights, 64);
    const std::vector<float> got =
        network.logits(network.hidden(Tensor::from(tokens, {1, 40}))).to_vector<float>();
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-4) << family;
  }
}

TEST_F(TrainerTest, LearnsAndGoesOnBitByBit) {
  for (const char* config : {kTinyGpt2, kTinyQwen3}) {
    prepare("whole", config);
    prepare("part", config);
    TrainerOptions o = options();
    o.dropout = 0.1;
    Trainer whole(at("whole"), o);
    const std::vector<float> losses = steps(whole, 8);
    EXPECT_NEAR(losses[0], std::log(300), 0.5);
    EXPECT_LT(losses[7], losses[0] - 0.2F);
    EXPECT_TRUE(whole.finished());
    whole.save();
    {
      Trainer part(at("part"), o);
      EXPECT_EQ(steps(part, 3), std::vector<float>(losses.begin(), losses.begin() + 3));
      part.validate();
      part.save();
      part.step();  // is lost
    }
    Trainer again(at("part"), o, true);
    EXPECT_EQ(again.steps(), 3);
    EXPECT_EQ(steps(again, 5), std::vector<float>(losses.begin() + 3, losses.end()));
    EXPECT_DOUBLE_EQ(again.validate(), whole.validate());
    EXPECT_EQ(again.history().validated_at, (std::vector<float>{3, 8}));
    std::filesystem::remove_all(at("whole"));
    std::filesystem::remove_all(at("part"));
  }
}

TEST_F(TrainerTest, MicroBatchesAreTheBatch) {
  prepare("out", kTinyGpt2);
  TrainerOptions o = options();
  Trainer whole(at("out"), o);
  o.accumulate = 2;
  Trainer parts(at("out"), o);
  const std::vector<float> a = steps(whole, 4), b = steps(parts, 4);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(a[i], b[i], 1e-4);
  o.dropout = 0.3;
  Trainer noisy(at("out"), o);
  EXPECT_NE(steps(noisy, 1), steps(parts, 1));
}

TEST_F(TrainerTest, MuonAndBf16Learn) {
  prepare("out", kTinyQwen3);
  TrainerOptions o = options();
  Trainer plain(at("out"), o);
  const std::vector<float> wanted = steps(plain, 8);
  o.dtype = "bf16";
  Trainer rounded(at("out"), o);
  const std::vector<float> got = steps(rounded, 8);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(got[i], wanted[i], 0.05);
  EXPECT_NE(got, wanted);
  o.dtype = "f32";
  o.optimizer = "muon";
  Trainer muon(at("out"), o);
  const std::vector<float> losses = steps(muon, 8);
  EXPECT_LT(losses[7], losses[0] - 0.2F);
  EXPECT_NE(losses, wanted);
}

TEST_F(TrainerTest, ExportsAreTheModelThatWasTrained) {
  for (const char* config : {kTinyGpt2, kTinyQwen3, "tiny-llama"}) {
    prepare("out", config);
    Trainer t(at("out"), options());
    steps(t, 3);
    t.save();
    export_checkpoint(at("out"));
    Model folder(at("out")), gguf(at("out/model.gguf"));
    EXPECT_EQ(folder.config().family, gguf.config().family);
    const std::vector<TokenId> ids = folder.tokenizer().encode("The red fox sees 3 caf\xc3\xa9s");
    EXPECT_EQ(gguf.tokenizer().encode("The red fox sees 3 caf\xc3\xa9s"), ids);
    const std::vector<float> a = folder.logits(ids), b = gguf.logits(ids);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << config;
    EXPECT_TRUE(folder.is_end(0));
    EXPECT_TRUE(gguf.is_end(0));
    const std::string sample = t.sample("The red", 8);
    EXPECT_TRUE(sample.starts_with("The red"));
    EXPECT_EQ(t.sample("The red", 8), sample);
    std::filesystem::remove_all(at("out"));
  }
}

TEST_F(TrainerTest, RisesInATenthOfItsStepsAtMostInAHundred) {
  prepare("out", kTinyGpt2);
  TrainerOptions o = options();
  for (const auto& [steps, rising] : {std::pair(19, 1), {40, 4}, {5000, 100}}) {
    o.steps = steps, o.warmup = -1;
    const double rate = trainer("out", o).learning_rate();
    EXPECT_NEAR(rate, o.lr / rising, 1e-6 * o.lr) << steps;
  }
}

TEST_F(TrainerTest, SaysWhatIsWrong) {
  EXPECT_ERROR(prepare("out", "huge"), "llm.new: there is no configuration 'huge': tiny, small");
  EXPECT_ERROR(prepare("out", R"({"model_type":"mamba"})"), "llm.family");
  EXPECT_ERROR(prepare("out", R"({"model_type":"gpt2","vocab_size":1})"), "n_layer is missing");
  EXPECT_ERROR(prepare("out", R"({"model_type":"gemma","num_hidden_layers":1,"hidden_size":8,
      "num_attention_heads":2,"intermediate_size":8,"max_position_embeddings":8,"vocab_size":1})"),
               "the family is not gpt2, llama, qwen2 or qwen3");
  EXPECT_ERROR(trainer("out", options()), "file.missing");
  prepare("out", kTinyGpt2);
  const auto refused = [&](auto change) {
    TrainerOptions o = options();
    change(o);
    return error_of([&] { trainer("out", o); });
  };
  EXPECT_EQ(refused([](auto& o) { o.accumulate = 3; }),
            "train.options: a batch of 4 cannot be cut into 3 equal micro-batches");
  EXPECT_EQ(refused([](auto& o) { o.warmup = 8; }),
            "train.options: warmup is 8 of 8 steps: it is a part of them");
  EXPECT_EQ(refused([](auto& o) { o.warmup = -2; }), "train.options: warmup is -2: -1 or more");
  EXPECT_EQ(refused([](auto& o) { o.lr = 0; }), "train.options: lr is 0: 1e-12 or more");
  EXPECT_EQ(refused([](auto& o) { o.beta2 = 1; }), "train.options: beta2 is 1: from 0 to 0.999999");
  EXPECT_EQ(refused([](auto& o) { o.optimizer = "sgd"; }),
            "train.options: optimizer is 'sgd': adamw|muon");
  EXPECT_ERROR(trainer("out", options(), true), "file.missing");
  Trainer t(at("out"), options());
  t.step();
  t.save();
  TrainerOptions other = options();
  other.lr = 1;
  EXPECT_ERROR(trainer("out", other, true), "was trained with lr = 0.003, this run has 1");
  EXPECT_ERROR(prepare("out", kTinyGpt2), "train.output: there is a training in");
  write("text.txt", "too short");
  EXPECT_ERROR(
      {
        prepare_training(at("short"),
                         {.paths = {at("text.txt")}, .config = "tiny", .vocabulary = 300},
                         [](Preparation, size_t, size_t) {});
        trainer("short", options());
      },
      "tokens for training, and two texts of the model's context are 128");
}

}  // namespace
}  // namespace weft::llm
