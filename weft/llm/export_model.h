// A model that was trained here, as files for weft, transformers and llama.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/io/gguf.h"
#include "weft/llm/new_model.h"

namespace weft::llm {

/// model.safetensors, config.json, tokenizer.json and tokenizer_config.json in a folder, as
/// transformers' from_pretrained() reads them. `weights` have GGUF's names.
void save_folder(const std::string& folder, const NewModel& model,
                 std::span<const NamedTensor> weights, std::string_view tokenizer_json);

/// The same as one GGUF file, in f32, with the tokenizer. Errors: "llm.export" for a tokenizer that
/// such a file cannot have.
GgufContent gguf_content(const NewModel& model, std::span<const NamedTensor> weights,
                         std::string_view tokenizer_json);

/// The keys tokenizer.ggml.* of a tokenizer.json of byte pairs. Errors: "llm.export" for any other.
std::vector<std::pair<std::string, GgufValue>> gguf_tokenizer(std::string_view tokenizer_json,
                                                              const Config& config);

}  // namespace weft::llm
