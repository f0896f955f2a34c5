// Models of Hugging Face's folders as GGUF files, and the other way.
#pragma once

#include <string>
#include <string_view>

#include "weft/base/function_ref.h"
#include "weft/io/gguf_model.h"

namespace weft::llm {

/// A folder with config.json, safetensors and tokenizer.json as the GGUF model that llama.cpp's
/// converter would make of it: its keys and names, vectors in f32, queries and keys of llama's in
/// the order of its rotary pairs. Tensors are expressions over the mapped files, computed when they
/// are asked for. What GGUF's keys of tokenizers cannot say comes with tokenizer.huggingface.json.
/// Errors: those of read_model(); "llm.weights" with all tensors that are missing; "llm.convert"
/// where GGUF has no words for the model.
GgufModel folder_as_gguf(const std::string& folder);

/// A GGUF file as it is, or a folder as folder_as_gguf() has it.
GgufModel model_as_gguf(const std::string& path);

/// Error: "llm.convert", where what is made would replace the file or folder that it is made of,
/// and with fewer bits nobody could get that back.
void check_output(const std::string& from, const std::string& to);

struct FolderOptions {
  Codec packed = Codec::F16;  ///< what packed weights become: F32, F16 or BF16
  bool all = false;           ///< and plain ones, too; else those stay as they are
};
/// All in `type`: F32, F16 or BF16; "": what packed weights become only. Errors: "llm.convert".
FolderOptions folder_options(std::string_view type);
/// Writes a model's config.json, model.safetensors, tokenizer.json and tokenizer_config.json, each
/// atomically, with one tensor in memory at a time. `progress` hears of every tensor that is done.
/// Errors: "llm.convert", those of files.
void save_folder(const std::string& folder, const GgufModel& model, const FolderOptions& options,
                 FunctionRef<void(size_t done, size_t all, std::string_view name)> progress);

/// Whether llama.cpp has this tensor in f32 whatever the rest is: vectors, routers of experts,
/// tables of positions.
bool stays_f32(std::string_view name, size_t axes);

}  // namespace weft::llm
