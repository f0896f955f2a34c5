// Tokenizers of Hugging Face's folders as the keys of GGUF files, and the other way.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/io/gguf.h"
#include "weft/text/tokenizer.h"

namespace weft::text {

struct GgufTokenizerOptions {
  int64_t vocabulary = 0;  ///< rows of the model: more than the tokenizer has are filled
  std::vector<int32_t> end_tokens = {};  ///< of config.json
};

/// The keys tokenizer.ggml.* and the chat template of a folder's tokenizer. They are read back, and
/// where they give other tokens than the folder's files (a normaliser or a way to cut words that
/// llama.cpp has no name for) tokenizer.huggingface.json with all of it comes besides.
/// Errors: those of Tokenizer::from_file(); "tokenizer.convert" (tokens beyond the vocabulary).
std::vector<std::pair<std::string, GgufValue>> gguf_tokenizer(const std::string& folder,
                                                              const GgufTokenizerOptions& options);

/// A GGUF file's tokenizer as the contents of tokenizer.json and tokenizer_config.json. Errors:
/// "tokenizer.gguf".
struct TokenizerFiles {
  std::string tokenizer, config;
};
TokenizerFiles tokenizer_files(const GgufContent& content, std::string_view what = "gguf");

}  // namespace weft::text
