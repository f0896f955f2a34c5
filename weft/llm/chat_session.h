// ChatSession: a conversation with one model, from the question to the answer's text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/llm/generator.h"
#include "weft/text/chat.h"

namespace weft::llm {

struct ChatAnswer {
  std::string text;
  Finish finish = Finish::None;
  int64_t tokens = 0, prompt_tokens = 0;
  int64_t forgotten = 0;  ///< messages that were left out, the oldest, for want of context
};

/// Belongs to one thread, as its generator does.
///   ChatSession chat(model);
///   chat.ask("Hello", [](std::string_view part) { std::cout << part; });
class ChatSession {
 public:
  /// `generator` outlives it.
  /// Answers are drawn as `request` says, whose prompt is not looked at.
  explicit ChatSession(Generator& generator, Request request = {});

  using OnText = FunctionRef<void(std::string_view)>;
  using WantsStop = FunctionRef<bool()>;
  /// Gives the answer's parts as they come. Where `wants_stop` says so it ends, and what has come
  /// counts as the answer. An Error leaves the conversation as it was. Errors: those of
  /// ChatTemplate::prompt() and Generator::submit(), llm.step (the generator failed).
  ChatAnswer ask(std::string_view text, OnText on_text, WantsStop wants_stop);
  /// The last question again, its answer forgotten; with another seed. Error: llm.chat, where
  /// there is none.
  ChatAnswer retry(OnText on_text, WantsStop wants_stop);
  bool can_retry() const;

  void clear();  ///< all but the system message
  void set_system(std::string_view text);
  std::string_view system() const { return system_; }
  Request& request() { return request_; }
  const std::vector<text::ChatMessage>& messages() const { return messages_; }

  /// The conversation as OpenAI's API has messages.
  std::string json() const;
  /// Errors: llm.chat, json.format; the conversation stays as it was.
  void load(std::string_view json, std::string_view what);

 private:
  std::vector<text::ChatMessage> with_system() const;
  std::vector<TokenId> prompt(int64_t& forgotten) const;
  ChatAnswer answer(OnText on_text, WantsStop wants_stop);
  void add(const Progress& progress, ChatAnswer& answer, OnText on_text) const;

  Generator* generator_;
  text::ChatTemplate template_;
  Request request_;  // without its prompt
  std::string system_;
  std::vector<text::ChatMessage> messages_;  // without the system's
};

}  // namespace weft::llm
