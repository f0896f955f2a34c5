// AnswerParts: what a model writes, told apart as it comes: thoughts, words, calls of tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/serve/requests.h"

namespace weft::serve {

struct AnswerPart {
  enum class Kind : uint8_t { Content, Reasoning, Call };
  Kind kind = Kind::Content;
  std::string text;
  ToolCall call = {};
};

/// Thoughts stand between <think> and </think> at the beginning. Calls are JSON between <tool_call>
/// and </tool_call> (Hermes, Qwen), or all of the answer is one or more of {"name": ..,
/// "parameters": ..} (Llama 3). What is no call of a tool that there is stays text.
class AnswerParts {
 public:
  /// `tools`: the names of those that may be called; none: nothing is a call. `begun`: what the
  /// prompt already has of the answer.
  explicit AnswerParts(std::vector<std::string> tools = {}, std::string_view begun = "");
  /// What is certain by now; what may be the beginning of a tag or of a call is held back.
  std::vector<AnswerPart> feed(std::string_view text);
  /// What was held back.
  std::vector<AnswerPart> finish();
  bool has_calls() const { return calls_ != 0; }

 private:
  enum class State : uint8_t { Start, Thinking, Words, Tagged, Bare };

  bool step(std::vector<AnswerPart>& parts, bool last);
  bool start(bool last);
  bool until(std::string_view tag, State then, std::vector<AnswerPart>& parts, bool last);
  void emit(std::vector<AnswerPart>& parts, std::string_view text);
  bool tagged_call(std::vector<AnswerPart>& parts, bool last);
  void bare_calls(std::vector<AnswerPart>& parts);
  bool read_call(std::string_view json, ToolCall& call) const;

  std::vector<std::string> tools_;
  State state_ = State::Start;
  std::string held_;
  size_t calls_ = 0, searched_ = 0;  // of held_ while it is a call
  bool trim_ = false;                // line breaks behind a tag are nobody's words
};

}  // namespace weft::serve
