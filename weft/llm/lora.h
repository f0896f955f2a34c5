// Lora: what a model has learnt besides, as factors of low rank beside its weights. Method: Hu et
// al. 2021 (arXiv 2106.09685).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/io/gguf_model.h"
#include "weft/llm/config.h"
#include "weft/llm/training_options.h"
#include "weft/llm/weights.h"

namespace weft::llm {

/// Factors by the weights' names in GGUF files, in the order that the model's own rotary pairs
/// have.
struct Lora {
  double alpha = 16;
  std::map<std::string, LowRank, std::less<>> parts;
};

/// What llama.cpp's and PEFT's tools make: a GGUF file of the type adapter, or a folder (or file)
/// with adapter_config.json and adapter_model.safetensors. `config` is the model's that it is for.
/// Errors: "llm.lora" (no adapter, of another architecture, of a kind that is not supported).
Lora read_lora(const std::string& path, const Config& config);
/// Of a GGUF file's content; `what` names it in errors.
Lora gguf_lora(const GgufModel& file, const Config& config, const std::string& what = "gguf");

/// Adds `strength` times what the adapter gives to what the weights give. Errors: "llm.lora" for a
/// weight that the model lacks or has in another shape, with both.
void attach(Weights& weights, const Lora& lora, double strength = 1);

/// The model with the adapter in its weights: decoded, added, and to be packed again as they were.
/// Tensors are computed when they are asked for. Errors: those of attach().
GgufModel merged(GgufModel model, const Lora& lora, double strength = 1);

/// general.type = adapter, tensors *.lora_a and *.lora_b: what llama.cpp's --lora takes.
void save_lora_gguf(const std::string& path, const Lora& lora, const Config& config);
/// What PEFT's PeftModel.from_pretrained takes; `base` names the model.
void save_lora_folder(const std::string& folder, const Lora& lora, const Config& config,
                      const std::string& base);

/// One that changes nothing yet: A uniform within 1 / sqrt(in), B zeros. Errors: "llm.lora" (an
/// unknown target, one that the model has not, a rank that is not from 1 to 4096).
Lora new_lora(const Weights& weights, const Config& config, const LoraShape& shape, uint64_t seed);

}  // namespace weft::llm
