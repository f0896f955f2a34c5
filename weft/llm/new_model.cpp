#include "weft/llm/new_model.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/host_array.h"
#include "weft/io/json_tree.h"
#include "weft/llm/config_write.h"
#include "weft/llm/families.h"
#include "weft/nn/initialise.h"
#include "weft/tensor/random.h"

namespace weft::llm {

namespace {

constexpr NewModelShape kShapes[] = {
    // name, family, layers, dim, heads, kv_heads, ffn, context
    {"tiny", "gpt2", 2, 64, 4, 4, 256, 64},
    {"small", "gpt2", 6, 384, 6, 6, 1536, 256},
    {"gpt2", "gpt2", 12, 768, 12, 12, 3072, 1024},
    {"tiny-llama", "llama", 2, 64, 4, 2, 192, 64},
    {"small-llama", "llama", 6, 384, 6, 2, 1024, 256},
};

/// What can be trained: the family's own row in families.cpp has the rest.
struct Trainable {
  std::string_view family;
  bool joined = false;  // queries, keys and values in one matrix; biases everywhere
  bool head_biases = false, head_norms = false;
};
constexpr Trainable kTrainable[] = {
    {"gpt2", true},
    {"llama"},
    {"qwen2", false, true},
    {"qwen3", false, false, true},
};

const Trainable* find_trainable(std::string_view family) {
  const auto* at = std::ranges::find(kTrainable, family, &Trainable::family);
  return at == std::end(kTrainable) ? nullptr : at;
}

std::string known_shapes() {
  std::string all;
  for (const NewModelShape& s : kShapes) all += (all.empty() ? "" : ", ") + std::string(s.name);
  return all;
}

Config config_of(const NewModelShape& s, int64_t vocabulary) {
  Config c;
  c.family = s.family;
  c.activation =
      find_family(s.family, false)->activation;  // model_types are called as families are
  c.layers = s.layers, c.dim = s.dim, c.heads = s.heads, c.kv_heads = s.kv_heads;
  c.head_dim = s.dim / s.heads, c.ffn = s.ffn, c.context = s.context, c.vocabulary = vocabulary;
  return c;
}

void check(const NewModel& m, std::string_view what) {
  const Config& c = m.config;
  std::string problems;
  const auto unless = [&](bool fine, std::string_view problem) {
    if (!fine) problems += "\n  " + std::string(problem);
  };
  unless(find_trainable(c.family) != nullptr, "the family is not gpt2, llama, qwen2 or qwen3");
  unless(c.rope.scaling == Rope::Scaling::None, "rotary positions are scaled");
  unless(c.rope.size == 0 || c.rope.size == c.head_dim, "a part of a head is turned only");
  unless(c.experts.count == 0, "it has experts");
  unless(c.activation == (c.family == "gpt2" ? Activation::GeluTanh : Activation::Silu),
         "its activation is not the family's, which GGUF files cannot say");
  unless(c.window == 0 || c.local.empty(), "it has sliding windows");
  unless(c.family != "gpt2" || c.head_dim * c.heads == c.dim, "heads do not divide the width");
  unless(c.family != "gpt2" || m.tied, "a gpt2's output is its table of tokens");
  if (!problems.empty())
    fail("llm.new", "{} cannot be trained from its beginning:{}", quoted_name(what), problems);
}

// ---- weights

class WeightMaker {
 public:
  explicit WeightMaker(const NewModel& model)
      : c_(model.config), kind_(*find_trainable(c_.family)), tied_(model.tied) {}

  std::vector<NamedTensor> all() {
    matrix("token_embd.weight", c_.vocabulary, c_.dim, kDeviation);
    if (c_.learned_positions) matrix("position_embd.weight", c_.context, c_.dim, kDeviation);
    for (int64_t i = 0; i < c_.layers; ++i) layer(strformat("blk.{}.", i));
    norm("output_norm", c_.dim);
    if (!tied_) matrix("output.weight", c_.vocabulary, c_.dim, kDeviation);
    std::vector<Tensor> tensors;
    for (const NamedTensor& t : all_) tensors.push_back(t.tensor);
    realize(tensors);
    return std::move(all_);
  }

 private:
  static constexpr double kDeviation = 0.02;

  void matrix(const std::string& name, int64_t rows, int64_t columns, double deviation) {
    all_.push_back({name, nn::trained(Tensor::normal({rows, columns}, 0, deviation))});
  }
  void vector(const std::string& name, int64_t size, double value) {
    all_.push_back({name, nn::trained(own_constant({size}, value))});
  }
  void linear(const std::string& name, int64_t out, int64_t in, bool bias, double deviation) {
    matrix(name + ".weight", out, in, deviation);
    if (bias) vector(name + ".bias", out, 0);
  }
  void norm(const std::string& name, int64_t size) {
    vector(name + ".weight", size, 1);
    if (c_.norm == Norm::Layer) vector(name + ".bias", size, 0);
  }
  void layer(const std::string& at) {
    const double added = kDeviation / std::sqrt(2 * static_cast<double>(c_.layers));
    const int64_t wide = c_.heads * c_.head_dim, narrow = c_.kv_heads * c_.head_dim;
    norm(at + "attn_norm", c_.dim);
    if (kind_.joined) {
      linear(at + "attn_qkv", wide + 2 * narrow, c_.dim, true, kDeviation);
    } else {
      linear(at + "attn_q", wide, c_.dim, kind_.head_biases, kDeviation);
      linear(at + "attn_k", narrow, c_.dim, kind_.head_biases, kDeviation);
      linear(at + "attn_v", narrow, c_.dim, kind_.head_biases, kDeviation);
    }
    if (kind_.head_norms) norm(at + "attn_q_norm", c_.head_dim);
    if (kind_.head_norms) norm(at + "attn_k_norm", c_.head_dim);
    linear(at + "attn_output", c_.dim, wide, kind_.joined, added);
    norm(at + "ffn_norm", c_.dim);
    if (c_.gated) linear(at + "ffn_gate", c_.ffn, c_.dim, false, kDeviation);
    linear(at + "ffn_up", c_.ffn, c_.dim, kind_.joined, kDeviation);
    linear(at + "ffn_down", c_.dim, c_.ffn, kind_.joined, added);
  }

  const Config& c_;
  const Trainable& kind_;
  bool tied_;
  std::vector<NamedTensor> all_;
};

}  // namespace

std::span<const NewModelShape> new_model_shapes() { return kShapes; }

std::string config_json(const NewModel& model) {
  const Trainable* kind = find_trainable(model.config.family);
  JsonDetails details;
  details.tied = model.tied;
  details.attention_bias = kind != nullptr && kind->head_biases;
  if (!model.config.end_tokens.empty()) details.begin_token = model.config.end_tokens[0];
  return json_description(model.config, details) + "\n";
}

NewModel read_new_model(std::string_view json, std::string_view what) {
  NewModel model;
  model.config = read_config(json, what);
  const JsonTree tree(json, what, "llm.config");
  model.tied = tree.root()["tie_word_embeddings"].boolean_or(model.config.family == "gpt2");
  check(model, what);
  return model;
}

NewModel new_model(const std::string& what, int64_t vocabulary, std::optional<text::TokenId> end) {
  const auto* shape = std::ranges::find(kShapes, what, &NewModelShape::name);
  const bool named = shape != std::end(kShapes);
  if (!named && !what.ends_with(".json"))
    fail("llm.new", "there is no configuration {}: {}, or a FILE.json", quoted_name(what),
         known_shapes());
  NewModel model =
      named ? read_new_model(json_text(config_of(*shape, vocabulary), {.tied = true}), what)
            : read_new_model(MappedFile(what).text(), what);
  model.config.vocabulary = vocabulary;
  model.config.end_tokens.clear();
  if (end) model.config.end_tokens.push_back(*end);
  return model;
}

std::vector<NamedTensor> new_weights(const NewModel& model, uint64_t seed) {
  const DrawScope draws(seed);
  return WeightMaker(model).all();
}

}  // namespace weft::llm
