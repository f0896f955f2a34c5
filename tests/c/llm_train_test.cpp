// The C interface: training language models.
#include "weft/c/llm_train.hpp"

#include <filesystem>
#include <fstream>

#include "tests/c/c_test.h"
#include "weft/c/llm.hpp"

namespace weft::c {
namespace {

class CLlmTrainTest : public CTest {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/weft_c_train_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    path_ = pattern;
    std::ofstream text(at("text.txt"));
    for (int i = 0; i < 400; ++i)
      text << "The " << (i % 3 ? "cat" : "dog") << " sees " << i << ".\n";
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string at(const std::string& name) const { return path_ + "/" + name; }

  std::vector<weft_value> course(int64_t steps) const {
    return {weft_named("steps", weft_int(steps)), weft_named("batch", weft_int(4)),
            weft_named("warmup", weft_int(1)),    weft_named("lr", weft_float(5e-3)),
            weft_named("seed", weft_int(3)),      weft_named("optimizer", weft_text("adamw"))};
  }
  std::vector<weft_value> with_data(std::vector<weft_value> options) {
    text_ = at("text.txt");
    options.push_back(weft_named("data", weft_text(text_.c_str())));
    options.push_back(weft_named("validation", weft_float(0.2)));
    return options;
  }
  std::vector<weft_value> tiny() {
    std::vector<weft_value> options = with_data(course(6));
    options.push_back(weft_named("config", weft_text("tiny")));
    options.push_back(weft_named("vocabulary", weft_int(300)));
    return options;
  }
  Training new_model(const std::string& folder) {
    return Training::of_new_model(context, at(folder), tiny());
  }

  std::string path_, text_;
};

TEST_F(CLlmTrainTest, ANewModelLearnsAndGoesOn) {
  std::vector<float> whole, parts;
  double before = 0;
  {
    Training t = new_model("whole");
    EXPECT_EQ(t.info().tokens_per_step, 4 * 64);
    EXPECT_EQ(t.info().all_steps, 6);
    EXPECT_GT(t.info().parameters, 100000);
    EXPECT_GT(t.info().learning_rate, 0);
    before = t.validate();
    while (!t.finished()) whole.push_back(t.step());
    EXPECT_LT(t.validate(), before);
    t.export_made();
    EXPECT_EQ(t.sample("The", 4).substr(0, 3), "The");
  }
  {
    Training t = new_model("part");
    for (int i = 0; i < 3; ++i) parts.push_back(t.step());
    t.save();
  }
  Training t = Training::of_new_model(context, at("part"), course(6));
  EXPECT_EQ(t.info().steps, 3);
  while (!t.finished()) parts.push_back(t.step());
  EXPECT_EQ(parts, whole);

  LanguageModel model(context, at("whole") + "/model.gguf");
  EXPECT_EQ(model.info().vocabulary, 300);
}

TEST_F(CLlmTrainTest, AnAdapterLearnsBesideAModel) {
  new_model("base").export_made();
  std::vector<weft_value> options = with_data(course(3));
  for (const char* target : {"v", "up"})
    options.push_back(weft_named("targets", weft_text(target)));
  options.push_back(weft_named("rank", weft_int(2)));
  options.push_back(weft_named("context", weft_int(16)));
  const std::string base = at("base/model.gguf");
  Training t = Training::of_adapter(context, at("tuned"), base, options);
  // Two layers; queries, keys and values lie in one matrix of a GPT-2.
  EXPECT_EQ(t.info().parameters, 2 * 2 * ((64 + 192) + (64 + 256)));
  while (!t.finished()) t.step();
  t.export_made();
  const std::string adapter = at("tuned/adapter.gguf");
  const char* files[] = {adapter.c_str(), nullptr};
  weft_llm_options with = llm_options();
  with.lora = files;
  LanguageModel plain(context, base), tuned(context, base, with);
  const std::vector<int32_t> ids = plain.tokenizer().encode("The cat");
  EXPECT_NE(plain.logits(ids).to_vector<float>(), tuned.logits(ids).to_vector<float>());
}

TEST_F(CLlmTrainTest, SaysWhatIsWrong) {
  weft_training out = nullptr;
  const auto refused = [&](weft_value value, weft_status status, const char* words) {
    std::vector<weft_value> options = tiny();
    options.push_back(value);
    EXPECT_REFUSED(
        weft_llm_train(context.get(), at("x").c_str(), options.data(), options.size(), &out),
        status, words);
    EXPECT_EQ(out, nullptr);
  };
  refused(weft_int(1), WEFT_ERROR_ARGUMENT, "an option's name");
  refused(weft_named("rank", weft_int(1)), WEFT_ERROR_VALUE,
          "there is no option 'rank': data, validation, config");
  refused(weft_named("steps", weft_float(1.5)), WEFT_ERROR_ARGUMENT, "steps is a whole number");
  refused(weft_named("lr", weft_text("much")), WEFT_ERROR_ARGUMENT, "lr is a number");
  refused(weft_named("dtype", weft_int(1)), WEFT_ERROR_ARGUMENT, "dtype is a text");
  refused(weft_named("dtype", weft_text("f16")), WEFT_ERROR_VALUE, "dtype is 'f16': f32|bf16");
  refused(weft_named("seed", weft_int(-1)), WEFT_ERROR_ARGUMENT,
          "seed is a whole number that is not");
  refused(weft_named("data", weft_text("/nowhere")), WEFT_ERROR_RUNTIME,
          "there is no file or folder");
  EXPECT_REFUSED(weft_llm_train(context.get(), nullptr, nullptr, 0, &out), WEFT_ERROR_ARGUMENT,
                 "folder");
  EXPECT_REFUSED(weft_llm_finetune(context.get(), "x", nullptr, nullptr, 0, &out),
                 WEFT_ERROR_ARGUMENT, "model");
  EXPECT_REFUSED(weft_training_step(nullptr, nullptr), WEFT_ERROR_ARGUMENT, "training");
  weft_training_info info = WEFT_STRUCT(weft_training_info);
  EXPECT_REFUSED(weft_training_describe(reinterpret_cast<weft_training>(context.get()), &info),
                 WEFT_ERROR_ARGUMENT, "training");
}

}  // namespace
}  // namespace weft::c
