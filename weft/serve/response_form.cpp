#include "weft/serve/response_form.h"

#include "weft/base/format.h"
#include "weft/serve/logprobs_json.h"

namespace weft::serve {

namespace {

using Kind = AnswerPart::Kind;

/// What is told apart by an item's kind.
struct KindRow {
  std::string_view prefix;  // of its id
  std::string_view type;
  std::string_view content;  // the type of its one part; empty: a call has none
  std::string_view delta;    // the event of more text
  std::string_view done;     // and of its end
  std::string_view field;    // what its text is called there
};

const KindRow& row_of(Kind kind) {
  static constexpr KindRow kRows[] = {
      {"msg_", "message", "output_text", "response.output_text.delta", "response.output_text.done",
       "text"},
      {"rs_", "reasoning", "reasoning_text", "response.reasoning_text.delta",
       "response.reasoning_text.done", "text"},
      {"fc_", "function_call", "", "response.function_call_arguments.delta",
       "response.function_call_arguments.done", "arguments"},
  };
  return kRows[static_cast<size_t>(kind)];
}

void write_array(JsonWriter& json, std::string_view name, const std::string& elements) {
  json.key(name).raw("[" + elements + "]");
}

void write_usage(JsonWriter& json, const Usage& usage) {
  json.begin_object().field("input_tokens", usage.prompt);
  json.key("input_tokens_details").begin_object().field("cached_tokens", usage.cached).end_object();
  json.field("output_tokens", usage.completion);
  json.key("output_tokens_details").begin_object().field("reasoning_tokens", 0).end_object();
  json.field("total_tokens", usage.prompt + usage.completion).end_object();
}

}  // namespace

ResponseForm::ResponseForm(const CompletionRequest& request, std::string model, std::string id,
                           int64_t created, const text::Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      model_(std::move(model)),
      id_(std::move(id)),
      repeated_(request.repeated),
      created_(created) {}

void ResponseForm::add_event(std::string_view type, Events& events, More more) {
  JsonWriter json;
  json.begin_object().field("type", type).field("sequence_number", number_++);
  more(json);
  events.push_back({json.end_object().take(), type});
}

/// Of what the last item contains.
void ResponseForm::add_item_event(std::string_view type, Events& events, More more) {
  add_event(type, events, [&](JsonWriter& json) {
    json.field("item_id", items_.back().id).field("output_index", items_.size() - 1);
    if (items_.back().kind != Kind::Call) json.field("content_index", 0);
    more(json);
  });
}

void ResponseForm::response_changed(std::string_view type, const Usage* usage, Events& events) {
  add_event(type, events, [&](JsonWriter& json) { write_response(json.key("response"), usage); });
}

void ResponseForm::item_changed(std::string_view type, Events& events) {
  add_event(type, events, [&](JsonWriter& json) {
    write_item(json.field("output_index", items_.size() - 1).key("item"), items_.back());
  });
}

void ResponseForm::write_part(JsonWriter& json, const Item& item) {
  json.begin_object().field("type", row_of(item.kind).content).field("text", item.text);
  if (item.kind == Kind::Content) {
    write_array(json, "annotations", "");
    write_array(json, "logprobs", item.logprobs);
  }
  json.end_object();
}

void ResponseForm::write_item(JsonWriter& json, const Item& item) {
  json.begin_object().field("id", item.id).field("type", row_of(item.kind).type);
  json.field("status", item.status);
  if (item.kind == Kind::Call) {
    json.field("call_id", item.call.id).field("name", item.call.name);
    json.field("arguments", item.text).end_object();
    return;
  }
  if (item.kind == Kind::Content) json.field("role", "assistant");
  if (item.kind == Kind::Reasoning) json.key("summary").begin_array().end_array();
  json.key("content").begin_array();
  if (!item.text.empty()) write_part(json, item);
  json.end_array().end_object();
}

void ResponseForm::write_response(JsonWriter& json, const Usage* usage) const {
  json.begin_object().field("id", "resp_" + id_).field("object", "response");
  json.field("created_at", created_).field("status", status_).field("model", model_);
  json.key("error");
  error_.empty() ? json.null() : json.raw(error_);
  json.key("incomplete_details");
  if (status_ == "incomplete")
    json.begin_object().field("reason", "max_output_tokens").end_object();
  else
    json.null();
  json.key("output").begin_array();
  for (const Item& item : items_) write_item(json, item);
  json.end_array();
  json.key("previous_response_id").null().field("store", false).field("truncation", "disabled");
  json.key("usage");
  if (usage != nullptr)
    write_usage(json, *usage);
  else
    json.null();
  json.raw(repeated_).end_object();
}

void ResponseForm::open_item(const AnswerPart& part, Events& events) {
  close_item(events);
  const std::string id = strformat("{}{}{}", row_of(part.kind).prefix, id_, items_.size());
  items_.push_back({part.kind, id, "", part.call, "in_progress"});
  item_changed("response.output_item.added", events);
  if (part.kind == Kind::Call) return;
  add_item_event("response.content_part.added", events,
                 [&](JsonWriter& json) { write_part(json.key("part"), items_.back()); });
}

void ResponseForm::close_item(Events& events) {
  if (items_.empty() || items_.back().status != "in_progress") return;
  Item& item = items_.back();
  const KindRow& row = row_of(item.kind);
  add_item_event(row.done, events, [&](JsonWriter& json) {
    if (item.kind == Kind::Call) json.field("name", item.call.name);
    if (item.kind == Kind::Content) write_array(json, "logprobs", item.logprobs);
    json.field(row.field, item.text);
  });
  if (item.kind != Kind::Call)
    add_item_event("response.content_part.done", events,
                   [&](JsonWriter& json) { write_part(json.key("part"), item); });
  item.status = status_ == "incomplete" ? status_ : "completed";
  item_changed("response.output_item.done", events);
}

AnswerForm::Events ResponseForm::begin(Choices&) {
  Events events;
  response_changed("response.created", nullptr, events);
  response_changed("response.in_progress", nullptr, events);
  return events;
}

std::string ResponseForm::logprobs_of(std::string_view words) {
  std::string all;
  for (const SpelledToken& t : waiting_.take(words)) {
    JsonWriter json;
    write_logprob(json, t.text, t.token, tokenizer_);
    all += (all.empty() ? "" : ",") + json.take();
  }
  return all;
}

AnswerForm::Events ResponseForm::part(Choice& choice, const AnswerPart* part,
                                      const std::vector<llm::GeneratedToken>& tokens) {
  Events events;
  for (const llm::GeneratedToken& token : tokens)
    waiting_.add({choice.spelled.step(token.token.id), token});
  if (part == nullptr) return events;
  const bool call = part->kind == Kind::Call;
  const std::string& text = call ? part->call.arguments : part->text;
  if (text.empty()) return events;
  if (call || items_.empty() || items_.back().kind != part->kind) open_item(*part, events);
  Item& item = items_.back();
  item.text += text;
  const std::string logprobs = logprobs_of(text);
  if (call) waiting_.clear();
  if (part->kind == Kind::Content && !logprobs.empty())
    item.logprobs += (item.logprobs.empty() ? "" : ",") + logprobs;
  add_item_event(row_of(part->kind).delta, events, [&](JsonWriter& json) {
    if (part->kind == Kind::Content) write_array(json, "logprobs", logprobs);
    json.field("delta", text);
  });
  return events;
}

AnswerForm::Events ResponseForm::end_choice(Choice& choice) {
  Events events;
  if (choice.finish == "length") status_ = "incomplete";
  close_item(events);
  if (choice.finish != "length") status_ = "completed";
  return events;
}

AnswerForm::Events ResponseForm::end(const Usage& usage) {
  Events events;
  response_changed(status_ == "incomplete" ? "response.incomplete" : "response.completed", &usage,
                   events);
  return events;
}

AnswerForm::Events ResponseForm::fail(const Refusal& refusal) {
  Events events;
  status_ = "failed";
  JsonWriter error;
  error.begin_object().field("code", refusal.code).field("message", refusal.message);
  error_ = error.end_object().take();
  response_changed("response.failed", nullptr, events);
  return events;
}

std::string ResponseForm::whole(Choices& choices, const Usage& usage) {
  end_choice(choices.front());
  JsonWriter json;
  write_response(json, &usage);
  return json.take();
}

}  // namespace weft::serve
