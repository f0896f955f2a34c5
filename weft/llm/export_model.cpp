#include "weft/llm/export_model.h"

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/json_tree.h"
#include "weft/llm/convert.h"
#include "weft/llm/quantise_model.h"
#include "weft/llm/weights.h"

namespace weft::llm {

namespace {

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

NamedTensor as_theirs(const NamedTensor& w, const Config& c) {
  const std::string name = hugging_face_name(w.name, c.family);
  WEFT_CHECK(!name.empty(), "'{}' has no name of transformers'", w.name);
  const Tensor x = w.tensor.detach();
  return {name, translated(name, false, c.family).transposed ? x.T().contiguous() : x};
}

}  // namespace

void export_model(const std::string& folder, const Config& config,
                  std::span<const NamedTensor> weights) {
  std::vector<NamedTensor> theirs;
  for (const NamedTensor& w : weights) theirs.push_back(as_theirs(w, config));
  save_tensors(folder + "/model.safetensors", theirs, {{"format", "pt"}});
  const MappedFile tokenizer(folder + "/tokenizer.json");
  atomic_write_file(folder + "/tokenizer_config.json", tokenizer_config(config, tokenizer.text()));
  save_quantised_model(folder + "/model.gguf", folder_as_gguf(folder), {.mix = ""},
                       [](size_t, size_t, std::string_view) {});
}

}  // namespace weft::llm
