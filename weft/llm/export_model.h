// A model that was trained here, as files for weft, transformers and llama.cpp.
#pragma once

#include <span>
#include <string>

#include "weft/io/tensors.h"
#include "weft/llm/config.h"

namespace weft::llm {

/// model.safetensors and tokenizer_config.json beside the config.json and tokenizer.json of a
/// folder, as transformers' from_pretrained() reads them, and the same as model.gguf, in f32.
/// `weights` have GGUF's names. Errors: those of folder_as_gguf().
void export_model(const std::string& folder, const Config& config,
                  std::span<const NamedTensor> weights);

}  // namespace weft::llm
