#include "weft/llm/config_write.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/llm/config_sink.h"
#include "weft/llm/families.h"
#include "weft/llm/rope.h"

namespace weft::llm {

namespace {

bool any_of(const Config& c, std::initializer_list<std::string_view> families) {
  return std::ranges::find(families, c.family) != families.end();
}

/// Readers have defaults for gemma 2; no cap is null in config.json, and 0 in GGUF files.
void write_cap(const char* key, double cap, const Config& c, ConfigSink& s) {
  if (cap > 0) return s.real({key, key}, cap);
  if (c.family != "gemma2") return;
  s.real({key, ""}, 0);
  s.nothing({"", key});
}

/// Where it is not the family's, which GGUF files cannot say.
void write_activation(const Config& c, ConfigSink& s) {
  for (const Family& f : families())
    if (f.name == c.family && f.activation == c.activation) return;
  const char* key = c.family == "gpt2"                ? "activation_function"
                    : any_of(c, {"gemma2", "gemma3"}) ? "hidden_activation"
                                                      : "hidden_act";
  s.text({"", key}, c.activation == Activation::Silu    ? "silu"
                    : c.activation == Activation::Gelu  ? "gelu"
                    : c.activation == Activation::Relu  ? "relu"
                    : c.activation == Activation::Relu2 ? "relu2"
                                                        : "gelu_pytorch_tanh");
}

void write_sizes(const Config& c, ConfigSink& s) {
  const bool gpt2 = c.family == "gpt2", latent = c.latent.kv_rank > 0;
  const bool only_experts = any_of(c, {"mixtral", "gpt-oss", "olmoe", "phimoe"});
  const auto key = [&](const char* gguf, const char* usual, const char* gpt2s) {
    return Key{gguf, gpt2 ? gpt2s : usual};
  };
  s.integer(key("block_count", "num_hidden_layers", "n_layer"), c.layers);
  s.integer(key("embedding_length", "hidden_size", "n_embd"), c.dim);
  // Dynamic scaling reaches beyond what its files say.
  s.integer(key("context_length", "max_position_embeddings", "n_positions"),
            c.rope.scaling == Rope::Scaling::Dynamic ? c.rope.trained_context : c.context);
  s.integer({"vocab_size", "vocab_size"}, c.vocabulary);
  s.integer(key("attention.head_count", "num_attention_heads", "n_head"), c.heads);
  const bool plain_heads = gpt2 || c.encoder;  // of the width, and as many of keys
  if (!c.encoder) s.integer(key("attention.head_count_kv", "num_key_value_heads", ""), c.kv_heads);
  if (!plain_heads) s.integer({"attention.key_length", latent ? "" : "head_dim"}, c.head_dim);
  if (!plain_heads) s.integer({"attention.value_length", latent ? "v_head_dim" : ""}, c.value_dim);
  if (c.encoder) s.boolean({"attention.causal", ""}, false);
  s.integer(key("", "intermediate_size", "n_inner"), only_experts ? c.experts.ffn : c.ffn);
  s.integer({"feed_forward_length", ""}, c.ffn);
  s.real(c.norm == Norm::Rms || c.family == "phimoe"
             ? Key{"attention.layer_norm_rms_epsilon", "rms_norm_eps"}
         : gpt2                     ? Key{"attention.layer_norm_epsilon", "layer_norm_epsilon"}
         : c.family == "nemotron"   ? Key{"attention.layer_norm_epsilon", "norm_eps"}
         : c.family == "starcoder2" ? Key{"attention.layer_norm_epsilon", "norm_epsilon"}
                                    : Key{"attention.layer_norm_epsilon", "layer_norm_eps"},
         c.norm_epsilon);
  write_cap("attn_logit_softcapping", c.attention_cap, c, s);
  write_cap("final_logit_softcapping", c.logit_cap, c, s);
  write_activation(c, s);
}

void write_scale(const Config& c, ConfigSink& s) {
  if (c.scale_by_layer)
    s.boolean({"attention.scale_by_layer", "scale_attn_by_inverse_layer_idx"}, true);
  if (c.clip > 0) s.real({"attention.clamp_kqv", "clip_qkv"}, c.clip);
  if (c.family == "gpt2" && c.attention_scale != 0) {
    s.real({"attention.scale", ""}, c.attention_scale);
    s.boolean({"", "scale_attn_weights"}, false);
  }
  if (c.family == "granite") {
    s.real({"embedding_scale", "embedding_multiplier"}, c.embedding_scale);
    s.real({"residual_scale", "residual_multiplier"}, c.residual_scale);
    s.real({"attention.scale", "attention_multiplier"}, c.scale_of_scores());
    s.real({"logit_scale", "logits_scaling"}, c.logit_divisor);
  }
  if (c.parallel) s.real({"logit_scale", "logit_scale"}, 1 / c.logit_divisor);
  if (!any_of(c, {"gemma2", "gemma3"})) return;
  const double size = 1 / (c.attention_scale * c.attention_scale);
  const double whole = std::round(size);
  if (std::abs(size - whole) < 1e-4 * whole)
    s.integer({"", "query_pre_attn_scalar"}, static_cast<int64_t>(whole));
  else
    s.real({"", "query_pre_attn_scalar"}, size);
  s.real({"attention.scale", ""}, c.attention_scale);
}

void write_window(const Config& c, ConfigSink& s) {
  if (c.window == 0) return;
  s.integer({"attention.sliding_window", "sliding_window"}, c.window);
  if (any_of(c, {"llama", "mistral", "mixtral", "phi3", "phimoe", "starcoder2"}))
    return;  // in all layers
  s.booleans({"attention.sliding_window_pattern", ""}, c.local);
  std::vector<std::string> types;
  for (const bool local : c.local)
    types.emplace_back(local ? "sliding_attention" : "full_attention");
  s.texts({"", "layer_types"}, types);
  if (c.family.starts_with("qwen") || c.family == "smollm3")
    s.boolean({"", "use_sliding_window"}, true);
}

void write_pooling(const Config& c, ConfigSink& s) {
  if (c.pooling == Pooling::Mean && !c.encoder) return;
  s.integer({"pooling_type", ""}, c.pooling == Pooling::Mean    ? 1
                                  : c.pooling == Pooling::First ? 2
                                                                : 3);
}

/// GGUF files have a key for DeepSeek's only.
void write_expert_layers(const Experts& e, bool first_ones, ConfigSink& s) {
  if (first_ones)
    return s.integer({"leading_dense_block_count", "first_k_dense_replace"},
                     std::ranges::find(e.in_layer, true) - e.in_layer.begin());
  if (e.in_layer.empty()) return;
  std::vector<double> without;
  for (size_t i = 0; i < e.in_layer.size(); ++i)
    if (!e.in_layer[i]) without.push_back(static_cast<double>(i));
  s.numbers({"", "mlp_only_layers"}, without);
  s.booleans({"expert_layer_pattern", ""}, e.in_layer);
}

void write_experts(const Config& c, ConfigSink& s) {
  const Experts& e = c.experts;
  if (e.count == 0) return;
  const bool deepseek = c.family.starts_with("deepseek"),
             plain = any_of(c, {"mixtral", "gpt-oss", "llama", "phimoe"});
  s.integer({"expert_count", deepseek ? "n_routed_experts"
                             : plain  ? "num_local_experts"
                                      : "num_experts"},
            e.count);
  s.integer({"expert_used_count", "num_experts_per_tok"}, e.used);
  s.integer(
      {"expert_feed_forward_length", plain || c.family == "olmoe" ? "" : "moe_intermediate_size"},
      e.ffn);
  if (!plain) s.boolean({"expert_weights_norm", "norm_topk_prob"}, e.normalised);
  if (e.shared_ffn > 0 && !deepseek)
    s.integer({"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
              e.shared_ffn);
  write_expert_layers(e, deepseek, s);
  if (e.gate == Experts::Gate::SparseMixer) s.real({"", "router_jitter_noise"}, e.jitter);
  if (!deepseek) return;
  s.integer({"expert_shared_count", "n_shared_experts"}, e.shared_ffn / e.ffn);
  s.real({"expert_weights_scale", "routed_scaling_factor"}, e.scale);
  s.integer({"expert_gating_func", ""}, e.gate == Experts::Gate::Sigmoid ? 2 : 1);
  s.integer({"expert_group_count", "n_group"}, e.groups);
  s.integer({"expert_group_used_count", "topk_group"}, e.used_groups);
  if (c.family == "deepseek2")
    s.text({"", "topk_method"}, e.groups > 1 ? "group_limited_greedy" : "greedy");
}

void write_latent(const Config& c, ConfigSink& s) {
  if (c.latent.kv_rank == 0) return;
  s.integer({"attention.kv_lora_rank", "kv_lora_rank"}, c.latent.kv_rank);
  if (c.latent.q_rank > 0)
    s.integer({"attention.q_lora_rank", "q_lora_rank"}, c.latent.q_rank);
  else
    s.nothing({"", "q_lora_rank"});
  s.integer({"", "qk_rope_head_dim"}, c.rope.size);
  s.integer({"", "qk_nope_head_dim"}, c.latent.plain);
  if (!c.rope.neighbours) s.boolean({"", "rope_interleave"}, false);
}

// ---- positions

void write_yarn(const Config& c, ConfigSink& s) {
  const Rope& r = c.rope;
  s.real({"rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"}, r.fast);
  s.real({"rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow"}, r.slow);
  if (!r.whole_bounds) s.boolean({"rope.scaling.yarn_truncate", "rope_scaling.truncate"}, false);
  if (r.scale_log_all != 0) {
    s.real({"rope.scaling.yarn_log_multiplier", ""}, 0.1 * r.scale_log_all);
    s.real({"", "rope_scaling.mscale_all_dim"}, r.scale_log_all);
  }
  if (r.scale_log != 0) s.real({"", "rope_scaling.mscale"}, r.scale_log);
  // What readers take where the file does not say it.
  const double usual = yarn_attention_factor(r.factor);
  const double factor = rope_attention_factor(r);
  if (std::abs(factor - (r.scale_log_all != 0 ? 1 : usual)) > 1e-6)
    s.real({"rope.scaling.yarn_attn_factor", ""}, factor / usual);
  if (r.attention_factor != 0) s.real({"", "rope_scaling.attention_factor"}, r.attention_factor);
}

void write_longrope(const Rope& r, ConfigSink& s) {
  s.real({"rope.scaling.attn_factor", "rope_scaling.attention_factor"}, rope_attention_factor(r));
  s.numbers({"", "rope_scaling.short_factor"}, r.divisors);
  s.numbers({"", "rope_scaling.long_factor"}, r.long_divisors);
  s.tensor("rope_factors_short.weight", {r.divisors.begin(), r.divisors.end()});
  s.tensor("rope_factors_long.weight", {r.long_divisors.begin(), r.long_divisors.end()});
}

/// GGUF files have Llama 3's frequencies as divisors of those without scaling.
void write_llama3(const Rope& r, ConfigSink& s) {
  Rope plain = r;
  plain.scaling = Rope::Scaling::None;
  const std::vector<float> before = rope_frequencies(plain), after = rope_frequencies(r);
  std::vector<float> divisors;
  for (size_t i = 0; i < after.size(); ++i) divisors.push_back(before[i] / after[i]);
  s.tensor("rope_freqs.weight", divisors);
  s.real({"", "rope_scaling.low_freq_factor"}, r.low_frequency);
  s.real({"", "rope_scaling.high_freq_factor"}, r.high_frequency);
}

/// GGUF files have its frequencies as divisors, too.
void write_proportional(const Rope& r, ConfigSink& s) {
  const auto turned = std::ranges::count_if(r.divisors, [](double d) { return !is_still(d); });
  s.real({"", "rope_scaling.partial_rotary_factor"},
         static_cast<double>(turned) / static_cast<double>(r.divisors.size()));
  std::vector<float> divisors;
  for (const double d : r.divisors) divisors.push_back(static_cast<float>(d * r.factor));
  s.tensor("rope_freqs.weight", divisors);
}

void write_scaling(const Config& c, ConfigSink& s) {
  using Scaling = Rope::Scaling;
  const Rope& r = c.rope;
  // transformers' gpt-oss is scaled where its config.json says nothing.
  if (r.scaling == Scaling::None && c.family == "gpt-oss")
    s.text({"", "rope_scaling.rope_type"}, "default");
  if (r.scaling == Scaling::None) return;
  constexpr const char* kNames[] = {"none", "linear",   "dynamic",     "llama3",
                                    "yarn", "longrope", "proportional"};
  const char* name = kNames[static_cast<size_t>(r.scaling)];
  // GGUF files say the one otherwise, and the other not at all.
  const bool proportional = r.scaling == Scaling::Proportional;
  const bool of_json =
      r.scaling == Scaling::Llama3 || r.scaling == Scaling::Dynamic || proportional;
  s.text({of_json ? "" : "rope.scaling.type", "rope_scaling.rope_type"}, name);
  // Readers before transformers 4.43 want it under this name.
  s.text({"", "rope_scaling.type"}, name);
  s.real({of_json ? "" : "rope.scaling.factor",
          r.scaling == Scaling::LongRope ? "" : "rope_scaling.factor"},
         r.factor);
  if (c.family == "phimoe")
    for (const char* key : {"rope_scaling.short_mscale", "rope_scaling.long_mscale"})
      s.real({"", key}, rope_attention_factor(r));
  if (proportional) write_proportional(r, s);
  if (r.scaling == Scaling::Linear || r.scaling == Scaling::Dynamic || proportional) return;
  s.integer({"rope.scaling.original_context_length",
             r.scaling == Scaling::LongRope ? "original_max_position_embeddings"
                                            : "rope_scaling.original_max_position_embeddings"},
            r.trained_context);
  if (r.scaling == Scaling::Yarn) write_yarn(c, s);
  if (r.scaling == Scaling::LongRope) write_longrope(r, s);
  if (r.scaling == Scaling::Llama3) write_llama3(r, s);
}

std::vector<bool> flipped(std::vector<bool> x) {
  x.flip();
  return x;
}

void write_rope(const Config& c, ConfigSink& s) {
  const Rope& r = c.rope;
  if (r.size == 0) return;
  s.integer({"rope.dimension_count", ""}, r.size);
  if (!c.unplaced.empty() && c.unplaced != flipped(c.local)) {
    const std::vector<bool> placed = flipped(c.unplaced);
    s.booleans({"rope.layer_pattern", ""}, placed);
    s.numbers({"", "no_rope_layers"}, std::vector<double>(placed.begin(), placed.end()));
  }
  s.real({"rope.freq_base", "rope_theta"}, r.base);
  if (c.latent.kv_rank == 0 && r.size != c.head_dim)
    s.real({"", "partial_rotary_factor"},
           static_cast<double>(r.size) / static_cast<double>(c.head_dim));
  if (c.local_rope.size > 0)
    s.real({"rope.freq_base_swa", "rope_local_base_freq"}, c.local_rope.base);
  write_scaling(c, s);
  if (r.scaling == Rope::Scaling::None && !r.divisors.empty())
    s.tensor("rope_freqs.weight", {r.divisors.begin(), r.divisors.end()});
}

void write_all(const Config& c, ConfigSink& s) {
  write_sizes(c, s);
  write_scale(c, s);
  write_window(c, s);
  write_pooling(c, s);
  write_experts(c, s);
  write_latent(c, s);
  write_rope(c, s);
}

/// "gguf" or "json" of the family's first name for it.
std::string first_name(std::string_view family, std::string_view Family::* kind) {
  for (const Family& f : families())
    if (f.name == family) return std::string((f.*kind).substr(0, (f.*kind).find('|')));
  internal_error("llm", "the family {} has no row", family);
}

/// Models' classes in transformers; of the others it is the model_type in CamelCase.
std::string class_name(std::string_view type) {
  if (type == "gpt2") return "GPT2LMHeadModel";
  if (type == "gemma3_text") return "Gemma3ForCausalLM";
  if (type == "smollm3") return "SmolLM3ForCausalLM";
  if (type == "ernie4_5") return "Ernie4_5ForCausalLM";
  if (type == "stablelm") return "StableLmForCausalLM";
  if (type == "bert") return "BertModel";
  if (type == "nomic_bert") return "NomicBertModel";
  std::string name;
  bool upper = true;
  for (const char c : type) {
    if (c != '_') name += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = c == '_';
  }
  return name + "ForCausalLM";
}

[[noreturn]] void refuse(const char* what, const std::string& lost) {
  fail("llm.convert", "{} cannot say all of this model, which would compute something else:{}",
       what, lost);
}

/// Where some frequencies do not turn.
void name_proportional(Rope& r) {
  r.scaling = Rope::Scaling::Proportional;
  r.factor = r.divisors.front();
  for (double& d : r.divisors) d = is_still(d) ? kStill : 1;
}

/// Proportional frequencies and Llama 3's scaling, which GGUF files have as divisors only: with the
/// numbers that all models with the latter have the same frequencies must come out.
Config with_named_scaling(const Config& c) {
  if (c.rope.divisors.empty() || c.rope.scaling != Rope::Scaling::None) return c;
  Config named = c;
  Rope& r = named.rope;
  if (is_still(r.divisors.back())) {
    name_proportional(r);
    return named;
  }
  r.scaling = Rope::Scaling::Llama3;
  r.factor = r.divisors.back();
  if (r.trained_context == c.context) r.trained_context = 8192;
  r.divisors.clear();
  return named;
}

}  // namespace

std::string gguf_architecture(const Config& c) {
  const std::string_view family = c.family == "deepseek3" ? "deepseek2"
                                  : c.family == "roberta" ? "bert"
                                  : c.family == "olmo3"   ? "olmo2"
                                                          : std::string_view(c.family);
  return first_name(family, &Family::gguf);
}

std::string json_family(const Config& c) {
  if (c.family == "deepseek2" && c.experts.gate == Experts::Gate::Sigmoid) return "deepseek3";
  if (c.family == "olmo2" && c.window > 0) return "olmo3";
  if (c.family != "llama") return c.family;
  if (c.experts.count > 0) return "mixtral";
  return c.window > 0 ? "mistral" : "llama";
}

GgufDescription gguf_description(const Config& c) {
  GgufSink sink(gguf_architecture(c));
  write_all(c, sink);
  GgufDescription made = sink.take();
  GgufContent content;
  content.metadata = made.metadata;
  content.tensors = made.tensors;
  const std::string lost = differences(c, read_config(content));
  if (!lost.empty()) refuse("GGUF metadata", lost);
  return made;
}

std::string json_text(const Config& given, const JsonDetails& details) {
  Config c = with_named_scaling(given);
  c.family = json_family(c);
  const std::string type = first_name(c.family, &Family::json);
  JsonSink sink;
  const std::string classes[] = {class_name(type)};
  sink.texts({"", "architectures"}, classes);
  sink.text({"", "model_type"}, type);
  sink.text({"", "torch_dtype"}, details.dtype);
  sink.boolean({"", "tie_word_embeddings"}, details.tied);
  sink.boolean({"", "attention_bias"}, details.attention_bias);
  if (c.family == "stablelm") sink.boolean({"", "use_qkv_bias"}, details.attention_bias);
  if (c.family == "phimoe") sink.boolean({"", "lm_head_bias"}, details.output_bias);
  if (c.family == "cohere") sink.boolean({"", "use_qk_norm"}, details.head_norms);
  if (any_of(c, {"ernie4.5", "starcoder2"})) sink.boolean({"", "use_bias"}, details.attention_bias);
  if (any_of(c, {"llama", "granite", "smollm3", "arcee", "nemotron"}))
    sink.boolean({"", "mlp_bias"}, details.ffn_bias);
  if (c.encoder) sink.integer({"", "type_vocab_size"}, details.token_types);
  sink.tokens({"", "eos_token_id"}, c.end_tokens);
  for (const auto& [key, id] : {std::pair("bos_token_id", details.begin_token),
                                std::pair("pad_token_id", details.padding_token)})
    if (id)
      sink.integer({"", key}, *id);
    else if (!c.encoder)  // whose readers want a number
      sink.nothing({"", key});
  write_all(c, sink);
  return sink.take();
}

std::string json_description(const Config& given, const JsonDetails& details) {
  std::string json = json_text(given, details);
  const std::string lost = differences(given, read_config(json));
  if (!lost.empty()) refuse("config.json", lost);
  return json;
}

}  // namespace weft::llm
