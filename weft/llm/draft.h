// Drafts: guesses of what follows texts, which a model checks several at a time (speculative
// decoding, Leviathan et al. 2023).
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "weft/llm/model_file.h"
#include "weft/llm/sampling.h"
#include "weft/llm/stepper.h"

namespace weft::llm {

class GrammarMatcher;

/// A text, and what is guessed to follow it.
struct Draft {
  int64_t slot;               ///< that the text has in its model
  std::vector<TokenId> text;  ///< prompt and answer so far, to which guesses are added
  size_t prompt_size;
  int64_t most;                       ///< tokens wanted
  const Sampler* sampler;             ///< that draws the answer: a guess is what it would draw
  size_t known = 0;                   ///< of the text, before the guesses
  GrammarMatcher* grammar = nullptr;  ///< of the answer, where that has one

  std::span<const TokenId> guesses() const { return std::span(text).subspan(known); }
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  /// Adds at most `most` tokens to each text.
  virtual void guess(std::span<Draft> drafts) = 0;
  virtual int64_t bytes() const { return 0; }  ///< of caches
};

/// What followed where the text's last tokens stood before (prompt lookup, Saxena 2023).
class LookupDrafter final : public Drafter {
 public:
  void guess(std::span<Draft> drafts) override;
};

/// A smaller model with the same tokens, which has a cache of its own for each slot.
class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(const ModelFile& file, int64_t slots, int64_t context, DType cache, Factors factors);
  void guess(std::span<Draft> drafts) override;
  int64_t bytes() const override { return stepper_.cache_bytes(); }

 private:
  bool takes(const Draft& draft) const;
  void catch_up(const Draft& draft);
  void next_tokens(std::span<Draft* const> drafts);
  static void draw(Draft& draft, std::span<const float> logits);

  Stepper stepper_;
  std::vector<std::vector<TokenId>> held_;  // of slots: whose keys and values the cache has
};

/// Errors: those of read_model() and of tokenizers; "llm.draft" where the tokens are not the same.
std::unique_ptr<Drafter> model_drafter(const std::string& path, const text::Tokenizer& tokenizer,
                                       int64_t slots, int64_t context, DType cache,
                                       Factors factors);

/// How many tokens are guessed ahead: more while guesses hold, fewer, and seldom, while they do
/// not. A rule without a clock, so that a request is always worked on in the same steps.
class DraftPace {
 public:
  explicit DraftPace(int64_t most) : most_(most), length_(std::min<int64_t>(most, 3)) {}
  int64_t next();  ///< for the step to come
  void note(int64_t guessed, int64_t held);

 private:
  int64_t most_, length_;
  int64_t misses_ = 0, rest_ = 0;  // steps in turn where nothing held; steps without a guess left
};

}  // namespace weft::llm
