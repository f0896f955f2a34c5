// Model: a language model that serves many requests at once, out of one file.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/llm/answer.h"
#include "weft/llm/generator.h"
#include "weft/llm/model_file.h"
#include "weft/llm/stepper.h"

namespace weft::llm {

class GrammarVocabulary;

struct ModelOptions {
  int64_t context = 4096;    ///< of a request; at most the model's; 0: that
  int64_t slots = 1;         ///< requests that run at once
  int64_t queue = 1024;      ///< requests that wait
  DType cache = DType::F16;  ///< of keys and values: F16 or F32
  /// What the numbers of products with weights are rounded to. None: to 8 bits where the machine
  /// multiplies bytes, else not at all.
  std::optional<Factors> factors = {};
};

/// What was in memory for, and how much was done.
struct ModelCounts {
  int64_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0, steps = 0;
};

/// The cache for all slots is there from the beginning. A prompt that begins as a text that a free
/// slot still holds begins behind that. Every step computes a token of each request that answers,
/// and a part of one prompt.
///   Model model("model-Q4_K_M.gguf");
///   const RequestId id = model.submit({.prompt = model.tokenizer().encode("Once")});
class Model final : public Generator {
 public:
  /// A GGUF file, or a folder with config.json, safetensors and tokenizer.json. Errors: those of
  /// read_model() and of the tokenizer; "llm.memory" where the cache would not fit the address
  /// space.
  explicit Model(const std::string& path, const ModelOptions& options = {});
  Model(const ModelFile& file, text::Tokenizer tokenizer, const ModelOptions& options = {});

  RequestId submit(Request request) override;
  void cancel(RequestId request) override;
  std::vector<Progress> step() override;
  bool idle() const override;
  /// A slot must be free: between requests, or while fewer run than there are slots.
  std::vector<float> embedding(std::span<const TokenId> tokens) override;
  /// Of every token's successor, (tokens, vocabulary) row-major; a slot must be free.
  std::vector<float> logits(std::span<const TokenId> tokens);

  const text::Tokenizer& tokenizer() const override { return tokenizer_; }
  std::string model_name() const override { return name_; }
  int64_t context_length() const override { return context_; }
  std::vector<std::pair<std::string, double>> counters() const override;

  const Config& config() const { return stepper_->config(); }
  int64_t cache_bytes() const { return stepper_->cache_bytes(); }
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
  void admit();
  Slot* free_slot(std::span<const TokenId> prompt);
  void prompt_step(std::vector<Progress>& all);
  void token_step(std::vector<Progress>& all);
  void take(Slot& slot, std::span<const float> logits, std::vector<Progress>& all);
  void end(Slot& slot, Progress& progress, Finish why);
  void fail_running(std::span<Slot* const> slots, const std::string& why,
                    std::vector<Progress>& all);
  std::vector<float> computed(std::span<const TokenId> tokens, Give give);

  text::Tokenizer tokenizer_;
  std::string name_;
  int64_t context_ = 0, weight_bytes_ = 0, queue_ = 0;
  std::unique_ptr<Stepper> stepper_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Waiting> waiting_;
  std::vector<RequestId> cancelled_;
  std::vector<TokenId> end_tokens_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;  // from the first request with a grammar on
  RequestId next_ = 1;
  uint64_t clock_ = 0;
  ModelCounts counts_;

 public:
  ~Model() override;
};

}  // namespace weft::llm
