#include <charconv>
#include <span>

#include "weft/llm/weights.h"

namespace weft::llm {

namespace {

struct Row {
  std::string_view theirs, ours;
  std::string_view families = {};  // beginnings "a|b" of who has this name; empty: all others
  bool transposed = false, pairs = false;
};
constexpr std::string_view kGpt2 = "gpt2", kMixtral = "mixtral|phimoe", kGptOss = "gpt-oss";
constexpr std::string_view kPhi3 = "phi3", kDeepseek = "deepseek", kBert = "bert",
                           kNomic = "nomic-bert", kMpnet = "mpnet", kStarcoder = "starcoder",
                           kGlm4 = "glm4";

// Of the whole model; behind "model." or "transformer.".
constexpr Row kOutside[] = {
    {"embed_tokens", "token_embd"},
    {"wte", "token_embd", kGpt2},
    {"wpe", "position_embd", kGpt2},
    {"norm", "output_norm"},
    {"ln_f", "output_norm", kGpt2},
    {"lm_head", "output"},
    {"embeddings.word_embeddings", "token_embd", kBert},
    {"embeddings.position_embeddings", "position_embd", kBert},
    {"embeddings.token_type_embeddings", "token_types", kBert},
    {"embeddings.LayerNorm", "token_embd_norm", kBert},
    {"embeddings.word_embeddings", "token_embd", kNomic},
    {"embeddings.token_type_embeddings", "token_types", kNomic},
    {"emb_ln", "token_embd_norm", kNomic},
    {"encoder.relative_attention_bias", "attn_rel_b", kMpnet},
};

// Of a layer. Names are those of transformers' models and llama.cpp's constants.
constexpr Row kInside[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv", kPhi3},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.sinks", "attn_sinks", kGptOss},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up", "phi3|glm4"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.router", "ffn_gate_inp", kGptOss},
    {"block_sparse_moe.gate", "ffn_gate_inp", kMixtral},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps", kMixtral},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps", kMixtral},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps", kMixtral},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", kGptOss, true, true},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", kGptOss, false, true},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", kGptOss, true},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias", kGptOss},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp", kDeepseek},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp", kDeepseek},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp", kDeepseek},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"ln_1", "attn_norm", kGpt2},
    {"ln_2", "ffn_norm", kGpt2},
    {"attn.c_attn", "attn_qkv", kGpt2, true},
    {"attn.c_proj", "attn_output", kGpt2, true},
    {"mlp.c_fc", "ffn_up", kGpt2, true},
    {"mlp.c_proj", "ffn_down", kGpt2, true},
    {"mlp.c_fc", "ffn_up", kStarcoder},
    {"mlp.c_proj", "ffn_down", kStarcoder},
    {"attention.self.query", "attn_q", kBert},
    {"attention.self.key", "attn_k", kBert},
    {"attention.self.value", "attn_v", kBert},
    {"attention.output.dense", "attn_output", kBert},
    {"attention.output.LayerNorm", "attn_output_norm", kBert},
    {"intermediate.dense", "ffn_up", kBert},
    {"output.dense", "ffn_down", kBert},
    {"output.LayerNorm", "layer_output_norm", kBert},
    {"attention.attn.q", "attn_q", kMpnet},
    {"attention.attn.k", "attn_k", kMpnet},
    {"attention.attn.v", "attn_v", kMpnet},
    {"attention.attn.o", "attn_output", kMpnet},
    {"attention.LayerNorm", "attn_output_norm", kMpnet},
    {"attn.Wqkv", "attn_qkv", kNomic},
    {"attn.out_proj", "attn_output", kNomic},
    {"norm1", "attn_output_norm", kNomic},
    {"norm2", "layer_output_norm", kNomic},
    {"mlp.fc11", "ffn_up", kNomic},
    {"mlp.fc12", "ffn_gate", kNomic},
    {"mlp.fc2", "ffn_down", kNomic},
    {"post_mlp_layernorm", "layer_output_norm", kNomic},
    {"post_self_attn_layernorm", "post_attention_norm", kGlm4},
    {"post_mlp_layernorm", "post_ffw_norm", kGlm4},
};

// Of layers with norms after their parts.
constexpr Row kSandwiched[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};

bool is_of(const Row& row, std::string_view family) {
  for (std::string_view rest = row.families; !rest.empty();) {
    const size_t at = rest.find('|');
    if (family.starts_with(rest.substr(0, at))) return true;
    rest = at == std::string_view::npos ? "" : rest.substr(at + 1);
  }
  return false;
}

/// A row of this name that the family has; else one that all have, or any.
const Row* find(std::span<const Row> rows, std::string_view Row::* side, std::string_view name,
                std::string_view family, bool any) {
  const Row *usual = nullptr, *other = nullptr;
  for (const Row& r : rows) {
    if (r.*side != name) continue;
    if (is_of(r, family)) return &r;
    if (usual == nullptr && r.families.empty()) usual = &r;
    if (other == nullptr) other = &r;
  }
  return usual == nullptr && any ? other : usual;
}

/// Models of a family that is not known, and of those that have another one's names, too.
const Row* find_theirs(std::span<const Row> rows, std::string_view name, std::string_view family) {
  return find(rows, &Row::theirs, name, family, true);
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// The number in front of a point, which both are taken away; -1: none.
int64_t take_number(std::string_view& text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<size_t>(end - text.data());
  if (error != std::errc() || number < 0 || length >= text.size() || text[length] != '.') return -1;
  text.remove_prefix(length + 1);
  return number;
}

/// "experts.3.w1" to "experts.*.w1", and 3.
std::pair<std::string, int64_t> without_expert(std::string_view name) {
  constexpr std::string_view kMark = ".experts.";
  const size_t at = name.find(kMark);
  if (at == std::string_view::npos) return {std::string(name), -1};
  std::string_view rest = name.substr(at + kMark.size());
  const int64_t expert = take_number(rest);
  if (expert < 0) return {std::string(name), -1};
  return {std::string(name.substr(0, at + kMark.size())) + "*." + std::string(rest), expert};
}

}  // namespace

TranslatedName translated(std::string_view name, bool sandwiched, std::string_view family) {
  take(name, "language_model.");
  for (const std::string_view outer :
       {"model.", "transformer.", "bert.", "roberta.", "nomic_bert.", "mpnet."})
    if (take(name, outer)) break;
  std::string prefix, kind;
  if (take(name, "layers.") || take(name, "h.") || take(name, "encoder.layer.") ||
      take(name, "encoder.layers.")) {
    const int64_t layer = take_number(name);
    if (layer < 0) return {};
    prefix = "blk." + std::to_string(layer) + ".";
  }
  auto [key, expert] = without_expert(name);
  for (const std::string_view end : {".weight", ".bias"})
    if (key.ends_with(end)) {
      kind = end;
      key.resize(key.size() - end.size());
      break;
    }
  const Row* row = prefix.empty() ? find_theirs(kOutside, key, family) : nullptr;
  if (!prefix.empty() && sandwiched) row = find_theirs(kSandwiched, key, family);
  if (!prefix.empty() && row == nullptr) row = find_theirs(kInside, key, family);
  if (row == nullptr) return {};
  if (kind.empty() && row->ours.find('.') == std::string_view::npos) kind = ".weight";
  return {prefix + std::string(row->ours) + kind, row->transposed && kind != ".bias", row->pairs,
          expert};
}

namespace {

const Row* find_ours(std::span<const Row> rows, std::string_view ours, std::string_view family) {
  return find(rows, &Row::ours, ours, family, false);
}

/// "attn_q.weight" to "attn_q" and ".weight".
std::pair<std::string_view, std::string_view> without_kind(std::string_view name) {
  for (const std::string_view kind : {".weight", ".bias"})
    if (name.ends_with(kind)) return {name.substr(0, name.size() - kind.size()), kind};
  return {name, {}};
}

}  // namespace

std::string hugging_face_name(std::string_view name, std::string_view family) {
  const bool gpt2 = family == kGpt2, sandwiched = family == "gemma2" || family == "gemma3" ||
                                                  family == "olmo2" || family == "olmo3";
  const bool bert = family == kBert, nomic = family == kNomic;
  std::string prefix = gpt2 ? "transformer." : bert || nomic ? "" : "model.";
  const bool inside = take(name, "blk.");
  if (inside) {
    prefix += gpt2 ? "h." : bert ? "encoder.layer." : nomic ? "encoder.layers." : "layers.";
    prefix += std::to_string(take_number(name)) + ".";
  }
  const std::span<const Row> rows = inside ? std::span<const Row>(kInside) : kOutside;
  if (const Row* whole = find_ours(rows, name, family)) return prefix + std::string(whole->theirs);
  const auto [ours, kind] = without_kind(name);
  const Row* row = sandwiched && inside ? find_ours(kSandwiched, ours, family) : nullptr;
  if (row == nullptr) row = find_ours(rows, ours, family);
  if (row == nullptr) return {};
  if (row->theirs == "lm_head") prefix.clear();
  if (row->theirs == "self_attn.sinks") return prefix + std::string(row->theirs);
  return prefix + std::string(row->theirs) + std::string(kind);
}

}  // namespace weft::llm
