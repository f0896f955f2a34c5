// FakeGenerator: answers that its prompts ask for, a byte a step, as many at once as it has places.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>

#include "weft/llm/generator.h"

namespace weft::serve {

/// Every byte is a token, and <|im_start|>, <|im_end|> are two more.
text::Tokenizer byte_tokenizer();

/// The last line of a prompt that begins with one of these words decides the answer:
///   SAY text      the text ("\n" for a line break)
///   LONG n        n bytes
///   RANDOM        letters that depend on the seed
///   BREAK         fails in the middle
/// Any other prompt is answered with "Hello there."
struct FakeOptions {
  size_t places = 8, queue = 4096;
  std::chrono::microseconds step_time{0};
  int64_t context = 100000;
};

class FakeGenerator final : public llm::Generator {
 public:
  explicit FakeGenerator(FakeOptions options = {});

  llm::RequestId submit(llm::Request request) override;
  void cancel(llm::RequestId request) override;
  std::vector<llm::Progress> step() override;
  bool idle() const override { return queue_.empty() && running_.empty() && cancelled_.empty(); }
  std::vector<float> embedding(std::span<const llm::TokenId> tokens) override;
  const text::Tokenizer& tokenizer() const override { return tokenizer_; }
  std::string model_name() const override { return "fake"; }
  int64_t context_length() const override { return options_.context; }
  std::vector<std::pair<std::string, double>> counters() const override;

  // For tests, from any thread.
  std::atomic<size_t> running{0}, queued{0}, steps{0}, submitted{0}, most_running{0};
  std::atomic<size_t> with_grammar{0};  // requests whose answer has to follow one
  std::atomic<bool> break_steps{false};

 private:
  struct Running {
    llm::RequestId id;
    llm::Request request;
    std::vector<llm::TokenId> answer;
    size_t at = 0;
    bool breaks = false;
    std::string held;
    std::string bytes;  // of a character that is not whole
  };
  void check(std::span<const llm::TokenId> tokens) const;
  llm::Progress advance(Running& r);
  void note();

  FakeOptions options_;
  text::Tokenizer tokenizer_;
  llm::RequestId last_ = 0;
  std::deque<Running> queue_, running_;
  std::vector<llm::RequestId> cancelled_;
};

}  // namespace weft::serve
