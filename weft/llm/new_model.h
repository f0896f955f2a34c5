// NewModel: what a model that does not exist yet will be: its sizes, its config.json, the weights
// it begins with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/io/tensors.h"
#include "weft/llm/config.h"
#include "weft/text/tokenizer.h"

namespace weft::llm {

struct NewModel {
  Config config;
  bool tied = true;  ///< the output's matrix is the table of tokens
};

/// Sizes with a name, for models to train.
struct NewModelShape {
  std::string_view name, family;
  int64_t layers, dim, heads, kv_heads, ffn, context;
};
std::span<const NewModelShape> new_model_shapes();

/// `what`: the name of a shape, or a config.json whose model_type is gpt2, llama, qwen2 or qwen3.
/// The vocabulary is the tokenizer's, `end` its token between texts. Errors: "llm.new" (an unknown
/// name, a model that cannot be trained from its beginning, with all reasons), those of
/// read_config().
NewModel new_model(const std::string& what, int64_t vocabulary, std::optional<text::TokenId> end);
/// Reads what config_json() writes, and the like.
NewModel read_new_model(std::string_view json, std::string_view what);

/// As Hugging Face's transformers read it.
std::string config_json(const NewModel& model);

/// All tensors by GGUF's names, realized, with requires_grad(): matrices normal with a deviation of
/// 0.02, those that add to the residual stream of 0.02 / sqrt(2 layers) (Radford et al. 2019),
/// norms 1, biases 0. The same seed gives the same numbers.
std::vector<NamedTensor> new_weights(const NewModel& model, uint64_t seed);

}  // namespace weft::llm
