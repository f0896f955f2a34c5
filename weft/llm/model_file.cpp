#include "weft/llm/model_file.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"
#include "weft/io/json_tree.h"

namespace weft::llm {

namespace {

Pooling pooling_named(std::string_view mode, const std::string& path) {
  if (mode == "cls") return Pooling::First;
  if (mode == "lasttoken") return Pooling::Last;
  if (mode != "mean")
    fail("llm.config", "{}: pooling_mode {} is not supported", path, quoted_name(mode));
  return Pooling::Mean;
}

/// huggingface.co/docs/sentence-transformers: of its modes the three that language models have.
Pooling read_pooling(const std::string& path) {
  const MappedFile file(path);
  const JsonTree tree(file.text(), path, "llm.config");
  const JsonTree::Value name = tree.root()["pooling_mode"];  // goes before the others
  if (!name.is_null()) return pooling_named(name.text(), path);
  const auto is = [&](const char* mode) {
    return tree.root()[std::string("pooling_mode_") + mode].boolean_or(false);
  };
  for (const char* other : {"max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens"})
    if (is(other)) fail("llm.config", "{}: pooling_mode_{} is not supported", path, other);
  if (is("cls_token") + is("lasttoken") + is("mean_tokens") > 1)
    fail("llm.config", "{}: several modes, one behind the other, are not supported", path);
  return is("cls_token") ? Pooling::First : is("lasttoken") ? Pooling::Last : Pooling::Mean;
}

/// What sentence-transformers computes one after the other. Another layer behind the pooling
/// (Dense) would give other embeddings.
void check_modules(const std::string& path) {
  const MappedFile file(path);
  const JsonTree tree(file.text(), path, "llm.config");
  for (const JsonTree::Value module : tree.root()) {
    const std::string_view type = module["type"].text();
    const std::string_view name = type.substr(type.rfind('.') + 1);
    if (name != "Transformer" && name != "Pooling" && name != "Normalize")
      fail("llm.config", "{}: a module of type {} is not supported", path, quoted_name(type));
  }
}

/// transformers ends answers at those of generation_config.json: config.json of many a model for
/// chats has the end of texts only, not that of turns.
void add_end_tokens(const std::string& path, Config& config) {
  const MappedFile file(path);
  const JsonTree tree(file.text(), path, "llm.config");
  const JsonTree::Value given = tree.root()["eos_token_id"];
  const auto add = [&](JsonTree::Value id) {
    if (id.kind() != JsonTree::Kind::Number) return;
    const double x = id.number();
    if (!(x >= 0 && x < static_cast<double>(config.vocabulary))) return;
    const auto token = static_cast<int32_t>(x);
    if (std::ranges::find(config.end_tokens, token) == config.end_tokens.end())
      config.end_tokens.push_back(token);
  };
  if (!given.is_array()) return add(given);
  for (const JsonTree::Value id : given) add(id);
}

}  // namespace

Config read_folder_config(const std::string& folder) {
  const std::string path = folder + "/config.json", pooling = folder + "/1_Pooling/config.json";
  const std::string generation = folder + "/generation_config.json";
  const std::string modules = folder + "/modules.json";
  const MappedFile description(path);
  Config config = read_config(description.text(), path);
  if (file_exists(generation)) add_end_tokens(generation, config);
  if (file_exists(modules)) check_modules(modules);
  if (file_exists(modules) || file_exists(pooling)) config.embeds = true;
  if (file_exists(pooling)) config.pooling = read_pooling(pooling);
  return config;
}

Weights folder_weights(const std::string& folder, const Config& config, bool lazily) {
  const auto [rows, columns] = config.scale_block;
  return Weights(read_safetensors_model(folder), config.norm_offset, lazily, {rows, columns},
                 config.family);
}

const std::string& checked_model(const std::string& path) {
  if (is_gguf(path)) return path;
  if (!is_directory(path)) {
    const MappedFile file(path);  // there, with something in it
    fail(
        "llm.file",
        "{} is no GGUF file: it begins with {}, not with GGUF; was its download interrupted, or is "
        "it a page that asks for a login?",
        path, quoted_name(valid_utf8(file.text().substr(0, 4))));
  }
  if (!file_exists(path + "/config.json"))
    fail("llm.file",
         "the folder {} has no config.json: name a GGUF file, or a folder with config.json, "
         "safetensors and tokenizer.json",
         path);
  return path;
}

ModelFile read_model(const std::string& path) {
  if (is_gguf(checked_model(path))) {
    const GgufModel model = load_gguf(path);
    return {read_config(model.content), Weights(model)};
  }
  Config config = read_folder_config(path);
  Weights weights = folder_weights(path, config);
  return {std::move(config), std::move(weights)};
}

}  // namespace weft::llm
