#include "weft/llm/finetune.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/host_array.h"
#include "weft/text/gguf_tokenizer.h"

namespace weft::llm {

namespace {

std::string tokenizer_json(const std::string& model) {
  if (is_gguf(model)) return text::tokenizer_files(read_gguf(model), model).tokenizer;
  return std::string(MappedFile(model + "/tokenizer.json").text());
}

}  // namespace

TokenCounts prepare_finetuning(const std::string& folder, const std::string& model,
                               const TrainingData& data, PreparationDone progress) {
  check_new_training(folder, data.validation);
  const ModelFile file = read_model(model);
  const Config& config = file.config;
  const bool output = !config.own_output || file.weights.find("output.weight") != nullptr;
  if (config.encoder || (config.embeds && !output))
    fail("train.options",
         "{} is a {} that writes no texts: models of embeddings are not fine-tuned",
         quoted_name(model), config.family);
  const std::vector<TextFile> files = find_texts(data.paths);
  const std::string json = tokenizer_json(model);
  make_directories(folder);
  atomic_write_file(folder + "/tokenizer.json", json);
  const auto end = config.end_tokens.empty() ? std::optional<text::TokenId>()
                                             : std::optional(config.end_tokens[0]);
  return write_tokens(folder + "/tokens.safetensors", files, text::Tokenizer::from_file(model), end,
                      data.validation,
                      [&](size_t done, size_t all) { progress(Preparation::Tokens, done, all); });
}

Finetuning::Finetuning(const std::string& folder, const std::string& model,
                       const FinetuneOptions& adapter, const TrainerOptions& options, bool resume)
    : folder_(folder),
      model_(model),
      file_(read_model(model)),
      lora_(new_lora(file_.weights, file_.config, adapter.lora, options.seed)),
      trainer_(folder, options, trained(adapter.context, options), resume) {}

Trained Finetuning::trained(int64_t context, const TrainerOptions& options) {
  if (options.optimizer == "muon")
    fail("train.options", "an adapter is trained by adamw, not by muon");
  if (context < 1 || context > file_.config.context)
    fail("train.options", "texts of {} tokens: from 1 to the model's {}", context,
         file_.config.context);
  Trained all{file_.config, file_.weights, {}, context};
  for (auto& [name, part] : lora_.parts) {
    part.a.requires_grad_();
    part.b.requires_grad_();
    all.parameters.push_back({name + ".lora_a", part.a});
    all.parameters.push_back({name + ".lora_b", part.b});
  }
  attach(all.weights, lora_);
  return all;
}

void Finetuning::export_adapter() const {
  Lora made = lora_;
  for (auto& [name, part] : made.parts) part = {part.a.detach(), part.b.detach(), part.scale};
  save_lora_gguf(folder_ + "/adapter.gguf", made, file_.config);
  save_lora_folder(folder_ + "/adapter", made, file_.config, model_);
}

}  // namespace weft::llm
