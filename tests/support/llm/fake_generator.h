// FakeGenerator: answers that its prompts ask for, a byte a step, as many at once as it has places.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>

#include "weft/llm/generator.h"

namespace weft::llm {

/// Every byte is a token, and <|im_start|>, <|im_end|> are two more.
text::Tokenizer byte_tokenizer();

struct FakeOptions {
  size_t places = 8, queue = 4096;
  std::chrono::microseconds step_time{0};
  int64_t context = 100000;
  size_t pieces_ahead = 0;  // of work for when nobody waits
};

/// What the user says last, or a prompt that is no chat, decides the answer by the last of these
/// words in it:
///   SAY text      the text ("\n" for a line break)
///   LONG n        n bytes
///   RANDOM        letters that depend on the seed
///   BREAK         fails in the middle
///   FAIL          fails at once
/// "re: " and what was said answers anything else.
class FakeGenerator final : public Generator {
 public:
  explicit FakeGenerator(FakeOptions given = {});

  RequestId submit(Request request) override;
  void cancel(RequestId request) override;
  std::vector<Progress> step() override;
  bool idle() const override { return queue_.empty() && running_.empty() && cancelled_.empty(); }
  bool work_ahead() override {
    if (options.pieces_ahead == 0) return false;
    ++ahead;
    return --options.pieces_ahead > 0;
  }
  std::vector<float> embedding(std::span<const TokenId> tokens) override;
  const text::Tokenizer& tokenizer() const override { return tokenizer_; }
  std::string model_name() const override { return "fake"; }
  int64_t context_length() const override { return options.context; }
  std::vector<std::pair<std::string, double>> counters() const override;

  // For tests. The text of the last request's prompt:
  std::string prompt() const { return tokenizer_.decode(last.prompt, false); }
  FakeOptions options;
  Request last;
  // From any thread:
  std::atomic<size_t> running{0}, queued{0}, steps{0}, submitted{0}, most_running{0};
  std::atomic<size_t> ahead{0};         // pieces of work that nobody waited for
  std::atomic<size_t> with_grammar{0};  // requests whose answer has to follow one
  std::atomic<bool> break_steps{false};

 private:
  struct Running {
    RequestId id;
    Request request;
    std::vector<TokenId> answer = {};
    size_t at = 0;
    bool random = false;
    size_t breaks_at = SIZE_MAX;
    std::string held = {};
    std::string bytes = {};  // of a character that is not whole
  };
  void check(std::span<const TokenId> tokens) const;
  Progress advance(Running& r);
  void note();

  text::Tokenizer tokenizer_;
  RequestId last_id_ = 0;
  std::deque<Running> queue_, running_;
  std::vector<RequestId> cancelled_;
};

}  // namespace weft::llm
