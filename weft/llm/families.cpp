#include "weft/llm/families.h"

#include <algorithm>
#include <cmath>

#include "weft/base/format.h"
#include "weft/io/host_array.h"

namespace weft::llm {

namespace {

// What is written here and not in models' files is from the models' papers and configurations, and
// for GGUF from what llama.cpp assumes of files with the same keys.

constexpr int64_t kMost = int64_t{1} << 24;
constexpr double kOlmo3Base = 500000;
constexpr Norm kRms = Norm::Rms;

/// In every period of layers all but the last see a window only.
void local_but_every(Config& c, int64_t period) {
  if (!c.local.empty()) return;  // the file says it
  for (int64_t i = 0; i < c.layers; ++i) c.local.push_back(i % period < period - 1);
}

/// Where config.json does not say it; null is none.
void usual_window(Config& c, ConfigSource& s, int64_t window) {
  if (!s.is_gguf() && !s.says({"", "sliding_window"})) c.window = window;
}

void all_local(Config& c) {
  if (c.local.empty()) c.local.assign(static_cast<size_t>(c.layers), true);
}

void mistral(Config& c, ConfigSource& s) {
  usual_window(c, s, 4096);
  all_local(c);
}

/// GGUF files with a window say which layers have it; config.json may leave it to the family.
bool lists_no_local(Config& c, ConfigSource& s, int64_t window = 4096) {
  usual_window(c, s, window);
  const bool used =
      s.is_gguf() ? !c.local.empty() : s.boolean({"", "use_sliding_window"}).value_or(false);
  if (!used) c.window = 0;
  return c.window > 0 && c.local.empty();
}

int64_t window_layers(ConfigSource& s) {
  return s.integer({"", "max_window_layers"}, 0, kMost, 28);
}

void qwen2(Config& c, ConfigSource& s) {
  if (!lists_no_local(c, s)) return;
  for (int64_t i = 0, first = window_layers(s); i < c.layers; ++i) c.local.push_back(i >= first);
}

/// transformers' llama heeds no window, whatever its config.json says.
void llama(Config& c, ConfigSource& s) {
  if (!s.is_gguf()) c.window = 0;
  all_local(c);
  c.experts.normalised = true;  // mixtral's GGUF files have this architecture
}

void mixtral(Config& c, ConfigSource& s) {
  all_local(c);
  c.experts.normalised = true;
  c.experts.ffn = s.is_gguf() ? c.experts.ffn : c.ffn;
}

void qwen2_moe(Config& c, ConfigSource& s) {
  if (lists_no_local(c, s))
    for (int64_t i = 0, end = window_layers(s); i < c.layers; ++i)
      c.local.push_back(i < end && i % 2 == 0);
  c.experts.normalised = s.boolean({"expert_weights_norm", "norm_topk_prob"}).value_or(false);
}

void qwen3_moe(Config& c, ConfigSource& s) {
  if (lists_no_local(c, s)) all_local(c);
  c.experts.normalised = s.boolean({"expert_weights_norm", "norm_topk_prob"}).value_or(s.is_gguf());
}

void olmoe(Config& c, ConfigSource& s) {
  c.norm_whole_heads = true;
  c.clip = s.real({"attention.clamp_kqv", "clip_qkv"}, 0, 0);
  c.experts.normalised = s.boolean({"expert_weights_norm", "norm_topk_prob"}).value_or(false);
}

/// Norms are behind the parts only (OLMo et al. 2024).
void norms_behind(Config& c) {
  c.norm_whole_heads = true;
  c.pre_norms = false;
  c.post_norms = true;
}

/// OLMo 3's local layers, whose positions are not scaled.
void local_without_scaling(Config& c, ConfigSource& s, double base) {
  if (c.window == 0) return;
  local_but_every(c, 4);
  read_local_rope(c, s);
  c.local_rope.base = s.real({"", "rope_parameters.sliding_attention.rope_theta"}, 1, base);
}

/// GGUF files call OLMo 3 so, too.
void olmo2(Config& c, ConfigSource& s) {
  norms_behind(c);
  if (!s.is_gguf()) c.window = 0;
  local_without_scaling(c, s, c.rope.base);
}

void olmo3(Config& c, ConfigSource& s) {
  norms_behind(c);
  usual_window(c, s, 4096);
  local_without_scaling(c, s, kOlmo3Base);
}

/// A llama with scales (Granite Team, IBM 2024).
void granite(Config& c, ConfigSource& s) {
  const auto scale = [&](const Key& key, double otherwise) { return s.real(key, 1e-9, otherwise); };
  c.embedding_scale = scale({"embedding_scale", "embedding_multiplier"}, 1);
  c.residual_scale = scale({"residual_scale", "residual_multiplier"}, 1);
  c.attention_scale = scale({"attention.scale", "attention_multiplier"}, s.is_gguf() ? 0 : 1);
  c.logit_divisor = scale({"logit_scale", "logits_scaling"}, 1);
  c.window = 0;
}

/// A llama in which some layers have no positions (Yang et al. 2025, "Rope to Nope").
void smollm3(Config& c, ConfigSource& s) {
  const int64_t period = s.integer({"", "no_rope_layer_interval"}, 1, kMost, 4);
  const std::vector<double> placed = s.numbers({"rope.layer_pattern", "no_rope_layers"});
  if (!placed.empty() && placed.size() != static_cast<size_t>(c.layers))
    s.problem(strformat("no_rope_layers lists {} layers of {}", placed.size(), c.layers));
  for (int64_t i = 0; i < c.layers; ++i) {
    const auto at = static_cast<size_t>(i);
    c.unplaced.push_back(at < placed.size() ? placed[at] == 0 : (i + 1) % period == 0);
  }
  if (lists_no_local(c, s, 0)) c.local = c.unplaced;
}

void not_gated(Config& c, ConfigSource&) { c.gated = false; }

void stablelm(Config&, ConfigSource& s) {
  for (const char* key : {"use_parallel_residual", "qk_layernorm"})
    if (s.boolean({"", key}).value_or(false)) s.problem(strformat("{} is not supported", key));
}

void starcoder2(Config& c, ConfigSource&) {
  c.gated = false;
  all_local(c);
}

/// Command R: attention and feed-forward part read the same (Cohere 2024).
void command_r(Config& c, ConfigSource& s) {
  c.parallel = true;
  c.norm_each_head = true;  // where there are norms
  c.logit_divisor = 1 / s.real({"logit_scale", "logit_scale"}, 1e-9, 0.0625);
}

void cohere(Config& c, ConfigSource& s) {
  command_r(c, s);
  c.window = 0;
}

/// Layers that see all have no positions.
void cohere2(Config& c, ConfigSource& s) {
  command_r(c, s);
  usual_window(c, s, 4096);
  if (c.window == 0)
    s.problem(s.shown({"attention.sliding_window", "sliding_window"}) +
              " is missing, null or 0, and the layers with positions have a window");
  local_but_every(c, s.integer({"", "sliding_window_pattern"}, 1, kMost, 4));
  c.unplaced = c.local;
  c.unplaced.flip();
}

void glm4(Config& c, ConfigSource& s) {
  c.post_norms = true;
  c.window = 0;
  if (const int64_t more = s.integer({"nextn_predict_layers", ""}, 0, kMost, 0); more > 0)
    s.problem(strformat(
        "nextn_predict_layers is {}: layers that predict more than one token are not supported",
        more));
}

/// transformers scales cosines by one number up to the trained context and by another beyond.
void read_mscales(Config& c, ConfigSource& s) {
  if (s.is_gguf() || c.rope.scaling == Rope::Scaling::None) return;
  const auto scale = [&](const char* json) {
    if (!s.number({"", json})) s.problem(s.shown({"", json}) + " is missing");
    return s.real({"", json}, 1e-6, 1);
  };
  const double near = scale("rope_parameters.short_mscale|rope_scaling.short_mscale"),
               far = scale("rope_parameters.long_mscale|rope_scaling.long_mscale");
  if (near != far)
    s.problem(
        strformat("short_mscale is {} and long_mscale is {}: two are not supported", near, far));
  c.rope.attention_factor = near;
}

/// Phi-3.5-MoE (Abdin et al. 2024).
void phimoe(Config& c, ConfigSource& s) {
  all_local(c);
  c.norm_epsilon = s.real({"attention.layer_norm_rms_epsilon", "rms_norm_eps"}, 0, c.norm_epsilon);
  c.experts.gate = Experts::Gate::SparseMixer;
  c.experts.jitter = s.real({"", "router_jitter_noise"}, 0, 0.01);
  if (c.experts.used != 2)
    s.problem(
        strformat("num_experts_per_tok is {}, and this family's tokens take 2", c.experts.used));
  if (c.experts.count < 2)
    s.problem(strformat("num_local_experts is {}, and this family has 2 or more", c.experts.count));
  read_mscales(c, s);
}

void nemotron(Config& c, ConfigSource& s) {
  c.gated = false;
  c.norm_offset = s.is_gguf() ? 0 : 1;  // GGUF files have the sum
}

void gemma(Config& c, ConfigSource& s) {
  c.embedding_scale = std::sqrt(static_cast<double>(c.dim));
  c.norm_offset = s.is_gguf() ? 0 : 1;  // GGUF files have the sum
}

/// Its first files say gelu, and mean the approximation by tanh.
void gemma1(Config& c, ConfigSource& s) {
  gemma(c, s);
  c.activation = Activation::GeluTanh;
}

/// The width of which scores' scale is the root, where config.json does not say it.
double scores_width(const Config& c, ConfigSource& s, int64_t layers_of_largest) {
  constexpr double kOfJson = 256;
  if (!s.is_gguf()) return s.real({"", "query_pre_attn_scalar"}, 1e-3, kOfJson);
  // llama.cpp: of the largest model dim / heads, which its keys do not say.
  return c.layers == layers_of_largest ? static_cast<double>(c.dim) / static_cast<double>(c.heads)
                                       : static_cast<double>(c.head_dim);
}

void gemma2(Config& c, ConfigSource& s) {
  gemma(c, s);
  if (!s.says({"attn_logit_softcapping", "attn_logit_softcapping"})) c.attention_cap = 50;
  if (!s.says({"final_logit_softcapping", "final_logit_softcapping"})) c.logit_cap = 30;
  c.post_norms = true;
  usual_window(c, s, 4096);
  local_but_every(c, 2);
  c.attention_scale = s.real({"attention.scale", ""}, 1e-9, 1 / std::sqrt(scores_width(c, s, 46)));
}

void gemma3(Config& c, ConfigSource& s) {
  gemma(c, s);
  c.post_norms = true;
  usual_window(c, s, 4096);
  local_but_every(c,
                  s.integer({"", "_sliding_window_pattern|sliding_window_pattern"}, 1, kMost, 6));
  c.attention_scale = s.real({"attention.scale", ""}, 1e-9, 1 / std::sqrt(scores_width(c, s, 62)));
  c.attention_cap = 0;  // as transformers and llama.cpp, whatever the file says
  if (s.boolean({"", "use_bidirectional_attention"}).value_or(false))
    s.problem("tokens that see those behind them (use_bidirectional_attention) are not supported");
  read_local_rope(c, s);
}

void phi3(Config& c, ConfigSource&) { all_local(c); }

void gpt2(Config& c, ConfigSource& s) {
  c.gated = false;
  c.learned_positions = true;
  c.rope.size = 0;
  if (c.ffn == 0) c.ffn = 4 * c.dim;
  const bool scaled = s.boolean({"", "scale_attn_weights"}).value_or(true);
  c.attention_scale = s.real({"attention.scale", ""}, 0, scaled ? 0 : 1);
  c.scale_by_layer =
      s.boolean({"attention.scale_by_layer", "scale_attn_by_inverse_layer_idx"}).value_or(false);
}

/// transformers' default where config.json says nothing of positions.
void usual_gpt_oss_rope(Config& c, ConfigSource& s) {
  const Key said = {"", "rope_parameters.rope_type|rope_scaling.rope_type|rope_scaling.type"};
  if (s.is_gguf() || s.text(said) || s.number({"", "rope_parameters.rope_theta"})) return;
  c.rope.scaling = Rope::Scaling::Yarn;
  c.rope.factor = 32;
  c.rope.whole_bounds = false;
  c.rope.trained_context = 4096;
}

void gpt_oss(Config& c, ConfigSource& s) {
  usual_window(c, s, 128);
  usual_gpt_oss_rope(c, s);
  local_but_every(c, 2);
  c.experts.gate = Experts::Gate::SoftmaxOfChosen;
  if (s.real({"", "swiglu_limit"}, 0, 7) != 7 || s.real({"", "swiglu_alpha"}, 0, 1.702) != 1.702)
    s.problem(
        "a swiglu_limit that is not 7 and a swiglu_alpha that is not 1.702 are not supported");
  c.experts.ffn = s.is_gguf() ? c.experts.ffn : c.ffn;
}

/// DeepSeek-V3's: two experts say how good a group is.
void sigmoid_scores(Experts& e) {
  e.gate = Experts::Gate::Sigmoid;
  e.group_best = 2;
}

void deepseek2(Config& c, ConfigSource& s) {
  c.latent.kv_rank = s.integer({"attention.kv_lora_rank", "kv_lora_rank"}, 1, kMost, {});
  c.latent.q_rank = s.integer({"attention.q_lora_rank", "q_lora_rank"}, 0, kMost, 0);
  c.rope.size = s.integer({"rope.dimension_count", "qk_rope_head_dim"}, 2, 4096, {});
  if (!s.is_gguf()) c.head_dim = c.rope.size + s.integer({"", "qk_nope_head_dim"}, 1, 4096, {});
  if (s.is_gguf()) {  // files whose heads are those of the narrow vector have the real sizes apart
    c.head_dim = s.integer({"attention.key_length_mla", ""}, 1, kMost, c.head_dim);
    c.value_dim = s.integer({"attention.value_length_mla", ""}, 1, kMost, c.value_dim);
  }
  c.latent.plain = c.head_dim - c.rope.size;
  c.rope.neighbours = s.boolean({"", "rope_interleave"}).value_or(true);
  c.kv_heads = c.heads;
  const int64_t shared = s.integer({"expert_shared_count", "n_shared_experts"}, 0, 1024, 0);
  c.experts.shared_ffn = shared * c.experts.ffn;
  c.experts.scale = s.real({"expert_weights_scale", "routed_scaling_factor"}, 0, 1);
  // transformers heeds no norm_topk_prob of DeepSeek-V2.
  c.experts.normalised = s.boolean({"expert_weights_norm", ""}).value_or(false);
  c.experts.groups = s.integer({"expert_group_count", "n_group"}, 1, 1024, 1);
  c.experts.used_groups = s.integer({"expert_group_used_count", "topk_group"}, 1, 1024, 1);
  if (s.integer({"expert_gating_func", ""}, 1, 2, 1) == 2) sigmoid_scores(c.experts);
  if (s.text({"", "topk_method"}).value_or("") == "greedy") c.experts.groups = 1;
  // llama.cpp's files say one of the two, and cosines are not scaled then.
  if (s.is_gguf() && c.rope.scale_log_all != 0) c.rope.scale_log = c.rope.scale_log_all;
  if (c.rope.scaling == Rope::Scaling::Yarn && c.rope.scale_log_all != 0 && c.rope.factor > 1) {
    const double more = 0.1 * c.rope.scale_log_all * std::log(c.rope.factor) + 1;
    c.attention_scale = more * more / std::sqrt(static_cast<double>(c.head_dim));
  }
}

void deepseek3(Config& c, ConfigSource& s) {
  deepseek2(c, s);
  sigmoid_scores(c.experts);
  c.experts.normalised = s.boolean({"", "norm_topk_prob"}).value_or(true);
}

void bert(Config& c, ConfigSource& s) {
  c.encoder = true;
  c.gated = false;
  c.learned_positions = true;
  c.rope.size = 0;
  const auto refuse_others = [&](const char* key, std::string_view usual) {
    const std::string given = s.text({"", key}).value_or(std::string(usual));
    if (given != usual) s.problem(strformat("{} is {}, not {}", key, quoted_name(given), usual));
  };
  refuse_others("position_embedding_type", "absolute");
  if (s.boolean({"attention.causal", "is_decoder"}).value_or(false))
    s.problem("a bert whose tokens do not see those behind them is not supported");
}

/// Rotary positions, and gates (Nussbaum et al. 2024). Keys are transformers' and the models' own.
void nomic_bert(Config& c, ConfigSource& s) {
  c.encoder = true;
  if (!s.is_gguf())
    c.rope.base = s.real(
        {"", "rope_parameters.rope_theta|rope_scaling.rope_theta|rope_theta|rotary_emb_base"}, 1,
        1000);
  for (const char* key : {"prenorm", "rotary_emb_interleaved", "is_decoder", "causal"})
    if (s.boolean({"", key}).value_or(false)) s.problem(strformat("{} is not supported", key));
  if (s.boolean({"attention.causal", ""}).value_or(false))
    s.problem("a nomic-bert whose tokens do not see those behind them is not supported");
  if (s.integer({"", "moe_every_n_layers"}, 0, kMost, 0) > 0)
    s.problem("layers with experts are not supported");
  if (s.real({"", "rotary_emb_fraction"}, 0, 1) != 1 ||
      s.real({"", "rotary_scaling_factor"}, 0, 1) != 1)
    s.problem("rotary_emb_fraction and rotary_scaling_factor are not supported");
  if (c.activation != Activation::Silu) s.problem("activations other than silu are not supported");
}

/// The first position is the one behind that of padding. GGUF files call it a bert, without the
/// rows before.
void roberta(Config& c, ConfigSource& s) {
  bert(c, s);
  c.first_position = s.integer({"", "pad_token_id"}, 0, kMost, 1) + 1;
  c.context = std::max<int64_t>(c.context - c.first_position, 1);
}

/// A bert whose scores know distances, and whose padding is 1 whatever its file says (Song et al.
/// 2020).
void mpnet(Config& c, ConfigSource& s) {
  bert(c, s);
  c.first_position = 2;
  c.context = std::max<int64_t>(c.context - c.first_position, 1);
  c.distance_buckets = s.integer({"", "relative_attention_num_buckets"}, 4, 4096, 32);
}

constexpr Pairs kHalves = Pairs::Halves, kGgufPairs = Pairs::NeighboursInGguf,
                kPairs = Pairs::Neighbours;
constexpr Activation kSilu = Activation::Silu, kGelu = Activation::GeluTanh;

constexpr Family kFamilies[] = {
    // name, GGUF, config.json, pairs, norm and its epsilon, activation, what else, base, parts
    {"llama", "llama", "llama", kGgufPairs, kRms, 1e-6, kSilu, llama},
    {"mistral", "llama|mistral", "mistral", kGgufPairs, kRms, 1e-6, kSilu, mistral},
    {"mixtral", "llama", "mixtral", kGgufPairs, kRms, 1e-5, kSilu, mixtral, 1e6},
    {"qwen2", "qwen2", "qwen2", kHalves, kRms, 1e-6, kSilu, qwen2},
    {"qwen3", "qwen3", "qwen3", kHalves, kRms, 1e-6, kSilu, qwen2},
    {"qwen2moe", "qwen2moe", "qwen2_moe", kHalves, kRms, 1e-6, kSilu, qwen2_moe},
    {"qwen3moe", "qwen3moe", "qwen3_moe", kHalves, kRms, 1e-6, kSilu, qwen3_moe},
    {"olmoe", "olmoe", "olmoe", kHalves, kRms, 1e-5, kSilu, olmoe},
    {"olmo2", "olmo2", "olmo2", kHalves, kRms, 1e-5, kSilu, olmo2},
    {"olmo3", "", "olmo3", kHalves, kRms, 1e-5, kSilu, olmo3, kOlmo3Base},
    {"granite", "granite", "granite", kGgufPairs, kRms, 1e-6, kSilu, granite},
    {"smollm3", "smollm3", "smollm3", kGgufPairs, kRms, 1e-6, kSilu, smollm3, 2e6},
    {"arcee", "arcee", "arcee", kGgufPairs, kRms, 1e-5, Activation::Relu2, not_gated},
    {"ernie4.5", "ernie4_5", "ernie4_5", kPairs, kRms, 1e-5, kSilu, nullptr},
    {"stablelm", "stablelm", "stablelm", kHalves, Norm::Layer, 1e-5, kSilu, stablelm, 10000, 0.25},
    {"nemotron", "nemotron", "nemotron", kHalves, Norm::Layer, 1e-5, Activation::Relu2, nemotron,
     10000, 0.5},
    {"starcoder2", "starcoder2", "starcoder2", kHalves, Norm::Layer, 1e-5, kGelu, starcoder2},
    {"cohere", "command-r", "cohere", kPairs, Norm::Layer, 1e-5, kSilu, cohere, 500000},
    {"cohere2", "cohere2", "cohere2", kPairs, Norm::Layer, 1e-5, kSilu, cohere2},
    {"glm4", "glm4", "glm4", kPairs, kRms, 1.5625e-7, kSilu, glm4, 10000, 0.5},
    {"gemma", "gemma", "gemma", kHalves, kRms, 1e-6, kGelu, gemma1},
    {"gemma2", "gemma2", "gemma2", kHalves, kRms, 1e-6, kGelu, gemma2},
    {"gemma3", "gemma3", "gemma3_text", kHalves, kRms, 1e-6, kGelu, gemma3, 1e6},
    {"phi3", "phi3", "phi3", kHalves, kRms, 1e-5, kSilu, phi3, 10000, 1},
    {"phimoe", "phimoe", "phimoe", kHalves, Norm::Layer, 1e-5, kSilu, phimoe, 1e6},
    {"gpt2", "gpt2", "gpt2", kHalves, Norm::Layer, 1e-5, kGelu, gpt2},
    {"gpt-oss", "gpt-oss", "gpt_oss", kHalves, kRms, 1e-5, Activation::GptOss, gpt_oss, 150000},
    {"bert", "bert", "bert", kHalves, Norm::Layer, 1e-12, Activation::Gelu, bert},
    {"roberta", "", "roberta|xlm-roberta", kHalves, Norm::Layer, 1e-12, Activation::Gelu, roberta},
    {"mpnet", "", "mpnet", kHalves, Norm::Layer, 1e-12, Activation::Gelu, mpnet},
    {"nomic-bert", "nomic-bert", "nomic_bert", kHalves, Norm::Layer, 1e-12, kSilu, nomic_bert},
    {"deepseek2", "deepseek2", "deepseek_v2", kPairs, kRms, 1e-6, kSilu, deepseek2},
    {"deepseek3", "", "deepseek_v3", kPairs, kRms, 1e-6, kSilu, deepseek3},
};

bool lists(std::string_view alternatives, std::string_view name) {
  while (!alternatives.empty()) {
    const size_t at = alternatives.find('|');
    if (alternatives.substr(0, at) == name) return true;
    alternatives = at == std::string_view::npos ? "" : alternatives.substr(at + 1);
  }
  return false;
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view name, bool gguf) {
  for (const Family& f : kFamilies)
    if (lists(gguf ? f.gguf : f.json, name)) return &f;
  return nullptr;
}

}  // namespace weft::llm
