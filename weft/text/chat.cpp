#include "weft/text/chat.h"

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/io/json_reader.h"

namespace weft::text {

// github.com/openai/openai-python/blob/release-v0.28.0/chatml.md; tools and their calls as Hermes
// models write them: github.com/NousResearch/Hermes-Function-Calling.
const std::string_view ChatTemplate::kChatMl =
    R"({% set told = messages and messages[0].role == 'system' %}
{% if tools %}
<|im_start|>system
{% if told %}
{{ messages[0].content }}

{% endif %}
# Tools

These functions can be called:
<tools>
{% for tool in tools %}
{{ tool | tojson }}
{% endfor %}
</tools>

To call one, write a JSON object with its name and arguments in tags:
<tool_call>
{"name": "NAME", "arguments": {}}
</tool_call><|im_end|>
{% endif %}
{% for message in (messages[1:] if tools and told else messages) %}
<|im_start|>{{ 'user' if message.role == 'tool' else message.role }}
{% if message.role == 'tool' %}
<tool_response>
{{ message.content }}
</tool_response>
{%- else %}
{{ message.content or '' }}
{%- endif %}
{% for call in message.tool_calls or [] %}

<tool_call>
{% set given = call.function.arguments %}
{"name": {{ call.function.name | tojson }}, "arguments": {{ given if given is string else given | tojson }}}
</tool_call>
{%- endfor %}
<|im_end|>
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
)";

namespace {

std::string token_text(const Tokenizer& tokenizer, std::string_view role) {
  const std::optional<TokenId> id = tokenizer.named_token(role);
  return id ? tokenizer.id_to_token(*id).value_or("") : "";
}

/// Whether it is one JSON object and nothing else.
bool is_json_object(std::string_view text) {
  JsonReader reader(text, "arguments");
  reader.allow_nul();
  try {
    if (reader.peek() != '{') return false;
    reader.skip();
    reader.end();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void append_call(JsonWriter& json, const ToolCall& call) {
  json.begin_object().field("id", call.id).field("type", "function").key("function");
  json.begin_object().field("name", call.name).key("arguments");
  // Templates expect a dict. A model's that are no JSON stay a text.
  is_json_object(call.arguments) ? json.raw(call.arguments) : json.value(call.arguments);
  json.end_object().end_object();
}

void append_message(JsonWriter& json, const ChatMessage& message) {
  json.begin_object().field("role", message.role).field("content", message.content);
  if (!message.reasoning.empty()) json.field("reasoning_content", message.reasoning);
  if (!message.name.empty()) json.field("name", message.name);
  if (!message.tool_call_id.empty()) json.field("tool_call_id", message.tool_call_id);
  if (!message.tool_calls.empty()) {
    json.key("tool_calls").begin_array();
    for (const ToolCall& call : message.tool_calls) append_call(json, call);
    json.end_array();
  }
  json.end_object();
}

/// Checks that `text` is one JSON value before it becomes a part of another text.
std::string_view checked_json(std::string_view text, std::string_view what) {
  JsonReader reader(text, what);
  reader.allow_nul();
  reader.allow_strings_of(text.size());
  reader.skip();
  reader.end();
  return text;
}

/// The members of a JSON object, without its braces.
std::string_view members(std::string_view text) {
  JsonReader reader(checked_json(text, "variables"), "variables");
  if (reader.peek() != '{') reader.fail_here("expected an object");
  const size_t begin = text.find('{') + 1, end = text.rfind('}');
  const std::string_view inside = text.substr(begin, end - begin);
  return inside.find_first_not_of(" \t\r\n") == std::string_view::npos ? "" : inside;
}

}  // namespace

std::string chat_json(std::span<const ChatMessage> messages) {
  JsonWriter json;
  json.begin_array();
  for (const ChatMessage& message : messages) append_message(json, message);
  return json.end_array().take();
}

ChatTemplate::ChatTemplate(const Tokenizer& tokenizer)
    : ChatTemplate(tokenizer, tokenizer.chat_template()) {}

ChatTemplate::ChatTemplate(const Tokenizer& tokenizer, std::string_view source)
    : ChatTemplate(source, token_text(tokenizer, "bos"), token_text(tokenizer, "eos")) {}

ChatTemplate::ChatTemplate(std::string_view source, std::string_view bos_token,
                           std::string_view eos_token)
    : template_(source.empty() ? kChatMl : source), bos_token_(bos_token), eos_token_(eos_token) {}

std::string ChatTemplate::prompt(std::span<const ChatMessage> messages,
                                 const ChatOptions& options) const {
  return prompt(chat_json(messages), options);
}

std::string ChatTemplate::prompt(std::string_view messages_json, const ChatOptions& options) const {
  JsonWriter json;
  json.begin_object();
  json.field("bos_token", bos_token_).field("eos_token", eos_token_);
  json.key("messages").raw(checked_json(messages_json, "messages"));
  json.field("add_generation_prompt", options.add_generation_prompt);
  json.key("tools");
  options.tools.empty() ? json.null() : json.raw(checked_json(options.tools, "tools"));
  json.key("documents");
  options.documents.empty() ? json.null() : json.raw(checked_json(options.documents, "documents"));
  std::string variables = json.end_object().take();
  if (!options.variables.empty()) {
    // Later ones win: what the caller says goes before what is said here.
    if (const std::string_view more = members(options.variables); !more.empty())
      variables.insert(variables.size() - 1, "," + std::string(more));
  }
  return template_.render(variables, options.render);
}

}  // namespace weft::text
