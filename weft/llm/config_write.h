// What a model is, written as GGUF metadata and as a config.json.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/io/gguf.h"
#include "weft/llm/config.h"

namespace weft::llm {

using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

/// general.architecture, the sizes, and small tensors of rotary frequencies, under the keys of
/// github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's gguf-py/gguf/constants.py.
struct GgufDescription {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
};
/// Errors: "llm.convert" where GGUF has no words for what `config` says: what is read back is
/// compared.
GgufDescription gguf_description(const Config& config);

/// What tensors say and Config does not.
struct JsonDetails {
  bool tied = false;  ///< the output is the table of tokens
  bool attention_bias = false, ffn_bias = false, output_bias = false;
  bool head_norms = false;  ///< of queries and keys
  int64_t token_types = 0;
  std::string dtype = "float32";
  std::optional<int64_t> begin_token = {}, padding_token = {};
};
/// Errors: "llm.convert", likewise.
std::string json_description(const Config& config, const JsonDetails& details);
/// The same unchecked: what `config` leaves open, its family's row fills in when it is read.
std::string json_text(const Config& config, const JsonDetails& details);

/// general.architecture of GGUF files.
std::string gguf_architecture(const Config& config);
/// The family that config.json has for what `config` is: GGUF files of mistral and mixtral are
/// llama's, DeepSeek-V3's are V2's.
std::string json_family(const Config& config);

/// Of models that compute the same, nothing; else "heads: 8 and 4", one a line.
std::string differences(const Config& a, const Config& b);

}  // namespace weft::llm
