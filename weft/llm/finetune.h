// Fine-tuning: factors of low rank (LoRA) beside a model's weights learn from texts; the weights
// stay as they are, packed or not.
#pragma once

#include <string>

#include "weft/llm/lora.h"
#include "weft/llm/trainer.h"

namespace weft::llm {

/// Makes a folder with what a fine-tuning needs: the model's tokenizer.json, tokens.safetensors;
/// of `data` the paths and the share for validation count. Errors: "train.data", "train.output" for
/// a folder in which a training is already, those of read_model() and the tokenizer, file.*.
TokenCounts prepare_finetuning(const std::string& folder, const std::string& model,
                               const TrainingData& data, PreparationDone progress);

/// A model, its adapter and what trains that.
///   prepare_finetuning("out", "model.gguf", {.paths = {"texts"}}, ...);
///   Finetuning tuning("out", "model.gguf", {.lora = {.rank = 8}}, {.steps = 200, .lr = 2e-4});
///   while (!tuning.trainer().finished()) tuning.trainer().step();
///   tuning.export_adapter();  // Model("model.gguf", {.lora = {{"out/adapter.gguf"}}})
class Finetuning {
 public:
  /// Errors: those of new_lora() and Trainer.
  Finetuning(const std::string& folder, const std::string& model, const FinetuneOptions& adapter,
             const TrainerOptions& options, bool resume = false);

  Trainer& trainer() { return trainer_; }
  const Lora& lora() const { return lora_; }
  /// adapter.gguf, as llama.cpp's --lora takes it, and the folder adapter, as PEFT does.
  void export_adapter() const;

 private:
  /// With the factors of lora_ as parameters.
  Trained trained(int64_t context, const TrainerOptions& options);

  std::string folder_, model_;
  ModelFile file_;
  Lora lora_;
  Trainer trainer_;
};

}  // namespace weft::llm
