// Model: a language model that serves many requests at once, out of one file.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/llm/answer.h"
#include "weft/llm/draft.h"
#include "weft/llm/generator.h"
#include "weft/llm/model_file.h"
#include "weft/llm/stepper.h"

namespace weft::llm {

class AnswerWeights;
class GrammarVocabulary;

/// An adapter, and how much of it counts.
struct LoraFile {
  std::string path;
  double strength = 1;
};

struct ModelOptions {
  int64_t context = 4096;  ///< of a request; at most the model's; 0: that
  int64_t slots = 1;       ///< requests that run at once
  int64_t queue = 1024;    ///< requests that wait
  /// Of keys and values: F16, F32, or I8, 8 bits and a scale for 32 numbers.
  DType cache = DType::F16;
  /// What the numbers of products with weights are rounded to. None: to 8 bits where the machine
  /// multiplies bytes, else not at all.
  std::optional<Factors> factors = {};
  /// Tokens guessed ahead at most, up to 5, and checked in one step (speculative decoding). Each is
  /// drawn as it would be without, so that the answer is the same. 0: none.
  int64_t draft_tokens = 0;
  /// A smaller model with the same tokens that guesses; empty: what followed in the text so far.
  std::string draft_model = {};
  /// Beside the weights, which stay packed; of models from a path.
  std::vector<LoraFile> lora = {};
};

/// What was in memory for, and how much was done.
struct ModelCounts {
  int64_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0, steps = 0;
  int64_t drafted_tokens = 0, accepted_tokens = 0;  // guesses, and those that held
};

/// The cache for all slots is there from the beginning. A prompt that begins as a text that a free
/// slot still holds begins behind that. Every step computes a token of each request that answers,
/// or several where guesses hold, and a part of one prompt.
///   Model model("model-Q4_K_M.gguf");
///   const RequestId id = model.submit({.prompt = model.tokenizer().encode("Once")});
class Model final : public Generator {
 public:
  /// A GGUF file, or a folder with config.json, safetensors and tokenizer.json. Errors: those of
  /// read_model(), read_lora() and of the tokenizer; "llm.memory" where the cache would not fit the
  /// address space; "llm.draft" where a draft model has other tokens; "llm.options".
  explicit Model(const std::string& path, const ModelOptions& options = {});
  Model(const ModelFile& file, text::Tokenizer tokenizer, const ModelOptions& options = {});

  RequestId submit(Request request) override;
  void cancel(RequestId request) override;
  std::vector<Progress> step() override;
  bool idle() const override;
  /// Steps do all of it once a first token is out. Errors: an interrupt.
  bool work_ahead() override;
  /// A slot must be free: between requests, or while fewer run than there are slots.
  std::vector<float> embedding(std::span<const TokenId> tokens) override;
  /// Of every token's successor, (tokens, vocabulary) row-major; a slot must be free.
  std::vector<float> logits(std::span<const TokenId> tokens);

  const text::Tokenizer& tokenizer() const override { return tokenizer_; }
  std::string model_name() const override { return name_; }
  int64_t context_length() const override { return context_; }
  std::vector<std::pair<std::string, double>> counters() const override;

  const Config& config() const { return stepper_->config(); }
  int64_t cache_bytes() const {
    return stepper_->cache_bytes() + (drafter_ ? drafter_->bytes() : 0);
  }
  int64_t weight_bytes() const { return weight_bytes_; }
  bool is_end(TokenId id) const;

 private:
  struct Running;  // a request in a slot
  struct Slot;
  struct Waiting {
    RequestId id;
    Request request;
  };
  void check(std::span<const TokenId> tokens) const;
  void check_writes() const;
  void renew_cache();
  void admit();
  Slot* free_slot(std::span<const TokenId> prompt);
  void prompt_step(std::vector<Progress>& all);
  void token_step(std::vector<Progress>& all);
  void use_copies();
  void finish_copies();
  std::vector<Draft> drafts(std::span<Slot* const> answering);
  int64_t most_guesses(Slot& slot, int64_t requests, int64_t last_start) const;
  void answer(Slot& slot, std::span<const TokenId> tokens, std::span<const float> logits,
              std::vector<Progress>& all);
  void report_prompt(Running& r, std::span<const float> logits) const;
  std::span<const uint64_t> allowed(Running& r) const;
  bool take(Slot& slot, std::span<const float> logits, Progress& progress);
  bool end(Slot& slot, Progress& progress, Finish why);
  void fail_running(std::span<Slot* const> slots, const std::string& why,
                    std::vector<Progress>& all);
  std::vector<float> computed(std::span<const TokenId> tokens, Give give);

  text::Tokenizer tokenizer_;
  std::string name_;
  int64_t context_ = 0, weight_bytes_ = 0, queue_ = 0, draft_tokens_ = 0;
  std::unique_ptr<AnswerWeights> weights_;  // while some are to be copied
  std::unique_ptr<Stepper> stepper_;
  std::unique_ptr<Drafter> drafter_;  // null: nothing is guessed
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Waiting> waiting_;
  std::vector<RequestId> cancelled_;
  std::vector<Progress> failed_;  // of those whose cache was lost, for the next step
  std::vector<TokenId> end_tokens_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;  // from the first request with a grammar on
  RequestId next_ = 1;
  uint64_t clock_ = 0;
  ModelCounts counts_;

 public:
  ~Model() override;
};

}  // namespace weft::llm
