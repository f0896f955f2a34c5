// Encoders: how files that make none and requests that they cannot answer are refused.
#include <gtest/gtest.h>

#include <functional>

#include "tests/llm/tiny_models.h"
#include "weft/llm/network.h"

namespace weft::llm {
namespace {

constexpr int64_t kDim = 32, kHeads = 2, kFfn = 48, kVocabulary = 320, kContext = 16;

/// config.json; what `more` says comes last.
std::string json(std::string_view type, std::string_view more = "", int64_t positions = kContext) {
  return strformat(R"({{"model_type": "{}", "hidden_size": {}, "num_hidden_layers": 1,
      "num_attention_heads": {}, "intermediate_size": {}, "vocab_size": {},
      "max_position_embeddings": {}{}}})",
                   type, kDim, kHeads, kFfn, kVocabulary, positions, more);
}

using Shapes = std::map<std::string, std::vector<int64_t>>;

/// Of a bert with these sizes.
Shapes bert_shapes() {
  Shapes all = {{"token_embd.weight", {kVocabulary, kDim}},
                {"position_embd.weight", {kContext, kDim}},
                {"token_types.weight", {2, kDim}},
                {"blk.0.ffn_up.weight", {kFfn, kDim}},
                {"blk.0.ffn_down.weight", {kDim, kFfn}}};
  for (const char* matrix : {"attn_q", "attn_k", "attn_v", "attn_output"})
    all[strformat("blk.0.{}.weight", matrix)] = {kDim, kDim};
  for (const char* norm : {"token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"})
    all[strformat("{}.weight", norm)] = {kDim};
  return all;
}

Weights weights(const Shapes& shapes) {
  Tensor::manual_seed(1);
  std::vector<NamedTensor> all;
  for (const auto& [name, shape] : shapes)
    all.push_back({name, Tensor::randn(Dims(shape)).realize()});
  return Weights(all);
}

void expect_refused(std::string_view code, std::string_view part,
                    const std::function<void()>& run) {
  try {
    run();
    ADD_FAILURE() << "not refused: " << part;
  } catch (const InternalError& e) {
    ADD_FAILURE() << e.what();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.message();
    EXPECT_NE(e.message().find(part), std::string::npos) << e.message() << "\nwithout: " << part;
  }
}

class Encoders : public ScratchDir {
 protected:
  static Model bert(const Shapes& shapes = bert_shapes()) {
    const GgufModel other = gguf_model(random_model(*find_random_shape("tiny"), Codec::Q8_0, 1));
    return Model(ModelFile{read_config(json("bert")), weights(shapes)},
                 text::Tokenizer::from_gguf(other.content));
  }
};

TEST_F(Encoders, DescriptionsOfWhatTheyCannotBe) {
  const auto refused = [](std::string_view type, std::string_view more, std::string_view part) {
    expect_refused("llm.config", part, [&] { (void)read_config(json(type, more)); });
  };
  refused("bert", R"(, "hidden_act": "mish")", "the activation 'mish' is not supported");
  refused("bert", R"(, "position_embedding_type": "relative_key")", "'relative_key', not absolute");
  refused("bert", R"(, "is_decoder": true)", "tokens do not see those behind them");
  refused("bert", R"(, "is_decoder": 1)", "is_decoder is neither true nor false");
  refused("roberta", R"(, "pad_token_id": -5)", "pad_token_id is -5, not a whole number");
  refused("mpnet", R"(, "relative_attention_num_buckets": 2)", "not a whole number from 4");
  refused("nomic_bert", R"(, "prenorm": true)", "prenorm is not supported");
  refused("nomic_bert", R"(, "moe_every_n_layers": 2)", "layers with experts");
  refused("nomic_bert", R"(, "hidden_act": "gelu")",
          "activations other than silu are not supported");
}

TEST_F(Encoders, WhatTheirTokensAreMadeOneOf) {
  const auto refused = [&](std::string_view text, std::string_view part) {
    write("config.json", json("bert"));
    std::filesystem::create_directories(at("1_Pooling"));
    write("1_Pooling/config.json", text);
    expect_refused("llm.config", part, [&] { (void)read_folder_config(at("")); });
  };
  refused(R"({"pooling_mode_max_tokens": true})", "pooling_mode_max_tokens is not supported");
  refused(R"({"pooling_mode_cls_token": "yes"})", "pooling_mode_cls_token");
  refused("[]", "an object");
  refused(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})", "several modes");
  write("modules.json", R"([{"type": "sentence_transformers.models.Transformer"},
                            {"type": "sentence_transformers.models.Dense"}])");
  refused("{}", "type 'sentence_transformers.models.Dense' is not supported");
  write("modules.json", R"([{"type": "sentence_transformers.models.Normalize"}])");
  write("1_Pooling/config.json", "{}");
  EXPECT_EQ(read_folder_config(at("")).pooling, Pooling::Mean);
  write("1_Pooling/config.json", R"({"pooling_mode": "lasttoken"})");
  EXPECT_EQ(read_folder_config(at("")).pooling, Pooling::Last);
  refused(R"({"pooling_mode": "max"})", "pooling_mode 'max' is not supported");
  write("1_Pooling/config.json", "{");
  expect_refused("json.format", "1_Pooling/config.json", [&] { (void)read_folder_config(at("")); });
}

TEST_F(Encoders, FoldersOfEmbeddings) {
  write("config.json", json("bert"));
  EXPECT_FALSE(read_folder_config(at("")).embeds);
  write("config.json", json("bert", R"(, "architectures": ["BertForMaskedLM"])"));
  EXPECT_FALSE(read_folder_config(at("")).embeds);
  write("config.json", json("bert", R"(, "architectures": ["BertModel"])"));
  EXPECT_TRUE(read_folder_config(at("")).embeds);
  write("config.json", json("bert"));
  std::filesystem::create_directories(at("1_Pooling"));
  write("1_Pooling/config.json", R"({"pooling_mode": "cls"})");
  EXPECT_TRUE(read_folder_config(at("")).embeds);
}

TEST_F(Encoders, TensorsThatDoNotFit) {
  const auto refused = [](Shapes shapes, std::string_view part, const std::string& description) {
    expect_refused("llm.weights", part, [&] {
      const Config c = read_config(description);
      const Network network(c, weights(shapes), c.context);
    });
  };
  const auto with = [](const std::string& name, std::vector<int64_t> shape) {
    Shapes all = bert_shapes();
    all[name] = std::move(shape);
    return all;
  };
  Shapes fewer = bert_shapes();
  fewer.erase("token_embd_norm.weight");
  refused(fewer, "token_embd_norm.weight (32,) is missing", json("bert"));
  refused(with("token_types.weight", {2, 8}), "token_types.weight is (2, 8), not rows of 32",
          json("bert"));
  refused(with("token_types.weight", {8}), "token_types.weight is (8,), not rows of 32",
          json("bert"));
  refused(with("blk.0.ffn_up.weight", {kDim, kFfn}),
          "blk.0.ffn_up.weight is (32, 48), not (48, 32)", json("bert"));
  // Nothing is made for each distance of a context that the file has no positions for.
  refused(with("attn_rel_b.weight", {32, kHeads}), "position_embd.weight is (16, 32)",
          json("mpnet", "", int64_t{1} << 30));
}

/// As files have it that llama.cpp quantised.
TEST_F(Encoders, OneKindOfTokenIsARowOrAVector) {
  const auto embedded = [](const std::vector<int64_t>& types) {
    Shapes shapes = bert_shapes();
    shapes.erase("token_types.weight");
    if (!types.empty()) shapes["token_types.weight"] = types;
    return bert(shapes).embedding(std::vector<TokenId>{1, 2, 3});
  };
  // Two graphs, which may round a sum in other places.
  const auto vector = embedded({kDim}), row = embedded({1, kDim});
  ASSERT_EQ(vector.size(), row.size());
  for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(vector[i], row[i], 1e-6F);
  EXPECT_NE(embedded({kDim}), embedded({}));
}

TEST_F(Encoders, WhatTheyAreAsked) {
  Model m = bert();
  expect_refused("llm", "a bert makes embeddings of texts", [&] { m.submit({.prompt = {1, 2}}); });
  expect_refused("llm", "a bert makes embeddings of texts",
                 [&] { (void)m.logits(std::vector<TokenId>{1}); });
  const auto embedding = [&](std::vector<TokenId> tokens) { (void)m.embedding(tokens); };
  expect_refused("llm.prompt", "no tokens", [&] { embedding({}); });
  expect_refused("llm.prompt", "token 320 is none", [&] { embedding({1, kVocabulary}); });
  expect_refused("llm.context", "17 tokens, and the context is 16",
                 [&] { embedding(std::vector<TokenId>(kContext + 1, 1)); });
  EXPECT_EQ(m.embedding(std::vector<TokenId>{1, 2, 3}).size(), size_t{kDim});
}

/// Models whose output was left out, as those for embeddings are published.
TEST_F(Models, WithoutAnOutputHaveEmbeddings) {
  GgufModel file = gguf_model(random_model(*find_random_shape("tiny"), Codec::Q8_0, 1));
  const std::vector<TokenId> tokens = {1, 2, 3};
  const auto model_of = [&](const Config& c) {
    return Model(ModelFile{c, Weights(file)}, text::Tokenizer::from_gguf(file.content),
                 {.context = 64});
  };
  Config c = read_config(file.content);
  const auto wanted = model_of(c).embedding(tokens);
  std::erase_if(file.tensors, [](const PackedTensor& t) { return t.name == "output.weight"; });
  std::erase_if(file.content.tensors,
                [](const GgufTensor& t) { return t.name == "output.weight"; });
  c.own_output = true;
  EXPECT_THROW(model_of(c), Error);
  c.embeds = true;
  Model m = model_of(c);
  EXPECT_EQ(m.embedding(tokens), wanted);
  expect_refused(m, request({1}, 1), "llm", "makes embeddings of texts and writes none");
  EXPECT_THROW(m.logits(tokens), Error);
}

}  // namespace
}  // namespace weft::llm
