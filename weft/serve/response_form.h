// ResponseForm: the objects and events of /v1/responses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/base/json_writer.h"
#include "weft/serve/answer_form.h"
#include "weft/serve/waiting_tokens.h"

namespace weft::serve {

/// Of one answer: items of thoughts, of words and of calls, in the order in which they came
/// (https://platform.openai.com/docs/api-reference/responses).
class ResponseForm final : public AnswerForm {
 public:
  /// `id` is what ids end with; `tokenizer` outlives it.
  ResponseForm(const CompletionRequest& request, std::string model, std::string id, int64_t created,
               const text::Tokenizer& tokenizer);

  Events begin(Choices& choices) override;
  Events part(Choice& choice, const AnswerPart* part,
              const std::vector<llm::GeneratedToken>& tokens) override;
  Events end_choice(Choice& choice) override;
  Events end(const Usage& usage) override;
  Events fail(const Refusal& refusal) override;
  bool gathers_parts() const override { return true; }
  std::string whole(Choices& choices, const Usage& usage) override;

 private:
  struct Item {
    AnswerPart::Kind kind;
    std::string id;
    std::string text;  // a call's arguments
    ToolCall call;
    std::string_view status;
    std::string logprobs = {};  // of words: JSON, one behind the other
  };
  static void write_part(JsonWriter& json, const Item& item);
  /// JSON, one behind the other.
  std::string logprobs_of(std::string_view words);
  static void write_item(JsonWriter& json, const Item& item);
  using More = FunctionRef<void(JsonWriter&)>;
  void add_event(std::string_view type, Events& events, More more);
  void add_item_event(std::string_view type, Events& events, More more);
  void open_item(const AnswerPart& part, Events& events);
  void close_item(Events& events);
  void item_changed(std::string_view type, Events& events);
  void response_changed(std::string_view type, const Usage* usage, Events& events);
  void write_response(JsonWriter& json, const Usage* usage) const;

  const text::Tokenizer& tokenizer_;
  const std::string model_, id_, repeated_;
  const int64_t created_;
  std::string_view status_ = "in_progress";
  std::string error_;  // JSON
  std::vector<Item> items_;
  WaitingTokens waiting_;
  size_t number_ = 0;  // of the next event
};

}  // namespace weft::serve
