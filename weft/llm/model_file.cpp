#include "weft/llm/model_file.h"

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/json_tree.h"

namespace weft::llm {

namespace {

/// huggingface.co/docs/sentence-transformers: of its modes the three that language models have.
Pooling read_pooling(const std::string& path) {
  const MappedFile file(path);
  const JsonTree tree(file.text(), path, "llm.config");
  const auto is = [&](const char* mode) {
    return tree.root()[std::string("pooling_mode_") + mode].boolean_or(false);
  };
  for (const char* other : {"max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens"})
    if (is(other)) fail("llm.config", "{}: pooling_mode_{} is not supported", path, other);
  return is("cls_token") ? Pooling::First : is("lasttoken") ? Pooling::Last : Pooling::Mean;
}

}  // namespace

Config read_folder_config(const std::string& folder) {
  const std::string path = folder + "/config.json", pooling = folder + "/1_Pooling/config.json";
  const MappedFile description(path);
  Config config = read_config(description.text(), path);
  if (file_exists(pooling)) config.pooling = read_pooling(pooling);
  return config;
}

ModelFile read_model(const std::string& path) {
  if (is_gguf(path)) {
    const GgufModel model = load_gguf(path);
    return {read_config(model.content), Weights(model)};
  }
  Config config = read_folder_config(path);
  Weights weights(read_safetensors_model(path), config.norm_offset);
  return {std::move(config), std::move(weights)};
}

}  // namespace weft::llm
