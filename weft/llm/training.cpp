#include "weft/llm/training.h"

namespace weft::llm {

TokenCounts prepare(const std::string& folder, const std::string& model, const TrainingData& data,
                    PreparationDone progress) {
  return model.empty() ? prepare_training(folder, data, progress)
                       : prepare_finetuning(folder, model, data, progress);
}

Training::Training(const std::string& folder, const std::string& model, const TrainingPlan& plan,
                   bool resume) {
  if (model.empty())
    new_model_ = std::make_unique<Trainer>(folder, plan.course, resume);
  else
    tuning_ = std::make_unique<Finetuning>(folder, model, plan.finetune, plan.course, resume);
}

void Training::export_made() const {
  if (tuning_)
    tuning_->export_adapter();
  else
    new_model_->export_model();
}

}  // namespace weft::llm
