#include "weft/llm/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "weft/base/error.h"
#include "weft/io/quantise.h"

namespace weft::llm {

namespace {

constexpr RandomShape kShapes[] = {
    // name, family, layers, dim, heads, kv_heads, ffn, vocabulary, context, experts, used
    {"tiny", "llama", 2, 256, 4, 2, 512, 320, 512},
    {"tiny-qwen2", "qwen2", 2, 256, 4, 2, 512, 320, 512},
    {"tiny-qwen3", "qwen3", 2, 256, 4, 2, 512, 320, 512},
    {"tiny-gpt2", "gpt2", 2, 256, 4, 4, 1024, 320, 512},
    {"tiny-moe", "llama", 2, 256, 4, 2, 256, 320, 512, 8, 2},
    {"moe-8x100m", "llama", 8, 1024, 16, 4, 4096, 32000, 4096, 8, 2},
    {"moe-64x13m", "llama", 8, 1024, 16, 4, 512, 32000, 4096, 64, 8},
    {"llama-300m", "llama", 8, 1024, 16, 4, 8192, 32000, 4096},  // what a token of moe-8x100m takes
    {"llama-200m", "llama", 8, 1024, 16, 4, 4096, 32000, 4096},  // and of moe-64x13m
    {"llama-160m", "llama", 12, 768, 12, 12, 2048, 32000, 2048},
    {"llama-1b", "llama", 16, 2048, 32, 8, 8192, 32000, 4096},
    {"gpt2", "gpt2", 12, 768, 12, 12, 3072, 50257, 1024},
};

constexpr int64_t kPool = 4096;  // blocks, of which matrices are made

class Maker {
 public:
  Maker(const RandomShape& shape, Codec codec, uint64_t seed)
      : shape_(shape), codec_(codec), random_(seed) {
    const int64_t elements = row(codec).elements;
    if (shape.dim % elements != 0 || shape.ffn % elements != 0)
      fail("llm.random", "widths {} and {} are not whole blocks of {}, which have {} numbers",
           shape.dim, shape.ffn, name(codec), elements);
    std::vector<float> numbers(static_cast<size_t>(kPool * elements));
    // Of a width that neither lets activations vanish nor grow much.
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(shape.dim)));
    for (float& x : numbers) x = normal(random_);
    pool_ = quantise(numbers, codec, std::vector<int64_t>{kPool, elements});
  }

  void matrix(const std::string& name, std::vector<int64_t> shape) {
    const auto size = static_cast<size_t>(row(codec_).bytes);
    int64_t numbers = 1;
    for (const int64_t d : shape) numbers *= d;
    const auto blocks = static_cast<size_t>(numbers / row(codec_).elements);
    auto bytes = std::make_shared<std::vector<std::byte>>(blocks * size);
    for (size_t i = 0; i < blocks; ++i)
      std::memcpy(bytes->data() + i * size, pool_.data() + random_() % kPool * size, size);
    content_.tensors.push_back({name, codec_, std::move(shape), *bytes, bytes});
  }

  void vector(const std::string& name, int64_t size, float around) {
    std::normal_distribution<float> normal(around, 0.1F);
    auto bytes =
        std::make_shared<std::vector<std::byte>>(static_cast<size_t>(size) * sizeof(float));
    for (int64_t i = 0; i < size; ++i) {
      const float x = normal(random_);
      std::memcpy(bytes->data() + i * 4, &x, 4);
    }
    content_.tensors.push_back({name, Codec::F32, {size}, *bytes, bytes});
  }

  void linear(const std::string& name, int64_t out, int64_t in, bool bias) {
    matrix(name + ".weight", {out, in});
    if (bias) vector(name + ".bias", out, 0);
  }
  void norm(const std::string& name, int64_t size) {
    vector(name + ".weight", size, 1);
    if (gpt2()) vector(name + ".bias", size, 0);
  }
  bool gpt2() const { return shape_.family == "gpt2"; }

  void layer(const std::string& at) {
    const int64_t dim = shape_.dim, keys = dim / shape_.heads * shape_.kv_heads;
    norm(at + "attn_norm", dim);
    if (gpt2()) {
      linear(at + "attn_qkv", 3 * dim, dim, true);
    } else {
      const bool bias = shape_.family == "qwen2";
      linear(at + "attn_q", dim, dim, bias);
      linear(at + "attn_k", keys, dim, bias);
      linear(at + "attn_v", keys, dim, bias);
    }
    if (shape_.family == "qwen3")
      for (const char* one : {"attn_q_norm", "attn_k_norm"}) norm(at + one, dim / shape_.heads);
    linear(at + "attn_output", dim, dim, gpt2());
    norm(at + "ffn_norm", dim);
    if (shape_.experts > 0) return experts(at);
    if (!gpt2()) linear(at + "ffn_gate", shape_.ffn, dim, false);
    linear(at + "ffn_up", shape_.ffn, dim, gpt2());
    linear(at + "ffn_down", dim, shape_.ffn, gpt2());
  }

  void experts(const std::string& at) {
    const int64_t n = shape_.experts;
    matrix(at + "ffn_gate_inp.weight", {n, shape_.dim});
    matrix(at + "ffn_gate_exps.weight", {n, shape_.ffn, shape_.dim});
    matrix(at + "ffn_up_exps.weight", {n, shape_.ffn, shape_.dim});
    matrix(at + "ffn_down_exps.weight", {n, shape_.dim, shape_.ffn});
  }

  void tensors() {
    linear("token_embd", shape_.vocabulary, shape_.dim, false);
    if (gpt2()) linear("position_embd", shape_.context, shape_.dim, false);
    for (int64_t i = 0; i < shape_.layers; ++i) layer(strformat("blk.{}.", i));
    norm("output_norm", shape_.dim);
    linear("output", shape_.vocabulary, shape_.dim, false);
  }

  template <class T>
  void number(const std::string& key, T x) {
    content_.metadata.emplace_back(key, GgufValue::of_number(x));
  }

  void sizes() {
    const std::string family(shape_.family);
    const auto size = [&](const char* key, int64_t x) {
      number(family + "." + key, static_cast<uint32_t>(x));
    };
    content_.metadata.emplace_back("general.architecture", GgufValue::of(family));
    content_.metadata.emplace_back("general.name",
                                   GgufValue::of("random " + std::string(shape_.name)));
    size("block_count", shape_.layers);
    size("embedding_length", shape_.dim);
    size("attention.head_count", shape_.heads);
    size("attention.head_count_kv", shape_.kv_heads);
    size("feed_forward_length", shape_.ffn);
    size("context_length", shape_.context);
    size("vocab_size", shape_.vocabulary);
    if (shape_.experts > 0) {
      size("expert_count", shape_.experts);
      size("expert_used_count", shape_.used);
    }
    if (gpt2()) return number(family + ".attention.layer_norm_epsilon", 1e-5F);
    number(family + ".attention.layer_norm_rms_epsilon", 1e-5F);
    size("rope.dimension_count", shape_.dim / shape_.heads);
  }

  /// A sentencepiece vocabulary: three control tokens, all bytes, then words.
  void vocabulary() {
    enum : int32_t { kNormal = 1, kUnknown, kControl, kByte = 6 };
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types = {kUnknown, kControl, kControl};
    for (int i = 0; i < 256; ++i) tokens.push_back(strformat("<0x{:02X}>", i));
    types.resize(tokens.size(), kByte);
    if (shape_.vocabulary < static_cast<int64_t>(tokens.size()))
      fail("llm.random", "a vocabulary of {} has no room for all bytes", shape_.vocabulary);
    while (static_cast<int64_t>(tokens.size()) < shape_.vocabulary)
      tokens.push_back(strformat("\xe2\x96\x81word{}", tokens.size()));
    types.resize(tokens.size(), kNormal);
    std::vector<float> scores;
    for (size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<float>(i));
    const auto add = [&](const char* key, GgufValue value) {
      content_.metadata.emplace_back(std::string("tokenizer.ggml.") + key, std::move(value));
    };
    add("model", GgufValue::of("llama"));
    add("tokens", GgufValue::of_texts(tokens));
    add("scores", GgufValue::of_numbers(std::span<const float>(scores)));
    add("token_type", GgufValue::of_numbers(std::span<const int32_t>(types)));
    number("tokenizer.ggml.unknown_token_id", uint32_t{0});
    number("tokenizer.ggml.bos_token_id", uint32_t{1});
    number("tokenizer.ggml.eos_token_id", uint32_t{2});
  }

  GgufContent take() { return std::move(content_); }

 private:
  const RandomShape& shape_;
  Codec codec_;
  std::mt19937_64 random_;
  std::vector<std::byte> pool_;
  GgufContent content_;
};

}  // namespace

std::span<const RandomShape> random_shapes() { return kShapes; }

const RandomShape* find_random_shape(std::string_view name) {
  const auto* at = std::ranges::find(kShapes, name, &RandomShape::name);
  return at == std::end(kShapes) ? nullptr : at;
}

GgufContent random_model(const RandomShape& shape, Codec codec, uint64_t seed) {
  Maker maker(shape, codec, seed);
  maker.sizes();
  maker.vocabulary();
  maker.tensors();
  return maker.take();
}

}  // namespace weft::llm
