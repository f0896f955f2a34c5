// Trainer: a language model that learns from texts, and the folder in which all of that lies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/llm/model_file.h"
#include "weft/llm/new_model.h"
#include "weft/llm/training_options.h"
#include "weft/llm/training_texts.h"

namespace weft::llm {

/// What prepare_training() is doing.
enum class Preparation : uint8_t { Tokenizer, Tokens };
using PreparationDone = FunctionRef<void(Preparation what, size_t done, size_t all)>;

/// Makes a folder with what a training needs: tokenizer.json, tokens.safetensors, config.json.
/// Errors: "train.data", "train.output" for a folder in which a training is already, "llm.new",
/// tokenizer.*, file.*.
TokenCounts prepare_training(const std::string& folder, const TrainingData& data,
                             PreparationDone progress);

/// The course of a training so far; a part of checkpoints.
struct TrainingHistory {
  std::vector<float> loss, gradient_norm;            ///< of every step
  std::vector<float> validated_at, validation_loss;  ///< steps taken, and the loss then
};

/// What a Trainer changes: all of a new model, or factors beside the weights of one that there is.
struct Trained {
  Config config;
  Weights weights;                      ///< of the network
  std::vector<NamedTensor> parameters;  ///< those of them, or of their factors, that are trained
  int64_t context = 0;                  ///< tokens of a text
};

/// The weights, their optimizer, the data's order and dropout depend on the options and on the step
/// alone, so that a training that goes on from a checkpoint has the same losses, bit by bit.
///   prepare_training("out", {.paths = {"texts"}, .config = "small"}, ...);
///   Trainer trainer("out", {.steps = 1000});
///   while (!trainer.finished()) trainer.step();
///   trainer.export_model();  // Model("out/model.gguf"), Model("out")
class Trainer {
 public:
  /// `folder`: as prepare_training() left it. `resume`: go on from its checkpoint. Errors:
  /// "train.options" (what makes no sense, with its range), "train.data" (too few tokens),
  /// "resume.options" where the checkpoint was made with others, resume.*, file.*.
  Trainer(std::string folder, const TrainerOptions& options, bool resume = false);
  /// Of a folder with tokenizer.json and tokens.safetensors.
  Trainer(std::string folder, const TrainerOptions& options, Trained trained, bool resume = false);
  ~Trainer();

  float step();       ///< the loss of the next batch
  double validate();  ///< the mean loss of the same texts every time; noted in the history
  /// A continuation of `prompt` by the weights as they are now; empty: of a new text.
  std::string sample(std::string_view prompt, int64_t tokens, uint64_t seed = 0) const;

  bool finished() const { return steps() >= options_.steps; }
  int64_t steps() const;         ///< taken
  double learning_rate() const;  ///< of the next step
  int64_t tokens_per_step() const { return options_.batch * trained_.context; }
  const TrainingHistory& history() const { return history_; }
  const TrainerOptions& options() const { return options_; }
  const Config& config() const { return trained_.config; }
  int64_t parameters() const;

  /// checkpoint.safetensors with all that the rest of the training depends on, and log.jsonl with a
  /// line for every step; each is replaced atomically.
  void save() const;
  /// model.safetensors and what belongs to it, and model.gguf, of a new model.
  void export_model() const;

 private:
  struct Learning;

  void check() const;
  void resume();
  std::string log() const;

  std::string folder_, tokenizer_json_;
  TrainerOptions options_;
  Trained trained_;
  TrainingHistory history_;
  std::unique_ptr<Learning> learning_;
};

/// Whether a training in this folder has a checkpoint.
bool has_checkpoint(const std::string& folder);
/// Errors: "train.output" where it has one, "train.options" for a share that is none.
void check_new_training(const std::string& folder, double validation);
/// What export_model() writes, of the checkpoint in a folder. Errors: those of Trainer.
void export_checkpoint(const std::string& folder);

}  // namespace weft::llm
