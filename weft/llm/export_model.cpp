#include "weft/llm/export_model.h"

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/gguf_model.h"
#include "weft/io/json_tree.h"
#include "weft/llm/families.h"
#include "weft/llm/weights.h"
#include "weft/text/gguf_presets.h"

namespace weft::llm {

namespace {

using Entries = std::vector<std::pair<std::string, GgufValue>>;

std::string tokenizer_config(const Config& c, std::string_view tokenizer_json) {
  JsonWriter json;
  json.begin_object().field("tokenizer_class", "PreTrainedTokenizerFast");
  json.field("model_max_length", c.context);
  const JsonTree tree(tokenizer_json, "tokenizer.json");
  for (const JsonTree::Value token : tree.root()["added_tokens"])
    if (!c.end_tokens.empty() && token["id"].integer(0, INT32_MAX) == c.end_tokens[0])
      for (const char* role : {"bos_token", "eos_token"}) json.field(role, token["content"].text());
  return json.end_object().take() + "\n";
}

/// Rows of each head in the order in which GGUF files have those that are turned together: as
/// neighbours, where transformers' have them in two halves.
Tensor as_neighbours(const Tensor& x, int64_t head_dim) {
  const int64_t rows = x.size(0);
  return x.reshape({rows / head_dim, 2, head_dim / 2, -1}).transpose(1, 2).reshape(x.dims());
}

bool is_turned(std::string_view name) {
  for (const char* part : {".attn_q.", ".attn_k."})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

Entries sizes(const Config& c, const Family& family) {
  const std::string architecture(family.gguf.substr(0, family.gguf.find('|')));
  Entries all = {{"general.architecture", GgufValue::of(architecture)},
                 {"general.name", GgufValue::of(c.name.empty() ? "weft llm train" : c.name)},
                 {"general.file_type", GgufValue::of_number(uint32_t{0})}};  // all in f32
  const auto add = [&](const char* key, auto x) {
    all.emplace_back(architecture + "." + key, GgufValue::of_number(x));
  };
  const auto size = [&](const char* key, int64_t x) { add(key, static_cast<uint32_t>(x)); };
  size("block_count", c.layers);
  size("embedding_length", c.dim);
  size("feed_forward_length", c.ffn);
  size("context_length", c.context);
  size("vocab_size", c.vocabulary);
  size("attention.head_count", c.heads);
  size("attention.head_count_kv", c.kv_heads);
  add(c.norm == Norm::Rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
      static_cast<float>(c.norm_epsilon));
  if (c.rope.size == 0) return all;
  size("attention.key_length", c.head_dim);
  size("attention.value_length", c.value_dim);
  size("rope.dimension_count", c.rope.size);
  add("rope.freq_base", static_cast<float>(c.rope.base));
  return all;
}

// ---- tokenizers

[[noreturn]] void refuse(std::string_view problem) {
  fail("llm.export",
       "a GGUF file cannot have this tokenizer: {}; train one (leave --tokenizer out), or take one "
       "of byte pairs like GPT-2's",
       problem);
}

bool is_byte_level(JsonTree::Value step, bool cuts) {
  return step["type"].text_or("") == "ByteLevel" && !step["add_prefix_space"].boolean_or(true) &&
         step["use_regex"].boolean_or(true) == cuts;
}

/// How words are cut, by the name that llama.cpp has for it.
std::string_view name_of_cuts(JsonTree::Value step) {
  if (is_byte_level(step, true)) return "gpt-2";
  const JsonTree::Value steps = step["pretokenizers"];
  if (!steps.is_array() || steps.size() != 2) refuse("it cuts words in several steps");
  const JsonTree::Value cut = *steps.begin();
  if (cut["type"].text_or("") != "Split" || cut["behavior"].text_or("") != "Isolated" ||
      cut["invert"].boolean_or(false))
    refuse("it cuts words in another way than by a pattern");
  const std::string pattern(cut["pattern"]["Regex"].text_or(""));
  const std::string_view name = text::gguf_preset_of(std::span(&pattern, 1), false);
  if (name.empty()) refuse("llama.cpp has no name for its pattern");
  return name;
}

struct Token {
  std::string text;
  int32_t type;
};
enum : int32_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

std::vector<std::string> merges_of(JsonTree::Value model) {
  std::vector<std::string> merges;
  for (const JsonTree::Value merge : model["merges"]) {
    if (merge.is_text()) {
      merges.emplace_back(merge.text());
      continue;
    }
    std::string both;
    for (const JsonTree::Value side : merge)
      both += (both.empty() ? "" : " ") + std::string(side.text());
    merges.push_back(std::move(both));
  }
  return merges;
}

std::vector<Token> tokens_of(JsonTree::Value root, int64_t count) {
  std::vector<Token> tokens(static_cast<size_t>(count), Token{"", kUnused});
  const auto at = [&](JsonTree::Value id) -> Token& {
    return tokens[static_cast<size_t>(id.integer(0, count - 1))];
  };
  for (const JsonTree::Value id : root["model"]["vocab"]) at(id) = {std::string(id.key()), kNormal};
  for (const JsonTree::Value t : root["added_tokens"])
    at(t["id"]) = {std::string(t["content"].text()),
                   t["special"].boolean_or(false) ? kControl : kUserDefined};
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].text.empty()) tokens[i].text = strformat("[unused{}]", i);
  return tokens;
}

}  // namespace

Entries gguf_tokenizer(std::string_view tokenizer_json, const Config& c) {
  const JsonTree tree(tokenizer_json, "tokenizer.json");
  const JsonTree::Value root = tree.root(), model = root["model"];
  if (model["type"].text_or("") != "BPE" || model["byte_fallback"].boolean_or(false))
    refuse("it is not of byte pairs");
  if (!root["normalizer"].is_null()) refuse("it changes texts before it cuts them");
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  for (Token& t : tokens_of(root, c.vocabulary)) {
    texts.push_back(std::move(t.text));
    types.push_back(t.type);
  }
  Entries all;
  const auto add = [&](const char* key, GgufValue value) {
    all.emplace_back(std::string("tokenizer.ggml.") + key, std::move(value));
  };
  add("model", GgufValue::of("gpt2"));
  add("pre", GgufValue::of(name_of_cuts(root["pre_tokenizer"])));
  add("tokens", GgufValue::of_texts(texts));
  add("token_type", GgufValue::of_numbers(std::span<const int32_t>(types)));
  add("merges", GgufValue::of_texts(merges_of(model)));
  add("add_bos_token", GgufValue::of_number(false));
  if (c.end_tokens.empty()) return all;
  for (const char* role : {"bos_token_id", "eos_token_id"})
    add(role, GgufValue::of_number(static_cast<uint32_t>(c.end_tokens[0])));
  return all;
}

GgufContent gguf_content(const NewModel& model, std::span<const NamedTensor> weights,
                         std::string_view tokenizer_json) {
  const Config& c = model.config;
  const Family& family = *find_family(c.family, false);
  GgufContent content;
  content.metadata = sizes(c, family);
  Entries tokenizer = gguf_tokenizer(tokenizer_json, c);
  std::ranges::move(tokenizer, std::back_inserter(content.metadata));
  for (const NamedTensor& w : weights) {
    const bool moves = family.neighbours && is_turned(w.name);
    content.tensors.push_back(gguf_tensor(
        w.name, moves ? as_neighbours(w.tensor.detach(), c.head_dim) : w.tensor, Codec::F32));
  }
  return content;
}

void save_folder(const std::string& folder, const NewModel& model,
                 std::span<const NamedTensor> weights, std::string_view tokenizer_json) {
  std::vector<NamedTensor> theirs;
  for (const NamedTensor& w : weights) {
    const std::string name = hugging_face_name(w.name, model.config.family);
    WEFT_CHECK(!name.empty(), "'{}' has no name of transformers'", w.name);
    const Tensor x = w.tensor.detach();
    theirs.push_back({name, translated(name, false).transposed ? x.T().contiguous() : x});
  }
  save_tensors(folder + "/model.safetensors", theirs, {{"format", "pt"}});
  atomic_write_file(folder + "/config.json", config_json(model));
  atomic_write_file(folder + "/tokenizer.json", tokenizer_json);
  atomic_write_file(folder + "/tokenizer_config.json",
                    tokenizer_config(model.config, tokenizer_json));
}

}  // namespace weft::llm
