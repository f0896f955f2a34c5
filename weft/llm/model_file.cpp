#include "weft/llm/model_file.h"

#include "weft/base/file.h"

namespace weft::llm {

ModelFile read_model(const std::string& path) {
  if (is_gguf(path)) {
    const GgufModel model = load_gguf(path);
    return {read_config(model.content), Weights(model)};
  }
  const MappedFile description(path + "/config.json");
  Config config = read_config(description.text(), path + "/config.json");
  Weights weights(read_safetensors_model(path), config.norm_offset);
  return {std::move(config), std::move(weights)};
}

}  // namespace weft::llm
