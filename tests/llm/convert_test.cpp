#include "weft/llm/convert.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/io/scratch_dir.h"
#include "weft/llm/config_write.h"
#include "weft/llm/model.h"
#include "weft/llm/model_file.h"
#include "weft/llm/quantise_model.h"
#include "weft/llm/random_model.h"
#include "weft/text/gguf_tokenizer.h"

namespace weft::llm {
namespace {

constexpr auto kQuietly = [](size_t, size_t, std::string_view) {};

class Convert : public ScratchDir {
 protected:
  /// A model's GGUF file, a folder made of it, and a GGUF file made of that.
  void there_and_back(std::string_view shape, Codec codec = Codec::F32) {
    save_gguf(at("a.gguf"), random_model(*find_random_shape(shape), codec));
    save_folder(at("folder"), load_gguf(at("a.gguf")), folder_options("F32"), kQuietly);
    save_quantised_model(at("b.gguf"), folder_as_gguf(at("folder")), {.mix = ""}, kQuietly);
  }
  std::vector<float> logits(const std::string& name) {
    Model model(at(name), {.context = 64, .cache = DType::F32, .factors = Factors::F32});
    const std::vector<TokenId> tokens = {1, 7, 300, 19, 4, 250, 8};
    return model.logits(tokens);
  }
  static void expect_near(const std::vector<float>& a, const std::vector<float>& b, float most) {
    ASSERT_EQ(a.size(), b.size());
    float top = 0, far = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      top = std::max(top, std::abs(a[i]));
      far = std::max(far, std::abs(a[i] - b[i]));
    }
    EXPECT_LE(far, most * top);
  }
  void replace_in(const std::string& name, const std::string& from, const std::string& to) {
    std::ifstream in(at(name));
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t where = text.find(from);
    ASSERT_NE(where, std::string::npos) << text;
    std::ofstream(at(name)) << text.replace(where, from.size(), to);
  }
};

TEST_F(Convert, ThereAndBackIsTheSameModel) {
  for (const char* shape : {"tiny", "tiny-qwen2", "tiny-qwen3", "tiny-gpt2"}) {
    SCOPED_TRACE(shape);
    there_and_back(shape);
    const std::vector<float> wanted = logits("a.gguf");
    expect_near(logits("folder"), wanted, 1e-5F);
    expect_near(logits("b.gguf"), wanted, 1e-5F);
    const GgufModel a = load_gguf(at("a.gguf")), b = load_gguf(at("b.gguf"));
    EXPECT_EQ(a.tensors.size(), b.tensors.size());
    for (const GgufTensor& tensor : a.content.tensors) {
      const GgufTensor* other = b.content.find(tensor.name);
      ASSERT_NE(other, nullptr) << tensor.name;
      EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
      EXPECT_TRUE(std::ranges::equal(other->bytes, tensor.bytes)) << tensor.name;
    }
    EXPECT_EQ(differences(read_config(a.content), read_config(b.content)), "");
  }
}

TEST_F(Convert, TheTokenizerComesAlong) {
  there_and_back("tiny");
  const auto text = "hello word300 \xc3\xa9 \n x";
  const auto first = text::Tokenizer::from_file(at("a.gguf"));
  for (const char* other : {"folder", "b.gguf"}) {
    const auto second = text::Tokenizer::from_file(at(other));
    EXPECT_EQ(first.encode(text), second.encode(text)) << other;
    EXPECT_EQ(second.decode(second.encode(text)), first.decode(first.encode(text)));
    EXPECT_EQ(second.named_token("eos"), 2) << other;
  }
  EXPECT_EQ(load_gguf(at("b.gguf")).content.value("tokenizer.ggml.model")->text(), "llama");
}

TEST_F(Convert, PackedWeightsBecomeF16) {
  save_gguf(at("a.gguf"), random_model(*find_random_shape("tiny"), Codec::Q8_0));
  save_folder(at("folder"), load_gguf(at("a.gguf")), {}, kQuietly);
  const SafetensorsContent made = read_safetensors_model(at("folder"));
  EXPECT_EQ(made.find("model.layers.0.self_attn.q_proj.weight")->dtype, DType::F16);
  EXPECT_EQ(made.find("model.norm.weight")->dtype, DType::F32);
  expect_near(logits("folder"), logits("a.gguf"), 2e-3F);
}

TEST_F(Convert, FoldersAreQuantisedAsTheyAreWritten) {
  there_and_back("tiny");
  size_t told = 0;
  const QuantisedSizes sizes =
      save_quantised_model(at("q.gguf"), folder_as_gguf(at("folder")), {.mix = "Q8_0"},
                           [&](size_t, size_t, std::string_view) { ++told; });
  EXPECT_GT(sizes.before, 3 * sizes.after);
  const GgufContent made = read_gguf(at("q.gguf"));
  EXPECT_EQ(told, made.tensors.size());
  EXPECT_EQ(made.find("blk.0.attn_q.weight")->codec, Codec::Q8_0);
  EXPECT_EQ(made.find("blk.0.attn_norm.weight")->codec, Codec::F32);
  expect_near(logits("q.gguf"), logits("a.gguf"), 0.05F);
}

TEST_F(Convert, SaysWhatIsWrong) {
  EXPECT_ERROR(model_as_gguf(at("none")), "No such file");
  EXPECT_ERROR(folder_as_gguf(at(".")), "config.json");
  EXPECT_ERROR(folder_options("Q4_0"), "a folder of Hugging Face's in 'Q4_0': F32, F16 or BF16");
  there_and_back("tiny");
  EXPECT_ERROR(
      save_quantised_model(at("c.gguf"), folder_as_gguf(at("folder")), {.mix = "Q9"}, kQuietly),
      "there is no mix of formats 'Q9'");
  EXPECT_FALSE(std::filesystem::exists(at("c.gguf")));
  replace_in("folder/config.json", "\"num_hidden_layers\":2", "\"num_hidden_layers\":3");
  EXPECT_ERROR(folder_as_gguf(at("folder")), "blk.2.attn_norm.weight (256,) is missing");
  replace_in("folder/config.json", "\"num_hidden_layers\":3", "\"num_hidden_layers\":2");
  replace_in("folder/config.json", "\"vocab_size\":320", "\"vocab_size\":319");
  EXPECT_ERROR(folder_as_gguf(at("folder")), "token_embd.weight is (320, 256), not (319, 256)");
  std::filesystem::remove(at("folder/tokenizer.json"));
  replace_in("folder/config.json", "\"vocab_size\":319", "\"vocab_size\":320");
  EXPECT_ERROR(folder_as_gguf(at("folder")), "has no tokenizer.json");
}

TEST_F(Convert, EndsOfTurnsComeFromGenerationConfig) {
  there_and_back("tiny");
  std::ofstream(at("folder/generation_config.json")) << R"({"eos_token_id": [7, 2, 99999, "x"]})";
  EXPECT_EQ(read_folder_config(at("folder")).end_tokens, (std::vector<int32_t>{2, 7}));
  std::ofstream(at("folder/generation_config.json")) << R"({"eos_token_id": 9})";
  EXPECT_EQ(read_folder_config(at("folder")).end_tokens, (std::vector<int32_t>{2, 9}));
}

TEST_F(Convert, WhatAFileCannotSayIsRefused) {
  GgufContent content = random_model(*find_random_shape("tiny"), Codec::F32);
  const std::vector<float> odd(32, 1.5F);
  content.tensors.push_back(
      {"rope_freqs.weight", Codec::F32, {32}, std::as_bytes(std::span(odd)), {}});
  save_gguf(at("a.gguf"), content);
  EXPECT_ERROR(save_folder(at("folder"), load_gguf(at("a.gguf")), {}, kQuietly),
               "config.json cannot say all of this model, which would compute something else:\n"
               "  rotary frequencies");
  EXPECT_FALSE(std::filesystem::exists(at("folder/config.json")));
  there_and_back("tiny");
  replace_in("folder/config.json", "\"model_type\"", "\"hidden_act\":\"gelu\",\"model_type\"");
  EXPECT_ERROR(folder_as_gguf(at("folder")),
               "GGUF metadata cannot say all of this model, which would compute something else:\n"
               "  activation of feed-forward parts");
}

TEST(ConfigWrite, WhereReadersHaveOtherDefaults) {
  const auto json = [](std::string_view family) {
    Config c;
    c.family = family;
    c.layers = 2, c.dim = 64, c.heads = c.kv_heads = 4, c.head_dim = c.value_dim = 16;
    c.ffn = 96, c.vocabulary = 320, c.context = 512, c.rope.size = 16, c.attention_scale = 0.25;
    c.activation = family == "gpt-oss" ? Activation::GptOss : Activation::Gelu;
    c.experts.count = c.experts.used = c.experts.ffn = 96;
    return json_text(c, {});
  };
  const std::string gemma = json("gemma2"), gpt_oss = json("gpt-oss");
  EXPECT_NE(gemma.find(R"("attn_logit_softcapping":null)"), std::string::npos) << gemma;
  EXPECT_NE(gemma.find(R"("hidden_activation":"gelu")"), std::string::npos) << gemma;
  EXPECT_NE(gpt_oss.find(R"("rope_type":"default")"), std::string::npos) << gpt_oss;
}

TEST(ConfigWrite, Llama3sFrequenciesHaveWordsAgain) {
  Config c;
  c.family = "llama";
  c.layers = 2, c.dim = 256, c.heads = c.kv_heads = 4, c.head_dim = c.value_dim = 64;
  c.ffn = 512, c.vocabulary = 320, c.context = 131072;
  c.rope.size = 64, c.rope.base = 500000, c.rope.scaling = Rope::Scaling::Llama3;
  c.rope.factor = 8, c.rope.trained_context = 8192;
  const GgufDescription described = gguf_description(c);
  ASSERT_EQ(described.tensors.size(), 1U);
  EXPECT_EQ(described.tensors[0].name, "rope_freqs.weight");
  GgufContent content;
  content.metadata = described.metadata;
  content.tensors = described.tensors;
  const Config read = read_config(content);
  const std::string json = json_description(read, {});
  EXPECT_NE(json.find(R"("rope_type":"llama3")"), std::string::npos) << json;
  EXPECT_EQ(differences(read_config(json), c), "");
}

}  // namespace
}  // namespace weft::llm
