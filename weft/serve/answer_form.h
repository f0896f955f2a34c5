// AnswerForm: what an answer looks like on its way: one of OpenAI's interfaces.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "weft/serve/answer_parts.h"
#include "weft/serve/generator_loop.h"
#include "weft/serve/refusal.h"
#include "weft/serve/requests.h"

namespace weft::serve {

/// Of an answer's tokens: the mean of their probabilities' logarithms.
class Likelihood {
 public:
  void add(double logprob) {
    sum_ += logprob;
    ++count_;
  }
  /// The least there is for what is no number.
  double mean() const {
    if (count_ == 0) return 0;
    return std::isnan(sum_) ? -std::numeric_limits<double>::infinity() : sum_ / count_;
  }

 private:
  double sum_ = 0, count_ = 0;
};

/// One of the answers to a request.
struct Choice {
  Ticket ticket = 0;
  size_t index = 0;
  AnswerParts parts;
  text::DecodeStream spelled;  ///< of its tokens, as probabilities list them
  text::DecodeStream plain;    ///< and without special ones, as its text has them
  std::string content = {}, reasoning = {};
  std::vector<ToolCall> calls = {};
  std::vector<llm::GeneratedToken> tokens = {};  ///< where probabilities are wanted
  size_t text_offset = 0;  ///< of the next token among them, in characters of the text
  Likelihood likelihood = {};
  std::string_view finish = {};  ///< the reason; empty: it goes on
};

struct Usage {
  size_t prompt = 0, completion = 0;
  size_t cached = 0;  ///< of the prompt, that were there before
};

struct StreamEvent {
  std::string data;
  std::string_view name = {};
};

/// Belongs to one request. What it gives is JSON: the events of a stream, or a whole answer.
class AnswerForm {
 public:
  using Choices = std::vector<Choice>;
  using Events = std::vector<StreamEvent>;

  virtual ~AnswerForm() = default;
  virtual Events begin(Choices& choices) = 0;
  /// One more part, or none, and the tokens that came with it.
  virtual Events part(Choice& choice, const AnswerPart* part,
                      const std::vector<llm::GeneratedToken>& tokens) = 0;
  virtual Events end_choice(Choice& choice) = 0;
  virtual Events end(const Usage& usage) = 0;
  virtual Events fail(const Refusal& refusal) = 0;  ///< the last ones
  /// Whether whole() is made of the parts, which it is then given though nobody hears of events.
  virtual bool gathers_parts() const { return false; }
  /// What no event came before.
  virtual std::string whole(Choices& choices, const Usage& usage) = 0;
};

}  // namespace weft::serve
