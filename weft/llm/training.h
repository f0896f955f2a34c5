// Training: either kind of it behind one door, as the command, Python and C open it.
#pragma once

#include <memory>
#include <string>

#include "weft/llm/finetune.h"

namespace weft::llm {

/// prepare_training() where `model` is empty, else prepare_finetuning().
TokenCounts prepare(const std::string& folder, const std::string& model, const TrainingData& data,
                    PreparationDone progress);

/// A new model that learns where `model` is empty, else an adapter beside its weights.
class Training {
 public:
  Training(const std::string& folder, const std::string& model, const TrainingPlan& plan,
           bool resume);

  Trainer& trainer() const { return tuning_ ? tuning_->trainer() : *new_model_; }
  void export_made() const;
  /// What export_made() makes for Model: a file in the folder.
  const char* made() const { return tuning_ ? "adapter.gguf" : "model.gguf"; }

 private:
  std::unique_ptr<Trainer> new_model_;
  std::unique_ptr<Finetuning> tuning_;
};

}  // namespace weft::llm
