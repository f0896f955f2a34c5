// Bodies of /v1/responses, to the request that /v1/chat/completions would have been.
#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/json_writer.h"
#include "weft/serve/request_parts.h"
#include "weft/serve/sampling_fields.h"

namespace weft::serve {

namespace {

constexpr size_t kMostItems = 4096, kMostParts = 1024, kMostIncluded = 32;

std::string read_content(const Fields& item) {
  if (item["content"].is_text()) return item.text("content");
  std::string all;
  for (const JsonTree::Value part : item.array("content", kMostParts)) {
    const Fields fields(part, item.path("content") + "[].");
    const std::string type = fields.text("type");
    if (type != "input_text" && type != "output_text" && type != "refusal")
      fields.refuse("type", "the model reads text only: it has to be input_text or output_text");
    all += fields.text(type == "refusal" ? type : "text");
  }
  return all;
}

void add_call(const Fields& item, std::vector<Message>& messages) {
  const ToolCall call{item.text("call_id"), item.text("name"), item.text("arguments", "{}")};
  if (messages.empty() || messages.back().role != "assistant")
    messages.push_back({"assistant", ""});
  messages.back().tool_calls.push_back(call);
}

void add_item(const Fields& item, std::vector<Message>& messages) {
  const std::string type = item.text("type", "message");
  if (type == "message") {
    messages.push_back({read_role(item), read_content(item)});
  } else if (type == "function_call") {
    add_call(item, messages);
  } else if (type == "function_call_output") {
    Message result{"tool",
                   item["output"].is_text() ? item.text("output") : json_text(item["output"])};
    result.tool_call_id = item.text("call_id");
    messages.push_back(std::move(result));
  } else if (type != "reasoning") {  // thoughts that are over are not read again
    item.refuse("type", "it has to be message, function_call, function_call_output or reasoning");
  }
}

void read_input(const Fields& fields, CompletionRequest& request) {
  std::vector<Message>& messages = request.messages;
  if (fields.has("instructions")) messages.push_back({"system", fields.text("instructions")});
  const size_t before = messages.size();
  if (fields["input"].is_text()) {
    messages.push_back({"user", fields.text("input")});
  } else {
    size_t index = 0;
    for (const JsonTree::Value item : fields.array("input", kMostItems))
      add_item(Fields(item, strformat("input[{}].", index++)), messages);
  }
  if (messages.size() == before)
    fields.refuse("input", "it has to be a string or an array of items");
}

/// As chats have it: {"type": "function", "function": {"name": ..}}.
std::string nested_tool(JsonTree::Value tool) {
  JsonWriter json;
  json.begin_object().field("type", "function").key("function").begin_object();
  for (const JsonTree::Value member : tool)
    if (member.key() != "type") json.key(member.key()).raw(json_text(member));
  return json.end_object().end_object().take();
}

void read_tools(const Fields& fields, CompletionRequest& request) {
  for (const JsonTree::Value one : fields.array("tools", kMostTools)) {
    const Fields tool(one, strformat("tools[{}].", request.tools.size()));
    if (tool.text("type") != "function") tool.refuse("type", "it has to be function");
    request.tools.push_back({read_tool_name(tool), nested_tool(one)});
  }
}

void read_choice(const Fields& fields, CompletionRequest& request) {
  if (!fields["tool_choice"].is_object()) return read_tool_choice(fields, request);
  const Fields choice(fields["tool_choice"], "tool_choice.");
  const std::string type = choice.text("type");
  if (type == "allowed_tools") return read_allowed_tools(choice, false, request);
  if (type != "function") choice.refuse("type", "it has to be function or allowed_tools");
  request.tool_choice = {ToolChoice::Kind::Named, read_chosen_tool(choice, request)};
}

std::string read_format(const Fields& fields) {
  if (!fields.has("text")) return "";
  const Fields text(fields["text"], "text.");
  if (!text.has("format")) return "";
  const Fields format(text["format"], "text.format.");
  return answer_schema(format, false);
}

/// What an answer shall have besides: of all that there is, probabilities are what there is here.
void read_include(const Fields& fields, CompletionRequest& request) {
  constexpr std::string_view kLogprobs = "message.output_text.logprobs";
  constexpr std::string_view kNeverThere[] = {
      "reasoning.encrypted_content",   "file_search_call.results",
      "web_search_call.results",       "web_search_call.action.sources",
      "message.input_image.image_url", "computer_call_output.output.image_url",
      "code_interpreter_call.outputs",
  };
  const int64_t top = fields.integer("top_logprobs", 0, 0, kMostLogprobs);
  request.logprobs = top > 0;
  for (const JsonTree::Value one : fields.array("include", kMostIncluded)) {
    const std::string_view name = one.is_text() ? one.text() : "";
    if (name == kLogprobs)
      request.logprobs = true;
    else if (std::ranges::find(kNeverThere, name) == std::end(kNeverThere))
      refuse_parameter("include", strformat("include has {}; what can be included is {}",
                                            shown(one), kLogprobs));
  }
  if (request.logprobs) request.request.sampling.logprobs = static_cast<int32_t>(top);
}

/// What the response's object says again.
std::string repeated(const Fields& fields, const CompletionRequest& request) {
  JsonWriter json;
  const auto member = [&](std::string_view name, std::string_view otherwise) {
    json.key(name).raw(fields.has(name) ? json_text(fields[name]) : std::string(otherwise));
  };
  json.begin_object();
  for (const std::string_view name : {"instructions", "max_output_tokens", "user", "reasoning"})
    member(name, "null");
  member("metadata", "{}");
  member("parallel_tool_calls", "true");
  member("text", R"({"format":{"type":"text"}})");
  member("tool_choice", request.tools.empty() ? "\"none\"" : "\"auto\"");
  member("tools", "[]");
  member("top_logprobs", "0");
  json.field("temperature", static_cast<double>(request.request.sampling.temperature));
  json.field("top_p", static_cast<double>(request.request.sampling.top_p));
  const std::string object = json.end_object().take();
  return object.substr(1, object.size() - 2);
}

}  // namespace

CompletionRequest parse_response_request(std::string_view body, const ServeLimits& limits) {
  const JsonTree tree(body, "the body");
  const Fields fields(tree.root());
  constexpr std::string_view kKnown[] = {
      "model", "input", "instructions", "max_output_tokens", "temperature", "top_p", "stream",
      "stream_options", "tools", "tool_choice", "parallel_tool_calls", "text", "stop", "seed",
      "top_k", "min_p", "typical_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
      "logit_bias", "ignore_eos", "include", "top_logprobs", "repeat_penalty", "repeat_last_n",
      "mirostat", "mirostat_tau", "mirostat_eta", "stop_token_ids", "min_tokens", "cache_prompt",
      // Refused below, with what is there instead.
      "previous_response_id", "conversation", "background", "prompt",
      // Mean nothing here.
      "store", "metadata", "user", "reasoning", "truncation", "service_tier", "safety_identifier",
      "prompt_cache_key", "prompt_cache_retention", "max_tool_calls"};
  fields.only(kKnown);
  for (const std::string_view name : {"previous_response_id", "conversation", "prompt"})
    refuse_unsupported(fields, name, "nothing is kept between requests; send the whole of input");
  if (fields.flag("background", false))
    refuse_unsupported(fields, "background", "nothing is kept; use stream");
  CompletionRequest request;
  request.api = Api::Responses;
  read_common(fields, limits, request);
  request.request.max_tokens = fields.integer("max_output_tokens", -1, 1, int64_t{1} << 31);
  read_input(fields, request);
  read_tools(fields, request);
  read_choice(fields, request);
  request.answer_schema = read_format(fields);
  read_include(fields, request);
  request.repeated = repeated(fields, request);
  return request;
}

}  // namespace weft::serve
