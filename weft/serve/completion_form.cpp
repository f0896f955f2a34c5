#include "weft/serve/completion_form.h"

#include "weft/base/json_writer.h"
#include "weft/base/version.h"
#include "weft/serve/logprobs_json.h"

namespace weft::serve {

namespace {

void begin_object(JsonWriter& json, const CompletionHead& head, bool chunk) {
  const std::string_view object = !head.chat ? "text_completion"
                                  : chunk    ? "chat.completion.chunk"
                                             : "chat.completion";
  json.begin_object().field("id", head.id).field("object", object);
  json.field("created", head.created).field("model", head.model);
  json.field("system_fingerprint", "weft");
  json.key("choices").begin_array();
}

void write_usage(JsonWriter& json, const Usage& usage) {
  json.begin_object().field("prompt_tokens", usage.prompt);
  json.key("prompt_tokens_details")
      .begin_object()
      .field("cached_tokens", usage.cached)
      .end_object();
  json.field("completion_tokens", usage.completion);
  json.field("total_tokens", usage.prompt + usage.completion).end_object();
}

void write_call(JsonWriter& json, const ToolCall& call, const size_t* index) {
  json.begin_object();
  if (index != nullptr) json.field("index", *index);
  json.field("id", call.id).field("type", "function").key("function").begin_object();
  json.field("name", call.name).field("arguments", call.arguments);
  json.end_object().end_object();
}

void write_message(JsonWriter& json, const Choice& choice) {
  json.begin_object().field("role", "assistant").key("content");
  choice.content.empty() && !choice.calls.empty() ? json.null() : json.value(choice.content);
  json.key("refusal").null();
  if (!choice.reasoning.empty()) json.field("reasoning_content", choice.reasoning);
  if (!choice.calls.empty()) {
    json.key("tool_calls").begin_array();
    for (const ToolCall& call : choice.calls) write_call(json, call, nullptr);
    json.end_array();
  }
  json.end_object();
}

void write_delta(JsonWriter& json, const Choice& choice, const AnswerPart* part) {
  json.begin_object();
  if (part != nullptr && part->kind == AnswerPart::Kind::Call) {
    const size_t index = choice.calls.size() - 1;
    json.key("tool_calls").begin_array();
    write_call(json, part->call, &index);
    json.end_array();
  } else if (part != nullptr) {
    const bool words = part->kind == AnswerPart::Kind::Content;
    json.field(words ? "content" : "reasoning_content", part->text);
  }
  json.end_object();
}

void end_choice_object(JsonWriter& json, const Choice& choice) {
  json.key("finish_reason");
  choice.finish.empty() ? json.null() : json.value(choice.finish);
  json.end_object();
}

void end_chunk(JsonWriter& json, const CompletionHead& head) {
  json.end_array();
  if (head.include_usage) json.key("usage").null();
  json.end_object();
}

}  // namespace

std::string CompletionForm::whole(Choices& choices, const Usage& usage) {
  JsonWriter json;
  begin_object(json, head_, false);
  for (Choice& choice : choices) {
    json.begin_object().field("index", choice.index);
    if (head_.chat)
      write_message(json.key("message"), choice);
    else
      json.field("text", choice.content);
    write_logprobs(json.key("logprobs"), head_, choice, choice.tokens, tokenizer_);
    end_choice_object(json, choice);
  }
  write_usage(json.end_array().key("usage"), usage);
  return json.end_object().take();
}

/// A chat's first chunk says who speaks, a text's repeats the prompt where that is wanted.
AnswerForm::Events CompletionForm::begin(Choices& choices) {
  Events events;
  for (Choice& choice : choices) {
    if (head_.chat) events.push_back({role_chunk(choice)});
    if (choice.content.empty() || head_.logprobs) continue;  // with its probabilities
    const AnswerPart echo{AnswerPart::Kind::Content, choice.content};
    for (StreamEvent& event : part(choice, &echo, {})) events.push_back(std::move(event));
  }
  return events;
}

std::string CompletionForm::role_chunk(const Choice& choice) const {
  JsonWriter json;
  begin_object(json, head_, true);
  json.begin_object().field("index", choice.index).key("delta").begin_object();
  json.field("role", "assistant").field("content", "").end_object();
  json.key("logprobs").null();
  end_choice_object(json, choice);
  end_chunk(json, head_);
  return json.take();
}

AnswerForm::Events CompletionForm::part(Choice& choice, const AnswerPart* part,
                                        const std::vector<llm::GeneratedToken>& tokens) {
  JsonWriter json;
  begin_object(json, head_, true);
  json.begin_object().field("index", choice.index);
  if (head_.chat)
    write_delta(json.key("delta"), choice, part);
  else
    json.field("text", part == nullptr ? "" : part->text);
  write_logprobs(json.key("logprobs"), head_, choice, tokens, tokenizer_);
  end_choice_object(json, choice);
  end_chunk(json, head_);
  return {{json.take()}};
}

AnswerForm::Events CompletionForm::end(const Usage& usage) {
  if (!head_.include_usage) return {{"[DONE]"}};
  JsonWriter json;
  begin_object(json, head_, true);
  write_usage(json.end_array().key("usage"), usage);
  return {{json.end_object().take()}, {"[DONE]"}};
}

}  // namespace weft::serve
