// A language model's file or folder, read and checked.
#pragma once

#include <string>

#include "weft/llm/config.h"
#include "weft/llm/weights.h"

namespace weft::llm {

struct ModelFile {
  Config config;
  Weights weights;
};

/// `path`, where a model is. Errors: "llm.file" where there is something else, those of files.
const std::string& checked_model(const std::string& path);

/// A GGUF file (the first part of one that is split), or a folder with config.json and safetensors.
/// Tensors stay in the mapped files. Errors: those of checked_model(), gguf.*, safetensors.*,
/// json.format, llm.config, llm.family.
ModelFile read_model(const std::string& path);

/// config.json, and how sentence-transformers pool (1_Pooling/config.json) where the folder says
/// it.
Config read_folder_config(const std::string& folder);

/// The tensors of a folder that `config` describes. `lazily`: Weights has it.
Weights folder_weights(const std::string& folder, const Config& config, bool lazily = false);

}  // namespace weft::llm
