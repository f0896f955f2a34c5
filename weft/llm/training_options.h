// What a training is told, and the one list of it that the command, Python and C have, too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::llm {

struct TrainingData {
  std::vector<std::string> paths = {};  ///< files and folders of texts
  std::string config = "small";         ///< a shape of new_model_shapes(), or a FILE.json
  std::string tokenizer = {};           ///< a tokenizer.json or its folder; empty: one is learnt,
  int64_t vocabulary = 4096;            ///< of so many tokens
  double validation = 0.05;             ///< share of the tokens
};

struct TrainerOptions {
  int64_t steps = 2000;       ///< in all: the end of the schedule
  int64_t batch = 16;         ///< texts of a step, of the model's context each
  int64_t accumulate = 1;     ///< micro-batches that a step is computed in
  double lr = 1e-3;           ///< at its highest
  double last_lr = 0.1;       ///< at the end, of that
  int64_t warmup = -1;        ///< steps in which it rises; -1: a tenth of all, at most 100
  double weight_decay = 0.1;  ///< of matrices
  double beta2 = 0.95;
  double clip = 1;  ///< most that the gradients' norm may be; 0: any
  double dropout = 0;
  std::string optimizer = "adamw";  ///< "muon": the layers' matrices by Muon, the rest by AdamW
  std::string dtype = "f32";        ///< what products multiply, or "bf16"; weights are f32
  uint64_t seed = 1;
};

struct LoraShape {
  int64_t rank = 8;
  double alpha = 16;  ///< what the factors give is scaled by alpha / rank
  /// q, k, v, o, gate, up, down, output; "all": the layers' all.
  std::vector<std::string> targets = {"q", "k", "v", "o"};
};

struct FinetuneOptions {
  LoraShape lora = {};
  int64_t context = 512;  ///< tokens of a text, at most the model's
};

/// All of a training.
struct TrainingPlan {
  TrainingData data;
  TrainerOptions course;
  FinetuneOptions finetune;
};

/// An option where it is, and what it may be.
struct TrainingOption {
  using Place = std::variant<int64_t*, uint64_t*, double*, std::string*, std::vector<std::string>*>;
  std::string_view name;  ///< as in C and Python; the command has - for _
  Place place;
  std::string_view what;
  double least = 0, most = 0;     ///< of numbers
  std::string_view choices = {};  ///< of a text, "adamw|muon"; empty: any

  std::string text() const;
};

std::vector<TrainingOption> options_of(TrainerOptions& course);
/// What is asked for a new model, and for an adapter beside the weights of one that there is.
std::vector<TrainingOption> training_options(TrainingPlan& plan);
std::vector<TrainingOption> finetuning_options(TrainingPlan& plan);

/// Errors: "train.options" for a name that is none, with all that there are.
const TrainingOption& find_option(std::span<const TrainingOption> options, std::string_view name);
/// Errors: "train.options" for one that is not what it may be, with its range.
void check_options(std::span<const TrainingOption> options);

}  // namespace weft::llm
