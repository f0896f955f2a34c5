#include "weft/llm/finetune.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "weft/llm/model.h"
#include "weft/llm/random_model.h"

namespace weft::llm {
namespace {

class FinetuneTest : public ScratchDir {
 protected:
  void prepare(Codec codec) {
    save_gguf(at("m.gguf"), random_model(*find_random_shape("tiny"), codec));
    std::string text;
    for (int i = 0; i < 120; ++i)
      text += strformat("word{} word{} again\n", 260 + i % 7, 270 + i % 5);
    counts_ = prepare_finetuning(at("out"), at("m.gguf"),
                                 {.paths = {write("text.txt", text)}, .validation = 0.2}, kQuietly);
  }
  Finetuning tuning(bool resume = false, int64_t context = 16) {
    TrainerOptions o;
    o.steps = 6, o.batch = 4, o.warmup = 1, o.lr = 5e-3, o.weight_decay = 0;
    const FinetuneOptions adapter{{.rank = 4, .targets = {"q", "v", "up"}}, context};
    return Finetuning(at("out"), at("m.gguf"), adapter, o, resume);
  }
  static constexpr auto kQuietly = [](Preparation, size_t, size_t) {};
  TokenCounts counts_;
};

TEST_F(FinetuneTest, LearnsBesidePackedWeights) {
  prepare(Codec::Q8_0);
  EXPECT_GT(counts_.training, 1000);
  Finetuning t = tuning();
  const double before = t.trainer().validate();
  while (!t.trainer().finished()) t.trainer().step();
  const double after = t.trainer().validate();
  EXPECT_LT(after, before - 0.1);
  EXPECT_EQ(t.trainer().parameters(), 2 * 4 * ((256 + 256) + (256 + 128) + (256 + 512)));
  t.export_adapter();
  const std::vector<TokenId> text = {1, 262, 272, 40};
  const auto logits = [&](const std::vector<LoraFile>& lora) {
    return Model(at("m.gguf"),
                 {.context = 64, .cache = DType::F32, .factors = Factors::F32, .lora = lora})
        .logits(text);
  };
  const std::vector<float> adapted = logits({{at("out/adapter.gguf"), 1}});
  EXPECT_NE(adapted, logits({}));
  const std::vector<float> of_folder = logits({{at("out/adapter"), 1}});
  for (size_t i = 0; i < adapted.size(); ++i) EXPECT_NEAR(of_folder[i], adapted[i], 1e-4);
}

TEST_F(FinetuneTest, GoesOnWhereItStopped) {
  prepare(Codec::F16);
  std::vector<float> whole, parts;
  {
    Finetuning t = tuning();
    while (!t.trainer().finished()) whole.push_back(t.trainer().step());
  }
  {
    Finetuning t = tuning();
    for (int i = 0; i < 3; ++i) parts.push_back(t.trainer().step());
    t.trainer().save();
  }
  Finetuning t = tuning(true);
  while (!t.trainer().finished()) parts.push_back(t.trainer().step());
  EXPECT_EQ(parts, whole);
}

TEST_F(FinetuneTest, SaysWhatIsWrong) {
  prepare(Codec::F16);
  EXPECT_ERROR(tuning(false, 0), "texts of 0 tokens: from 1 to the model's 512");
  EXPECT_ERROR(tuning(true), "checkpoint.safetensors");
  tuning().trainer().save();
  EXPECT_ERROR(prepare_finetuning(at("out"), at("m.gguf"), {.paths = {at("text.txt")}}, kQuietly),
               "there is a training in");
}

}  // namespace
}  // namespace weft::llm
