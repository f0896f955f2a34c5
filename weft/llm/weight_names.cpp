#include <charconv>
#include <initializer_list>
#include <span>

#include "weft/base/format.h"
#include "weft/llm/weights.h"

namespace weft::llm {

namespace {

struct Row {
  std::string_view theirs, ours;
  bool transposed = false, pairs = false;
};

// Of the whole model; behind "model.".
constexpr Row kOutside[] = {
    {"embed_tokens", "token_embd"}, {"norm", "output_norm"}, {"lm_head", "output"}};
// GPT-2's, behind "transformer.".
constexpr Row kOutsideGpt2[] = {
    {"wte", "token_embd"}, {"wpe", "position_embd"}, {"ln_f", "output_norm"}};

// Of a layer. Names are those of transformers' models and llama.cpp's constants.
constexpr Row kInside[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.sinks", "attn_sinks"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.router", "ffn_gate_inp"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps"},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps"},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", true, true},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", false, true},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", true},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
};
constexpr Row kInsideGpt2[] = {
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.c_attn", "attn_qkv", true},
    {"attn.c_proj", "attn_output", true},
    {"mlp.c_fc", "ffn_up", true},
    {"mlp.c_proj", "ffn_down", true},
};

// Of layers with norms before and after their parts.
constexpr Row kSandwiched[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};

using Rows = std::initializer_list<std::span<const Row>>;

const Row* find(Rows tables, std::string_view name, std::string_view Row::* key = &Row::theirs) {
  for (const std::span<const Row> rows : tables)
    for (const Row& r : rows)
      if (r.*key == name) return &r;
  return nullptr;
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

TranslatedName translated(std::string_view name, bool sandwiched) {
  take(name, "language_model.");
  if (!take(name, "model.")) take(name, "transformer.");
  std::string prefix, kind;
  if (take(name, "layers.") || take(name, "h.")) {
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
  const Row* row = prefix.empty() ? find({kOutside, kOutsideGpt2}, key) : nullptr;
  if (!prefix.empty() && sandwiched) row = find({kSandwiched}, key);
  if (!prefix.empty() && row == nullptr) row = find({kInside, kInsideGpt2}, key);
  if (row == nullptr) return {};
  if (kind.empty() && row->ours.find('.') == std::string_view::npos) kind = ".weight";
  return {prefix + std::string(row->ours) + kind, row->transposed && kind != ".bias", row->pairs,
          expert};
}

TranslatedName translated_back(std::string_view name, bool gpt2) {
  const size_t point = name.rfind('.');
  if (point == std::string_view::npos) return {};
  const std::string_view kind = name.substr(point);
  name = name.substr(0, point);
  std::string prefix = gpt2 ? "transformer." : "model.";
  const bool inside = take(name, "blk.");
  if (inside) {
    const int64_t layer = take_number(name);
    if (layer < 0) return {};
    prefix += strformat("{}.{}.", gpt2 ? "h" : "layers", layer);
  }
  using Table = std::span<const Row>;
  const Table names = inside ? gpt2 ? Table(kInsideGpt2) : Table(kInside)
                      : gpt2 ? Table(kOutsideGpt2)
                             : Table(kOutside);
  const Row* row = find({names}, name, &Row::ours);
  if (row == nullptr) return {};
  if (row->ours == "output") prefix.clear();  // lm_head is beside the model, not in it
  return {prefix + std::string(row->theirs) + std::string(kind),
          row->transposed && kind != ".bias"};
}

}  // namespace weft::llm
