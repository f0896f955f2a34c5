#include "weft/llm/config.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/io/host_array.h"
#include "weft/llm/config_source.h"
#include "weft/llm/families.h"
#include "weft/llm/rope.h"

namespace weft::llm {

namespace {

// Bounds far beyond any model that there is: what lies outside is damage.
constexpr int64_t kMostLayers = 4096, kMostHeads = 65536, kMostSize = int64_t{1} << 24;
constexpr int64_t kMostContext = int64_t{1} << 30, kMostExperts = 65536;

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
constexpr NamedActivation kActivations[] = {
    {"silu", Activation::Silu},          {"swish", Activation::Silu},
    {"swiglu", Activation::Silu},        {"gelu", Activation::Gelu},
    {"gelu_new", Activation::GeluTanh},  {"gelu_pytorch_tanh", Activation::GeluTanh},
    {"gelu_fast", Activation::GeluTanh}, {"relu", Activation::Relu},
    {"relu2", Activation::Relu2},
};

void read_sizes(Config& c, ConfigSource& s) {
  c.layers = s.integer({"block_count", "num_hidden_layers|n_layer"}, 1, kMostLayers, {});
  c.dim = s.integer({"embedding_length", "hidden_size|n_embd"}, 1, kMostSize, {});
  c.heads = s.integer({"attention.head_count", "num_attention_heads|n_head"}, 1, kMostHeads, {});
  c.kv_heads =
      s.integer({"attention.head_count_kv", "num_key_value_heads"}, 1, kMostHeads, c.heads);
  c.head_dim = s.integer({"attention.key_length", "head_dim"}, 1, kMostSize,
                         std::max<int64_t>(1, c.dim / c.heads));
  c.value_dim = s.integer({"attention.value_length", "v_head_dim"}, 1, kMostSize, c.head_dim);
  c.ffn = s.integer({"feed_forward_length", "intermediate_size|n_inner"}, 0, kMostSize, 0);
  c.context =
      s.integer({"context_length", "max_position_embeddings|n_positions"}, 1, kMostContext, {});
  c.norm_epsilon = s.real(
      {c.norm == Norm::Rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
       "rms_norm_eps|layer_norm_epsilon|layer_norm_eps|norm_eps|norm_epsilon"},
      0, c.norm_epsilon);
  c.attention_cap = s.real({"attn_logit_softcapping", "attn_logit_softcapping"}, 0, 0);
  c.logit_cap = s.real({"final_logit_softcapping", "final_logit_softcapping"}, 0, 0);
}

void read_vocabulary(Config& c, ConfigSource& s) {
  const size_t tokens = s.texts({".tokenizer.ggml.tokens", ""}).size();
  const std::optional<int64_t> listed =
      tokens == 0 ? std::nullopt : std::optional(static_cast<int64_t>(tokens));
  c.vocabulary = s.integer({"vocab_size", "vocab_size"}, 1, kMostSize, listed);
  c.own_output = !s.boolean({"", "tie_word_embeddings"}).value_or(true);
  const std::vector<std::string> classes = s.texts({"", "architectures"});
  c.embeds = !classes.empty() && classes[0].ends_with("Model");  // not "..ForCausalLM"
  for (const double id : s.numbers({".tokenizer.ggml.eos_token_id", "eos_token_id"}))
    if (id >= 0 && id < static_cast<double>(c.vocabulary))
      c.end_tokens.push_back(static_cast<int32_t>(id));
  for (const double id : s.numbers({".tokenizer.ggml.eot_token_id", ""}))
    if (id >= 0 && id < static_cast<double>(c.vocabulary))
      c.end_tokens.push_back(static_cast<int32_t>(id));
}

void read_window(Config& c, ConfigSource& s) {
  c.window = s.integer({"attention.sliding_window", "sliding_window"}, 0, kMostContext, 0);
  const std::vector<double> pattern = s.numbers({"attention.sliding_window_pattern", ""});
  if (pattern.size() == static_cast<size_t>(c.layers))
    for (const double local : pattern) c.local.push_back(local != 0);
  const std::vector<std::string> types = s.texts({"", "layer_types"});
  if (types.empty()) return;
  if (types.size() != static_cast<size_t>(c.layers))
    return s.problem(strformat("layer_types lists {} layers of {}", types.size(), c.layers));
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention")
      s.problem("layer_types has " + quoted_name(type) + ", which is not supported");
    c.local.push_back(type == "sliding_attention");
  }
}

/// Of feed-forward parts, which families are known by; gpt-oss's has no name of its own.
void read_activation(Config& c, ConfigSource& s) {
  const auto given = s.text({"", "hidden_activation|hidden_act|activation_function"});
  if (!given || c.activation == Activation::GptOss) return;
  const auto* found = std::ranges::find(kActivations, *given, &NamedActivation::name);
  if (found == std::end(kActivations))
    return s.problem("the activation " + quoted_name(*given) + " is not supported");
  c.activation = found->activation;
}

/// The numbers are those of llama.h (enum llama_pooling_type).
void read_pooling(Config& c, ConfigSource& s) {
  const int64_t type = s.integer({"pooling_type", ""}, 0, 4, 1);
  if (type == 4) s.problem("pooling_type is 4: models that rank are not supported");
  c.pooling = type == 2 ? Pooling::First : type == 3 ? Pooling::Last : Pooling::Mean;
}

/// All but the first ones (DeepSeek); every so many-th one, but those of a list (Qwen).
void read_expert_layers(Config& c, ConfigSource& s) {
  const int64_t dense =
      s.integer({"leading_dense_block_count", "first_k_dense_replace"}, 0, c.layers, 0);
  const int64_t step = s.integer({"", "decoder_sparse_step"}, 1, kMostLayers, 1);
  const std::vector<double> without = s.numbers({"", "mlp_only_layers"});
  const std::vector<double> pattern = s.numbers({"expert_layer_pattern", ""});
  const bool given = pattern.size() == static_cast<size_t>(c.layers);
  for (int64_t i = 0; i < c.layers; ++i)
    c.experts.in_layer.push_back(i >= dense && (i + 1) % step == 0 &&
                                 std::ranges::count(without, i) == 0 &&
                                 (!given || pattern[static_cast<size_t>(i)] != 0));
  if (std::ranges::count(c.experts.in_layer, false) == 0) c.experts.in_layer.clear();
}

void read_experts(Config& c, ConfigSource& s) {
  Experts& e = c.experts;
  e.count = s.integer({"expert_count", "num_local_experts|num_experts|n_routed_experts"}, 0,
                      kMostExperts, 0);
  if (e.count == 0) return;
  e.used = s.integer({"expert_used_count", "num_experts_per_tok"}, 1, e.count, {});
  e.ffn = s.integer({"expert_feed_forward_length", "moe_intermediate_size"}, 1, kMostSize, c.ffn);
  e.shared_ffn = s.integer({"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
                           0, kMostSize, 0);
  read_expert_layers(c, s);
}

// ---- positions

/// What config.json says of rotary positions lies where transformers 5 has it, where models with
/// local layers have that of the others, or in the old place; GGUF files do not scale local layers.
class RopeKeys {
 public:
  explicit RopeKeys(bool local) : local_(local) {}
  /// Until the next one. `besides`: further alternatives.
  Key operator()(std::string_view gguf, std::string_view name, std::string_view besides = "") {
    json_ = strformat("rope_parameters.{}{}", local_ ? "sliding_attention." : "", name);
    if (!local_)
      json_ += strformat("|rope_parameters.full_attention.{0}|rope_scaling.{0}{1}", name, besides);
    return {gguf, json_};
  }

 private:
  bool local_;
  std::string json_;
};

struct NamedScaling {
  std::string_view name;
  Rope::Scaling scaling;
};
constexpr NamedScaling kScalings[] = {
    {"none", Rope::Scaling::None},
    {"default", Rope::Scaling::None},
    {"linear", Rope::Scaling::Linear},
    {"dynamic", Rope::Scaling::Dynamic},
    {"llama3", Rope::Scaling::Llama3},
    {"yarn", Rope::Scaling::Yarn},
    {"longrope", Rope::Scaling::LongRope},
    {"su", Rope::Scaling::LongRope},
    {"proportional", Rope::Scaling::Proportional},
};

/// And LongRope's attention_factor.
void read_yarn(Rope& r, RopeKeys& key, ConfigSource& s) {
  r.fast = s.real(key("rope.scaling.yarn_beta_fast", "beta_fast"), 1e-6, 32);
  r.slow = s.real(key("rope.scaling.yarn_beta_slow", "beta_slow"), 1e-6, 1);
  r.whole_bounds = s.boolean(key("rope.scaling.yarn_truncate", "truncate")).value_or(true);
  r.attention_factor = s.real(key("rope.scaling.attn_factor", "attention_factor"), 0, 0);
  // llama.cpp takes it times what YaRN has for the factor.
  const double yarn = s.real({"rope.scaling.yarn_attn_factor", ""}, 0, 0);
  if (yarn != 0) r.attention_factor = yarn * yarn_attention_factor(r.factor);
  r.scale_log = s.real(key("", "mscale"), 0, 0);
  // llama.cpp's converter writes a tenth of it.
  const double log_multiplier = s.real({"rope.scaling.yarn_log_multiplier", ""}, 0, 0);
  r.scale_log_all = s.real(key("", "mscale_all_dim"), 0, 10 * log_multiplier);
}

void read_scaling(const Config& c, Rope& r, RopeKeys& key, ConfigSource& s) {
  const std::string type =
      s.text(key("rope.scaling.type", "rope_type", "|rope_scaling.type")).value_or("none");
  const auto* found = std::ranges::find(kScalings, type, &NamedScaling::name);
  if (found == std::end(kScalings))
    return s.problem("rope scaling " + quoted_name(type) + " is not supported");
  r.scaling = found->scaling;
  r.trained_context =
      s.integer(key("rope.scaling.original_context_length", "original_max_position_embeddings",
                    "|original_max_position_embeddings"),
                1, kMostContext, c.context);
  const double ratio = static_cast<double>(c.context) / static_cast<double>(r.trained_context);
  const bool no_ratio =
      r.scaling == Rope::Scaling::Linear || r.scaling == Rope::Scaling::Proportional;
  r.factor = s.real(key("rope.scaling.factor", "factor"), 1e-6, no_ratio ? 1 : ratio);
  r.low_frequency = s.real(key("", "low_freq_factor"), 1e-6, 1);
  r.high_frequency = s.real(key("", "high_freq_factor"), 1e-6, 4);
  read_yarn(r, key, s);
}

/// Those behind `part` of a head do not turn, and the others are what they are in whole heads.
std::vector<double> proportional_divisors(const Rope& r, double part) {
  std::vector<double> divisors;
  const auto turned = static_cast<int64_t>(part * static_cast<double>(r.size) / 2);
  for (int64_t i = 0; i < r.size / 2; ++i) divisors.push_back(i < turned ? 1 : kStill);
  return divisors;
}

void read_divisors(Rope& r, double part, RopeKeys& key, ConfigSource& s) {
  if (s.is_gguf()) {
    r.divisors = s.tensor("rope_freqs.weight");
    if (r.scaling == Rope::Scaling::LongRope || r.divisors.empty()) {
      const std::vector<double> shorter = s.tensor("rope_factors_short.weight");
      if (!shorter.empty()) r.divisors = shorter;
      r.long_divisors = s.tensor("rope_factors_long.weight");
      if (!r.long_divisors.empty()) r.scaling = Rope::Scaling::LongRope;
    }
  } else if (r.scaling == Rope::Scaling::LongRope) {
    r.divisors = s.numbers(key("", "short_factor"));
    r.long_divisors = s.numbers(key("", "long_factor"));
  } else if (r.scaling == Rope::Scaling::Proportional) {
    r.divisors = proportional_divisors(r, part);
  }
}

void read_rope(const Family& family, Config& c, ConfigSource& s) {
  RopeKeys key(false);
  Rope& r = c.rope;
  const bool heeded = family.part_turned != 0;
  const double part = std::min(s.real(key("", "partial_rotary_factor", "|partial_rotary_factor"), 0,
                                      heeded ? family.part_turned : 1),
                               1.0);
  r.base = s.real(key("rope.freq_base", "rope_theta", "|rope_theta"), 1,
                  s.is_gguf() ? 10000 : family.rope_base);
  read_scaling(c, r, key, s);
  // transformers turns whole heads of most families, whatever config.json says.
  const double turned = heeded ? part : 1;
  r.size = s.integer({"rope.dimension_count", ""}, 2, kMostSize,
                     static_cast<int64_t>(static_cast<double>(c.head_dim) * turned));
  using Scaling = Rope::Scaling;
  if (part != turned && r.scaling != Scaling::None && r.scaling != Scaling::Proportional)
    s.problem(
        "a partial_rotary_factor is not supported beside a scaling: the family turns whole heads");
  read_divisors(r, part, key, s);
  // Such a model says what it was trained with, and reaches further.
  if (r.scaling == Scaling::Dynamic && r.factor > 1)
    c.context = static_cast<int64_t>(
        std::min(static_cast<double>(r.trained_context) * r.factor, double{kMostContext}));
}

// ---- what fits together

void check_rope(const Config& c, const Rope& r, ConfigSource& s) {
  if (r.size % 2 != 0 || r.size > c.head_dim)
    s.problem(strformat("{} of a head's {} numbers are turned: an even number of them", r.size,
                        c.head_dim));
  const auto half = static_cast<size_t>(r.size / 2);
  for (const auto* list : {&r.divisors, &r.long_divisors}) {
    if (!list->empty() && list->size() != half)
      s.problem(strformat("{} divisors of {} rotary frequencies", list->size(), half));
    for (const double x : *list)
      if (!(std::isfinite(x) && x > 0))
        return s.problem("a divisor of a rotary frequency is not above 0");
  }
  if (r.scaling == Rope::Scaling::LongRope && r.long_divisors.empty())
    s.problem("longrope scaling without its factors");
}

void check_groups(const Experts& e, ConfigSource& s) {
  if (e.groups == 1) return;
  const int64_t size = e.count / e.groups;
  if (e.count % e.groups != 0 || e.used_groups > e.groups || e.used > e.used_groups * size ||
      e.group_best > size)
    s.problem(
        strformat("{} of {} experts from {} of {} groups: groups are equally large, and those "
                  "used have enough experts",
                  e.used, e.count, e.used_groups, e.groups));
}

void check(const Config& c, ConfigSource& s) {
  if (c.kv_heads > c.heads || c.heads % c.kv_heads != 0)
    s.problem(strformat("{} heads with {} heads of keys: the one is a multiple of the other",
                        c.heads, c.kv_heads));
  if (c.ffn == 0 && (c.experts.count == 0 || !c.experts.in_layer.empty()))
    s.problem("the width of the feed-forward part is missing");
  if (c.experts.count > 0 && c.experts.ffn == 0) s.problem("the width of an expert is missing");
  if (c.latent.kv_rank > 0 && c.latent.plain < 1)
    s.problem("heads with latent keys have no part without positions");
  check_rope(c, c.rope, s);
  check_rope(c, c.local_rope, s);
  check_groups(c.experts, s);
}

/// Of a folder's formats: of the others weights would be taken without their scales. What products
/// multiply with is as exact as they are, whatever else a server rounds (activation_scheme).
void read_packing(Config& c, ConfigSource& s) {
  const auto method = s.text({"", "quantization_config.quant_method"});
  if (!method || *method == "mxfp4") return;
  const std::string format = s.text({"", "quantization_config.format"}).value_or("");
  if (*method == "fp8" || *method == "fbgemm_fp8" ||
      (*method == "compressed-tensors" && format == "float-quantized")) {
    const std::vector<double> block = s.numbers({"", "quantization_config.weight_block_size"});
    if (block.empty()) return;
    if (block.size() != 2 || !(block[0] >= 1 && block[0] <= kMostSize) ||
        !(block[1] >= 1 && block[1] <= kMostSize))
      return s.problem("quantization_config.weight_block_size is not two sizes");
    c.scale_block = {static_cast<int64_t>(block[0]), static_cast<int64_t>(block[1])};
    return;
  }
  s.problem(
      strformat("its weights are packed by {}{}, of which weft reads none but fp8 and mxfp4: take "
                "the model that is not packed, or a GGUF file",
                quoted_name(*method), format.empty() ? "" : " (" + quoted_name(format) + ")"));
}

Config read(ConfigSource& s) {
  const Family* family = find_family(s.family(), s.is_gguf());
  if (family == nullptr) {
    std::string known;
    for (const Family& f : families()) known += (known.empty() ? "" : ", ") + std::string(f.name);
    fail("llm.family", "the model is a {}, which weft does not know: {}", quoted_name(s.family()),
         known);
  }
  Config c;
  c.family = family->name;
  c.norm = family->norm;
  if (!s.is_gguf()) c.norm_epsilon = family->epsilon;
  c.activation = family->activation;
  c.rope.neighbours = family->pairs == Pairs::Neighbours ||
                      (family->pairs == Pairs::NeighboursInGguf && s.is_gguf());
  c.name = s.text({".general.name", "_name_or_path"}).value_or("");
  read_sizes(c, s);
  read_activation(c, s);
  read_vocabulary(c, s);
  read_window(c, s);
  read_pooling(c, s);
  read_experts(c, s);
  read_rope(*family, c, s);
  if (family->describe != nullptr) family->describe(c, s);
  if (!c.encoder && !s.boolean({"attention.causal", ""}).value_or(true))
    s.problem("tokens that see those behind them (attention.causal) are not supported");
  read_packing(c, s);
  check(c, s);
  if (s.problems().empty()) return c;
  std::string all;
  for (const std::string& problem : s.problems()) all += "\n  " + problem;
  fail("llm.config", "a {} cannot be made of what the file says:{}", c.family, all);
}

}  // namespace

double Config::scale_of_scores() const {
  return attention_scale != 0 ? attention_scale : 1 / std::sqrt(static_cast<double>(head_dim));
}

void read_local_rope(Config& c, ConfigSource& s) {
  RopeKeys key(true);
  Rope& r = c.local_rope;
  r.size = c.rope.size;
  r.neighbours = c.rope.neighbours;
  r.base = s.real(
      {"rope.freq_base_swa", "rope_parameters.sliding_attention.rope_theta|rope_local_base_freq"},
      1, 10000);
  if (s.is_gguf()) return;
  read_scaling(c, r, key, s);
  read_divisors(r, std::min(s.real(key("", "partial_rotary_factor"), 0, 1), 1.0), key, s);
}

Config read_config(const GgufContent& content) {
  GgufSource source(content);
  return read(source);
}

Config read_config(std::string_view json, std::string_view what) {
  const JsonTree tree(json, what, "llm.config");
  JsonSource source(tree);
  return read(source);
}

}  // namespace weft::llm
