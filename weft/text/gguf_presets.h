// How the words of a GGUF file's BPE model are cut, by the name in tokenizer.ggml.pre.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weft::text {

struct GgufPreset {
  std::string_view names;                 // with spaces around each
  std::span<const char* const> patterns;  // one after another
  bool ignore_merges = false;             // words that are tokens are not taken apart
};

/// Null: unknown.
const GgufPreset* find_gguf_preset(std::string_view name);
/// What llama.cpp calls words that are cut by these patterns; empty: nothing does so.
std::string_view gguf_preset_of(std::span<const std::string> patterns, bool ignore_merges);

}  // namespace weft::text
