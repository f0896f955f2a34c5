#include "weft/llm/lora.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/io/scratch_dir.h"
#include "weft/base/file.h"
#include "weft/io/safetensors.h"
#include "weft/llm/convert.h"
#include "weft/llm/model.h"
#include "weft/llm/model_file.h"
#include "weft/llm/quantise_model.h"
#include "weft/llm/random_model.h"

namespace weft::llm {
namespace {

constexpr auto kQuietly = [](size_t, size_t, std::string_view) {};

class LoraTest : public ScratchDir {
 protected:
  void make_model(std::string_view shape, Codec codec) {
    save_gguf(at("m.gguf"), random_model(*find_random_shape(shape), codec));
  }
  /// An adapter that changes something: B is not zeros.
  Lora random_lora(const std::string& model, const std::vector<std::string>& targets) {
    const ModelFile file = read_model(at(model));
    Lora lora = new_lora(file.weights, file.config, {.rank = 4, .alpha = 6, .targets = targets}, 5);
    for (auto& [name, part] : lora.parts) {
      std::vector<float> b(static_cast<size_t>(part.b.numel()));
      for (size_t i = 0; i < b.size(); ++i) b[i] = 0.05F * std::sin(static_cast<float>(i * i));
      part.b = Tensor::from(b, part.b.dims());
    }
    return lora;
  }
  std::vector<float> logits(const std::string& name, const std::vector<LoraFile>& lora = {}) {
    Model model(at(name),
                {.context = 64, .cache = DType::F32, .factors = Factors::F32, .lora = lora});
    const std::vector<TokenId> tokens = {1, 7, 300, 19, 4, 250, 8};
    return model.logits(tokens);
  }
  static float off(const std::vector<float>& a, const std::vector<float>& b) {
    float top = 0, far = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      top = std::max(top, std::abs(b[i]));
      far = std::max(far, std::abs(a[i] - b[i]));
    }
    return far / top;
  }
  Config config_of(const std::string& name) { return read_model(at(name)).config; }
};

TEST_F(LoraTest, BesideTheWeightsIsInTheWeights) {
  for (const char* shape : {"tiny", "tiny-gpt2"}) {
    SCOPED_TRACE(shape);
    make_model(shape, Codec::F32);
    const Lora lora = random_lora("m.gguf", {"all"});
    save_lora_gguf(at("l.gguf"), lora, config_of("m.gguf"));
    const std::vector<float> plain = logits("m.gguf");
    const std::vector<float> adapted = logits("m.gguf", {{at("l.gguf"), 1}});
    EXPECT_GT(off(adapted, plain), 0.01F);
    save_quantised_model(at("merged.gguf"), merged(load_gguf(at("m.gguf")), lora), {.mix = ""},
                         kQuietly);
    EXPECT_LT(off(logits("merged.gguf"), adapted), 1e-5F);
    save_quantised_model(at("half.gguf"), merged(load_gguf(at("m.gguf")), lora, 0.5), {.mix = ""},
                         kQuietly);
    EXPECT_LT(off(logits("half.gguf"), logits("m.gguf", {{at("l.gguf"), 0.5}})), 1e-5F);
    const std::vector<LoraFile> twice = {{at("l.gguf"), 0.25}, {at("l.gguf"), 0.25}};
    EXPECT_LT(off(logits("m.gguf", twice), logits("half.gguf")), 1e-5F);
  }
}

/// Queries and keys lie otherwise in a llama's GGUF file than in its folder.
TEST_F(LoraTest, FilesAndFoldersOfBothKindsAreTheSameAdapter) {
  make_model("tiny", Codec::F32);
  save_folder(at("folder"), load_gguf(at("m.gguf")), folder_options("F32"), kQuietly);
  const Lora lora = random_lora("m.gguf", {"q", "k", "v", "o", "down"});
  save_lora_gguf(at("l.gguf"), lora, config_of("m.gguf"));
  save_lora_folder(at("peft"), lora, config_of("m.gguf"), "m");
  const std::vector<float> wanted = logits("m.gguf", {{at("l.gguf"), 1}});
  EXPECT_LT(off(logits("m.gguf", {{at("peft"), 1}}), wanted), 1e-5F);
  EXPECT_LT(off(logits("folder", {{at("peft"), 1}}), wanted), 1e-5F);
  EXPECT_LT(off(logits("folder", {{at("l.gguf"), 1}}), wanted), 1e-5F);
  const Lora read = read_lora(at("peft"), config_of("folder"));
  EXPECT_EQ(read.alpha, 6);
  save_lora_gguf(at("l2.gguf"), read, config_of("folder"));
  EXPECT_LT(off(logits("m.gguf", {{at("l2.gguf"), 1}}), wanted), 1e-5F);
}

TEST_F(LoraTest, PackedWeightsStayPacked) {
  make_model("tiny", Codec::Q8_0);
  const Lora lora = random_lora("m.gguf", {"q", "v", "up"});
  save_lora_gguf(at("l.gguf"), lora, config_of("m.gguf"));
  const GgufModel model = load_gguf(at("m.gguf"));
  const std::vector<float> adapted = logits("m.gguf", {{at("l.gguf"), 1}});
  save_quantised_model(at("f32.gguf"), merged(model, lora), {.mix = "F32", .requantise = true},
                       kQuietly);
  EXPECT_LT(off(logits("f32.gguf"), adapted), 1e-5F);
  save_quantised_model(at("same.gguf"), merged(model, lora), {.mix = ""}, kQuietly);
  const GgufContent same = read_gguf(at("same.gguf"));
  EXPECT_EQ(same.find("blk.0.attn_q.weight")->codec, Codec::Q8_0);
  EXPECT_TRUE(std::ranges::equal(same.find("blk.0.attn_k.weight")->bytes,
                                 model.content.find("blk.0.attn_k.weight")->bytes));
  EXPECT_LT(off(logits("same.gguf"), adapted), 0.05F);
}

/// As their neighbours without adapters, not in f32.
TEST_F(LoraTest, FoldersOfMergedModelsKeepFormats) {
  for (const auto& [codec, wanted] :
       {std::pair(Codec::BF16, DType::BF16), std::pair(Codec::Q8_0, DType::F16)}) {
    make_model("tiny", codec);
    const Lora lora = random_lora("m.gguf", {"q"});
    save_folder(at("folder"), merged(load_gguf(at("m.gguf")), lora), {}, kQuietly);
    const SafetensorsContent made = read_safetensors(at("folder/model.safetensors"));
    for (const char* part : {"q_proj", "k_proj"})
      EXPECT_EQ(made.find(strformat("model.layers.0.self_attn.{}.weight", part))->dtype, wanted);
  }
}

TEST_F(LoraTest, NewOnesChangeNothing) {
  make_model("tiny", Codec::F32);
  ModelFile file = read_model(at("m.gguf"));
  const Lora lora = new_lora(file.weights, file.config, {.rank = 2, .targets = {"q", "v"}}, 1);
  EXPECT_EQ(lora.parts.size(), 4U);  // q and v of two layers
  save_lora_gguf(at("l.gguf"), lora, file.config);
  EXPECT_EQ(logits("m.gguf", {{at("l.gguf"), 1}}), logits("m.gguf"));
  EXPECT_ERROR(new_lora(file.weights, file.config, {.targets = {"x"}}, 1),
               "there is no target 'x': q, k, v, o, gate, up, down, output, all");
  EXPECT_ERROR(new_lora(file.weights, file.config, {.rank = 0}, 1), "a rank of 0: from 1 to 4096");
}

/// Through products with weights that stay packed, to both factors, as finite differences have it.
TEST_F(LoraTest, GradientsFlowThroughPackedWeights) {
  make_model("tiny", Codec::Q8_0);
  ModelFile file = read_model(at("m.gguf"));
  const Lora lora = random_lora("m.gguf", {"q", "v", "down"});
  const Tensor tokens = Tensor::from(std::vector<int32_t>{1, 7, 300, 19, 4, 250, 8, 11}, {1, 8});
  const Tensor wanted = Tensor::from(std::vector<int32_t>{7, 300, 19, 4, 250, 8, 11, 2}, {8});
  const auto loss_with = [&](const std::string& name, const LowRank& part) {
    Weights weights = file.weights;
    Lora moved = lora;
    moved.parts[name] = part;
    attach(weights, moved);
    const Network network(file.config, weights, 8);
    return network.logits(network.hidden(tokens))
        .reshape({8, -1})
        .sparse_categorical_crossentropy(wanted);
  };
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_v.weight", "blk.1.ffn_down.weight"}) {
    SCOPED_TRACE(name);
    LowRank part = lora.parts.find(name)->second;
    part.a = part.a.detach().contiguous().realize(),
    part.b = part.b.detach().contiguous().realize();
    part.a.requires_grad_(), part.b.requires_grad_();
    loss_with(name, part).backward();
    for (const bool of_a : {true, false}) {
      const Tensor& x = of_a ? part.a : part.b;
      // Along the gradient itself, where a step changes the loss the most.
      const Tensor direction = x.grad().detach() / (x.grad() * x.grad()).sum().sqrt();
      const double slope = (x.grad() * x.grad()).sum().sqrt().item<double>();
      constexpr double kStep = 0.02;
      const auto at_step = [&](double by) {
        LowRank moved = {part.a.detach(), part.b.detach(), part.scale};
        (of_a ? moved.a : moved.b) = x.detach() + direction * by;
        return loss_with(name, moved).item<double>();
      };
      const double measured = (at_step(kStep) - at_step(-kStep)) / (2 * kStep);
      EXPECT_GT(slope, 1e-4);
      EXPECT_NEAR(measured, slope, 0.02 * slope + 1e-4) << (of_a ? "A" : "B");
    }
  }
}

TEST_F(LoraTest, OfAnotherModelIsRefused) {
  make_model("tiny", Codec::F32);
  const Config config = config_of("m.gguf");
  Lora lora = random_lora("m.gguf", {"q"});
  Weights weights = read_model(at("m.gguf")).weights;
  lora.parts["blk.7.attn_q.weight"] = lora.parts["blk.0.attn_q.weight"];
  EXPECT_ERROR(attach(weights, lora),
               "the adapter changes 'blk.7.attn_q.weight', which the model does not have");
  lora.parts.erase("blk.7.attn_q.weight");
  lora.parts["blk.0.attn_q.weight"].a = Tensor::zeros({4, 128});
  EXPECT_ERROR(attach(weights, lora),
               "the adapter's 'blk.0.attn_q.weight' is (256, 4) by (4, 128), "
               "and the model's (256, 256): it is of another model");
  EXPECT_ERROR(merged(load_gguf(at("m.gguf")), lora), "it is of another model");
  Config other = config;
  other.family = "qwen2";
  save_lora_gguf(at("l.gguf"), random_lora("m.gguf", {"q"}), other);
  EXPECT_ERROR(read_lora(at("l.gguf"), config),
               "an adapter of a 'qwen2', and the model is a 'llama'");
}

TEST_F(LoraTest, DamagedFilesAreRefused) {
  make_model("tiny", Codec::F32);
  const Config config = config_of("m.gguf");
  EXPECT_ERROR(read_lora(at("m.gguf"), config), "a GGUF file of the type '', not a lora adapter");
  EXPECT_ERROR(read_lora(at("none"), config), "is no adapter: a GGUF file, or a folder with");
  const Lora lora = random_lora("m.gguf", {"q"});
  const auto with = [&](std::string_view description) {
    save_lora_folder(at("peft"), lora, config, "m");
    atomic_write_file(at("peft/adapter_config.json"), description);
    return at("peft");
  };
  EXPECT_ERROR(read_lora(with(R"({"lora_alpha": 8, "use_dora": true})"), config), "has use_dora");
  EXPECT_ERROR(read_lora(with(R"({"lora_alpha": 8, "peft_type": "IA3"})"), config),
               "the peft_type 'IA3', which is not supported");
  EXPECT_ERROR(read_lora(with(R"({"lora_alpha": 8, "modules_to_save": ["lm_head"]})"), config),
               "has modules_to_save, which is not supported");
  EXPECT_ERROR(
      read_lora(with(R"({"lora_alpha": 8, "init_lora_weights": "pissa_niter_4"})"), config),
      "has init_lora_weights of 'pissa_niter_4', which is not supported");
  EXPECT_ERROR(read_lora(with("{}"), config), "lora_alpha");
  GgufContent half;
  half.metadata = {{"general.type", GgufValue::of("adapter")},
                   {"adapter.type", GgufValue::of("lora")},
                   {"general.architecture", GgufValue::of("llama")}};
  half.tensors = {gguf_tensor("blk.0.attn_q.weight.lora_a", Tensor::zeros({4, 256}), Codec::F32)};
  save_gguf(at("half.gguf"), half);
  EXPECT_ERROR(read_lora(at("half.gguf"), config), "'blk.0.attn_q.weight' has one factor of two");
  half.tensors = {gguf_tensor("blk.0.attn_q.weight", Tensor::zeros({4, 256}), Codec::F32)};
  save_gguf(at("half.gguf"), half);
  EXPECT_ERROR(read_lora(at("half.gguf"), config), "is no factor of a matrix");
  half.tensors.clear();
  save_gguf(at("half.gguf"), half);
  EXPECT_ERROR(read_lora(at("half.gguf"), config), "there are no factors in it");
}

}  // namespace
}  // namespace weft::llm
