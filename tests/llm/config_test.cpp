// What files say of models, and how they are refused.
#include "weft/llm/config.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/io/gguf_model.h"
#include "weft/llm/network.h"
#include "weft/llm/random_model.h"

namespace weft::llm {
namespace {

void expect_refused(const std::function<void()>& run, std::string_view code,
                    std::initializer_list<std::string_view> parts) {
  try {
    run();
    ADD_FAILURE() << "not refused";
  } catch (const InternalError& e) {
    ADD_FAILURE() << e.what();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.message();
    for (const std::string_view part : parts)
      EXPECT_NE(e.message().find(part), std::string::npos) << e.message() << "\nwithout: " << part;
  }
}

std::string json(std::string_view more, std::string_view type = "llama") {
  return R"({"model_type": ")" + std::string(type) +
         R"(", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
           "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100,
           "max_position_embeddings": 512)" +
         std::string(more) + "}";
}

TEST(LlmConfig, OfJson) {
  const Config c = read_config(json(R"(, "rope_theta": 500000.0, "rms_norm_eps": 1e-6,
      "eos_token_id": [2, 7], "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128})"));
  EXPECT_EQ(c.family, "llama");
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.rope.size, 16);
  EXPECT_EQ(c.rope.base, 500000);
  EXPECT_EQ(c.rope.scaling, Rope::Scaling::Llama3);
  EXPECT_EQ(c.rope.trained_context, 128);
  EXPECT_FALSE(c.rope.neighbours);
  EXPECT_EQ(c.end_tokens, (std::vector<int32_t>{2, 7}));
}

TEST(LlmConfig, LocalLayers) {
  const Config every_sixth =
      read_config(json(R"(, "num_hidden_layers": 7, "sliding_window": 32)", "gemma3_text")
                      .replace(json("", "gemma3_text").find("\"num_hidden"), 24, ""));
  EXPECT_EQ(every_sixth.layers, 7);
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(every_sixth.is_local(i), i != 5);
  EXPECT_EQ(every_sixth.local_rope.base, 10000);
  const Config listed = read_config(
      json(R"(, "sliding_window": 32, "layer_types": ["full_attention", "sliding_attention"])",
           "gemma2"));
  EXPECT_FALSE(listed.is_local(0));
  EXPECT_TRUE(listed.is_local(1));
}

TEST(LlmConfig, LocalLayersThatNoListNames) {
  const auto locals = [](std::string_view type, std::string_view more) {
    const Config c =
        read_config(json(std::string(R"(, "sliding_window": 8)") + std::string(more), type));
    return std::pair(c.is_local(0), c.is_local(1));
  };
  const std::string used = R"(, "use_sliding_window": true, "max_window_layers": 1)";
  const std::string experts = used + R"(, "num_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 16)";
  EXPECT_EQ(locals("qwen2", used), std::pair(false, true));
  EXPECT_EQ(locals("qwen3", used), std::pair(false, true));
  EXPECT_EQ(locals("qwen2_moe", experts), std::pair(true, false));
  EXPECT_EQ(locals("qwen3_moe", experts), std::pair(true, true));
  EXPECT_EQ(locals("qwen2", ""), std::pair(false, false));
  EXPECT_EQ(locals("llama", ""), std::pair(false, false));
  EXPECT_EQ(locals("mistral", ""), std::pair(true, true));
}

TEST(LlmConfig, WhatFamiliesHaveWhereFilesSayNothing) {
  EXPECT_EQ(read_config(json("")).norm_epsilon, 1e-6);
  EXPECT_EQ(read_config(json("", "phi3")).norm_epsilon, 1e-5);
  EXPECT_EQ(read_config(json("")).activation, Activation::Silu);
  EXPECT_EQ(read_config(json(R"(, "hidden_act": "gelu")")).activation, Activation::Gelu);
  EXPECT_EQ(read_config(json(R"(, "hidden_act": "gelu")", "gemma")).activation,
            Activation::GeluTanh);
  EXPECT_EQ(read_config(json(R"(, "hidden_act": "relu", "hidden_activation": "gelu")", "gemma2"))
                .activation,
            Activation::Gelu);
  const Config gemma = read_config(json("", "gemma2"));
  EXPECT_EQ(gemma.attention_cap, 50);
  EXPECT_EQ(gemma.logit_cap, 30);
  EXPECT_EQ(gemma.attention_scale, 1.0 / 16);
  EXPECT_EQ(read_config(json(R"(, "attn_logit_softcapping": null)", "gemma2")).attention_cap, 0);
}

TEST(LlmConfig, WindowsOfFilesThatSayNothing) {
  const auto window = [](std::string_view type, std::string_view more) {
    return read_config(json(more, type)).window;
  };
  EXPECT_EQ(window("mistral", ""), 4096);
  EXPECT_EQ(window("mistral", R"(, "sliding_window": null)"), 0);
  EXPECT_EQ(window("gemma2", ""), 4096);
  EXPECT_EQ(window("gemma3_text", ""), 4096);
  EXPECT_EQ(window("gpt_oss", R"(, "num_local_experts": 4, "num_experts_per_tok": 2)"), 128);
  EXPECT_EQ(window("qwen2", R"(, "use_sliding_window": true)"), 4096);
  EXPECT_EQ(window("qwen2", ""), 0);
  EXPECT_EQ(window("phi3", ""), 0);
  EXPECT_EQ(window("starcoder2", ""), 0);
}

TEST(LlmConfig, Starcoder2) {
  const Config c =
      read_config(json(R"(, "norm_epsilon": 1e-3, "sliding_window": 24)", "starcoder2"));
  EXPECT_EQ(c.norm, Norm::Layer);
  EXPECT_EQ(c.norm_epsilon, 1e-3);
  EXPECT_EQ(c.activation, Activation::GeluTanh);
  EXPECT_FALSE(c.gated);
  EXPECT_TRUE(c.is_local(0) && c.is_local(1));
}

TEST(LlmConfig, Cohere) {
  const Config c = read_config(json(R"(, "sliding_window": 8)", "cohere"));
  EXPECT_TRUE(c.parallel && c.norm_each_head && c.rope.neighbours);
  EXPECT_EQ(c.logit_divisor, 16);
  EXPECT_EQ(c.rope.base, 500000);
  EXPECT_EQ(c.window, 0);
  EXPECT_EQ(read_config(json(R"(, "logit_scale": 0.25)", "cohere")).logit_divisor, 4);
  const Config second = read_config(json(R"(, "sliding_window_pattern": 2)", "cohere2"));
  EXPECT_EQ(second.window, 4096);
  EXPECT_TRUE(second.is_local(0) && second.is_placed(0));
  EXPECT_FALSE(second.is_local(1) || second.is_placed(1));
  expect_refused([] { read_config(json(R"(, "logit_scale": -2.0)", "cohere")); }, "llm.config",
                 {"logit_scale is -2, not a number of at least 1e-09"});
  expect_refused([] { read_config(json(R"(, "sliding_window": null)", "cohere2")); }, "llm.config",
                 {"sliding_window is missing, null or 0"});
}

TEST(LlmConfig, Glm4) {
  const Config c = read_config(json("", "glm4"));
  EXPECT_TRUE(c.pre_norms && c.post_norms && c.rope.neighbours);
  EXPECT_EQ(c.rope.size, 8);
  EXPECT_EQ(translated("model.layers.1.post_mlp_layernorm.weight", false, "glm4").name,
            "blk.1.post_ffw_norm.weight");
  EXPECT_EQ(hugging_face_name("blk.1.post_attention_norm.weight", "glm4"),
            "model.layers.1.post_self_attn_layernorm.weight");
}

TEST(LlmConfig, PhiMoe) {
  const auto read_phimoe = [](const std::string& more, int used = 2) {
    return read_config(
        json(strformat(R"(, "num_local_experts": 4, "num_experts_per_tok": {}{})", used, more),
             "phimoe"));
  };
  const Config c = read_phimoe(R"(, "rms_norm_eps": 1e-3, "router_jitter_noise": 0.1)");
  EXPECT_EQ(c.norm, Norm::Layer);
  EXPECT_EQ(c.norm_epsilon, 1e-3);
  EXPECT_EQ(c.experts.gate, Experts::Gate::SparseMixer);
  EXPECT_EQ(c.experts.jitter, 0.1);
  EXPECT_EQ(c.rope.base, 1e6);
  expect_refused([&] { read_phimoe("", 3); }, "llm.config", {"num_experts_per_tok is 3"});
  const auto scaled = [&](std::string_view scales) {
    return read_phimoe(
        strformat(R"(, "rope_scaling": {{"type": "linear", "factor": 2.0{}}})", scales));
  };
  EXPECT_EQ(scaled(R"(, "short_mscale": 1.5, "long_mscale": 1.5)").rope.attention_factor, 1.5);
  expect_refused([&] { scaled(R"(, "short_mscale": 1.5, "long_mscale": 2.5)"); }, "llm.config",
                 {"short_mscale is 1.5 and long_mscale is 2.5"});
  expect_refused([&] { scaled(R"(, "short_mscale": 1.5)"); }, "llm.config",
                 {"long_mscale is missing"});
}

/// What two families call the same lies transposed in one of them.
TEST(LlmWeightNames, AreAFamilys) {
  for (const std::string_view family : {"gpt2", "starcoder2"}) {
    const std::string theirs = hugging_face_name("blk.3.ffn_up.weight", family);
    EXPECT_EQ(theirs, family == "gpt2" ? "transformer.h.3.mlp.c_fc.weight"
                                       : "model.layers.3.mlp.c_fc.weight");
    const TranslatedName ours = translated(theirs, false, family);
    EXPECT_EQ(ours.name, "blk.3.ffn_up.weight");
    EXPECT_EQ(ours.transposed, family == "gpt2");
  }
}

TEST(LlmConfig, PositionsOfFilesThatSayNothing) {
  const auto base = [](std::string_view type, std::string_view more = "") {
    return read_config(json(more, type)).rope.base;
  };
  const char* experts = R"(, "num_local_experts": 4, "num_experts_per_tok": 2)";
  EXPECT_EQ(base("llama"), 10000);
  EXPECT_EQ(base("mixtral", experts), 1e6);
  EXPECT_EQ(base("gemma3_text"), 1e6);
  EXPECT_EQ(base("olmo3"), 500000);
  EXPECT_EQ(base("smollm3"), 2e6);
  const Config gpt_oss = read_config(json(experts, "gpt_oss"));
  EXPECT_EQ(gpt_oss.rope.base, 150000);
  EXPECT_EQ(gpt_oss.rope.scaling, Rope::Scaling::Yarn);
  EXPECT_EQ(gpt_oss.rope.factor, 32);
  const std::string plain = std::string(experts) + R"(, "rope_scaling": {"rope_type": "default"})";
  EXPECT_EQ(read_config(json(plain, "gpt_oss")).rope.scaling, Rope::Scaling::None);
}

TEST(LlmConfig, PartsOfHeads) {
  const auto turned = [](std::string_view type, std::string_view more = "") {
    return read_config(json(more, type)).rope.size;
  };
  EXPECT_EQ(turned("stablelm"), 4);
  EXPECT_EQ(turned("nemotron"), 8);
  EXPECT_EQ(turned("nemotron", R"(, "partial_rotary_factor": 1.0)"), 16);
  EXPECT_EQ(turned("phi3", R"(, "partial_rotary_factor": 0.75)"), 12);
  EXPECT_EQ(turned("llama", R"(, "partial_rotary_factor": 0.5)"), 16);
}

TEST(LlmConfig, LayersWithoutPositions) {
  const auto placed = [](std::string_view more) {
    const Config c = read_config(json(more, "smollm3"));
    return std::pair(c.is_placed(0), c.is_placed(1));
  };
  EXPECT_EQ(placed(""), std::pair(true, true));
  EXPECT_EQ(placed(R"(, "no_rope_layer_interval": 2)"), std::pair(true, false));
  EXPECT_EQ(placed(R"(, "no_rope_layers": [0, 1])"), std::pair(false, true));
  expect_refused([] { read_config(json(R"(, "no_rope_layers": [1])", "smollm3")); }, "llm.config",
                 {"no_rope_layers lists 1 layers of 2"});
}

TEST(LlmConfig, WhichLayersHaveExperts) {
  const auto experts = [](std::string_view type, std::string_view more) {
    const Config c = read_config(json(
        std::string(R"(, "num_experts": 4, "num_experts_per_tok": 2)") + std::string(more), type));
    return std::pair(c.has_experts(0), c.has_experts(1));
  };
  EXPECT_EQ(experts("qwen3_moe", ""), std::pair(true, true));
  EXPECT_EQ(experts("qwen3_moe", R"(, "mlp_only_layers": [0])"), std::pair(false, true));
  EXPECT_EQ(experts("qwen2_moe", R"(, "mlp_only_layers": [1, 7])"), std::pair(true, false));
  EXPECT_EQ(experts("qwen2_moe", R"(, "decoder_sparse_step": 2)"), std::pair(false, true));
  EXPECT_EQ(experts("qwen2_moe", R"(, "decoder_sparse_step": 2, "mlp_only_layers": [1])"),
            std::pair(false, false));
}

/// What would be computed as something else.
TEST(LlmConfig, RefusesWhatItDoesNotCompute) {
  const auto refused = [](std::string_view type, std::string_view more, std::string_view why) {
    expect_refused([&] { read_config(json(more, type)); }, "llm.config", {why});
  };
  refused("llama", R"(, "hidden_act": "mish")", "the activation 'mish' is not supported");
  refused("llama",
          R"(, "rope_scaling": {"rope_type": "linear", "factor": 2, "partial_rotary_factor": 0.5})",
          "turns whole heads");
  refused("gemma3_text", R"(, "use_bidirectional_attention": true)", "see those behind them");
  refused("gemma3_text",
          R"(, "rope_parameters": {"sliding_attention": {"rope_type": "spiral", "factor": 2.0}})",
          "rope scaling 'spiral' is not supported");
  refused("stablelm", R"(, "use_parallel_residual": true)", "use_parallel_residual is not");
  refused("stablelm", R"(, "qk_layernorm": true)", "qk_layernorm is not supported");
  refused("gpt_oss", R"(, "num_local_experts": 4, "num_experts_per_tok": 2, "swiglu_limit": 1.0)",
          "swiglu_limit");
}

TEST(LlmConfig, SaysAllThatIsWrong) {
  expect_refused([] { read_config(R"({"model_type": "llama"})"); }, "llm.config",
                 {"num_hidden_layers|n_layer is missing", "hidden_size|n_embd is missing",
                  "num_attention_heads|n_head is missing", "vocab_size is missing"});
  expect_refused([] { read_config(json(R"(, "head_dim": 0.5, "sliding_window": "x")")); },
                 "llm.config",
                 {"head_dim is 0.5, not a whole number from 1", "sliding_window is no number"});
  expect_refused(
      [] {
        read_config(json("").replace(json("").find("\"num_key_value_heads\": 2"), 24,
                                     "\"num_key_value_heads\": 3"));
      },
      "llm.config", {"4 heads with 3 heads of keys"});
  expect_refused(
      [] { read_config(json(R"(, "rope_scaling": {"rope_type": "spiral", "factor": 2})")); },
      "llm.config", {"rope scaling 'spiral' is not supported"});
  expect_refused([] { read_config(json(R"(, "layer_types": ["full_attention"])")); }, "llm.config",
                 {"layer_types lists 1 layers of 2"});
  expect_refused([] { read_config(json(R"(, "head_dim": 15)")); }, "llm.config",
                 {"15 of a head's 15 numbers are turned"});
}

TEST(LlmConfig, OtherFamiliesAndFiles) {
  expect_refused([] { read_config(json("", "mamba")); }, "llm.family",
                 {"the model is a 'mamba', which weft does not know: llama, mistral"});
  expect_refused([] { read_config("{}"); }, "llm.config", {"does not say its model_type"});
  expect_refused([] { read_config(GgufContent()); }, "llm.config",
                 {"does not say its general.architecture"});
}

TEST(LlmConfig, OfGguf) {
  GgufContent content = random_model(*find_random_shape("tiny"), Codec::Q8_0);
  const Config c = read_config(content);
  EXPECT_EQ(c.vocabulary, 320);
  EXPECT_TRUE(c.rope.neighbours);
  EXPECT_EQ(c.end_tokens, (std::vector<int32_t>{2}));
  for (auto& [key, value] : content.metadata)
    if (key == "llama.block_count") value = GgufValue::of_number(uint32_t{0});
  expect_refused([&] { read_config(content); }, "llm.config",
                 {"llama.block_count is 0, not a whole number from 1"});
}

TEST(LlmConfig, OfGgufOtherInEachLayer) {
  const GgufContent made = random_model(*find_random_shape("tiny"), Codec::Q8_0);
  const auto with = [&](std::string_view name, GgufValue value) {
    GgufContent content = made;
    std::erase_if(content.metadata, [&](const auto& entry) { return entry.first == name; });
    content.metadata.emplace_back(name, std::move(value));
    return content;
  };
  const std::vector<uint32_t> same = {2, 2}, other = {2, 4};
  EXPECT_EQ(
      read_config(with("llama.attention.head_count_kv", GgufValue::of_numbers<uint32_t>(same)))
          .kv_heads,
      2);
  expect_refused(
      [&] {
        read_config(with("llama.attention.head_count_kv", GgufValue::of_numbers<uint32_t>(other)));
      },
      "llm.config", {"llama.attention.head_count_kv differs from layer to layer"});
  expect_refused([&] { read_config(with("llama.attention.causal", GgufValue::of_number(false))); },
                 "llm.config", {"see those behind them (attention.causal)"});
}

/// A tensor of zeros as a folder has it.
NamedArray zeros(const std::string& name, DType dtype, std::vector<int64_t> shape) {
  int64_t size = bits(dtype) / 8;
  for (const int64_t d : shape) size *= d;
  const auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(size));
  return {name, {dtype, std::move(shape), *bytes, bytes}};
}

TEST(LlmWeights, OtherThanFloatsOfEightBitsWithScalesAreRefused) {
  const std::string matrix = "model.layers.0.self_attn.q_proj.weight";
  for (const DType dtype : {DType::I8, DType::BF16}) {
    const std::string end = dtype == DType::I8 ? "_scale" : "_scale_inv";
    SafetensorsContent content;
    content.arrays = {zeros(matrix, dtype, {64, 64}), zeros(matrix + end, DType::F32, {1, 1})};
    expect_refused([&] { Weights{content}; }, "llm.weights",
                   {"'" + matrix + end + "' scales a packed matrix"});
  }
}

TEST(LlmWeights, AnOutputOfItsOwnHasToBeThere) {
  const SafetensorsContent none;
  const auto refusal = [&](std::string_view more) {
    try {
      Network(read_config(json(more)), Weights(none), 64);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  const std::string missing = "output.weight (100, 64) is missing";
  EXPECT_NE(refusal(R"(, "tie_word_embeddings": false)").find(missing), std::string::npos);
  EXPECT_EQ(refusal(R"(, "tie_word_embeddings": true)").find(missing), std::string::npos);
  EXPECT_EQ(refusal("").find(missing), std::string::npos);
}

TEST(LlmWeights, SayAllThatIsWrong) {
  GgufContent content = random_model(*find_random_shape("tiny"), Codec::Q8_0);
  std::erase_if(content.tensors, [](const GgufTensor& t) {
    return t.name == "blk.0.attn_k.weight" || t.name == "output_norm.weight";
  });
  Config config = read_config(content);
  config.ffn = 256;
  const GgufModel model = gguf_model(content);
  const Weights weights(model);
  expect_refused(
      [&] { Network(config, weights, 64); }, "llm.weights",
      {"output_norm.weight (256,) is missing", "blk.0.attn_k.weight (128, 256) is missing",
       "8 wrong", "blk.1.ffn_up.weight is (512, 256), not (256, 256)"});
}

TEST(LlmRandom, Refuses) {
  RandomShape shape = *find_random_shape("tiny");
  shape.dim = 100;
  expect_refused([&] { random_model(shape, Codec::Q4_K); }, "llm.random",
                 {"widths 100 and 512 are not whole blocks of Q4_K"});
  shape.dim = 256;
  shape.vocabulary = 10;
  expect_refused([&] { random_model(shape, Codec::F32); }, "llm.random",
                 {"a vocabulary of 10 has no room for all bytes"});
}

}  // namespace
}  // namespace weft::llm
