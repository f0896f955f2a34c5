#include "weft/serve/requests.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/serve/request_parts.h"
#include "weft/serve/sampling_fields.h"

namespace weft::serve {

std::string read_role(const Fields& fields) {
  const std::string role = fields.text("role");
  if (role == "developer") return "system";
  if (role == "function") return "tool";
  constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};
  if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles))
    fields.refuse("role", "it has to be system, developer, user, assistant or tool");
  return role;
}

std::string read_tool_name(const Fields& function) {
  const std::string name = function.text("name");
  if (name.empty() || name.size() > 128)
    function.refuse("name", "it has to be a name of 1 to 128 bytes");
  return name;
}

std::string read_chosen_tool(const Fields& function, const CompletionRequest& request) {
  const std::string name = function.text("name");
  if (std::ranges::find(request.tools, name, &Tool::name) == request.tools.end())
    function.refuse("name", "it has to be the name of one of tools");
  return name;
}

bool ToolChoice::may_call(std::string_view tool) const {
  if (kind == Kind::Named) return tool == name;
  return kind != Kind::None &&
         (allowed.empty() || std::ranges::find(allowed, tool) != allowed.end());
}

void read_allowed_tools(const Fields& fields, bool nested, CompletionRequest& request) {
  const std::string mode = fields.text("mode", "auto");
  if (mode != "auto" && mode != "required") fields.refuse("mode", "it has to be auto or required");
  request.tool_choice.kind = mode == "auto" ? ToolChoice::Kind::Auto : ToolChoice::Kind::Required;
  const JsonTree::Value tools = fields.array("tools", kMostTools);
  if (tools.size() == 0) fields.refuse("tools", "it has to name at least one of tools");
  for (const JsonTree::Value one : tools) {
    const std::string path = fields.path("tools") + "[].";
    const Fields tool(one, path);
    request.tool_choice.allowed.push_back(
        read_chosen_tool(nested ? Fields(tool["function"], path + "function.") : tool, request));
  }
}

void read_tool_choice(const Fields& fields, CompletionRequest& request) {
  using Kind = ToolChoice::Kind;
  request.tool_choice.kind = request.tools.empty() ? Kind::None : Kind::Auto;
  if (!fields.has("tool_choice")) return;
  if (fields["tool_choice"].is_object()) {
    const Fields choice(fields["tool_choice"], "tool_choice.");
    if (choice.text("type", "function") == "allowed_tools") {
      const Fields allowed(choice["allowed_tools"], "tool_choice.allowed_tools.");
      return read_allowed_tools(allowed, true, request);
    }
    const Fields function(choice["function"], "tool_choice.function.");
    request.tool_choice = {Kind::Named, read_chosen_tool(function, request)};
    return;
  }
  const std::string choice = fields.text("tool_choice");
  if (choice == "none")
    request.tool_choice.kind = Kind::None;
  else if (choice == "required")
    request.tool_choice.kind = Kind::Required;
  else if (choice != "auto")
    fields.refuse("tool_choice", "it has to be none, auto, required or a function");
  if (choice == "required" && request.tools.empty())
    fields.refuse("tool_choice", "there are no tools that it could require");
}

void refuse_unsupported(const Fields& fields, std::string_view name, std::string_view why) {
  if (fields.has(name))
    refuse_parameter(std::string(name), strformat("{} is not supported: {}", name, why),
                     "unsupported_parameter");
}

namespace {

constexpr size_t kMostMessages = 4096, kMostParts = 1024, kMostCalls = 256;

std::vector<std::string_view> with_common(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> all(more);
  const auto common = common_parameters();
  all.insert(all.end(), common.begin(), common.end());
  return all;
}

// A text, or parts of which each is one.
std::string read_content(const Fields& message) {
  const JsonTree::Value content = message["content"];
  if (content.is_null()) return "";
  if (content.is_text()) return std::string(content.text());
  std::string all;
  for (const JsonTree::Value part : message.array("content", kMostParts)) {
    const Fields fields(part, message.path("content") + "[].");
    const std::string type = fields.text("type");
    if (type != "text" && type != "refusal")
      fields.refuse("type", "the model reads text only: it has to be text");
    all += fields.text(type);
  }
  return all;
}

std::vector<ToolCall> read_tool_calls(const Fields& message) {
  std::vector<ToolCall> calls;
  for (const JsonTree::Value one : message.array("tool_calls", kMostCalls)) {
    const Fields call(one, message.path("tool_calls") + "[].");
    const Fields function(call["function"], call.path("function") + ".");
    calls.push_back({call.text("id"), function.text("name"), function.text("arguments", "{}")});
  }
  return calls;
}

Message read_message(JsonTree::Value value, size_t index) {
  const Fields fields(value, strformat("messages[{}].", index));
  Message message;
  message.role = read_role(fields);
  message.content = read_content(fields);
  message.tool_call_id = fields.text("tool_call_id");
  message.name = fields.text("name");
  message.reasoning = fields.text("reasoning_content");
  if (message.role == "assistant") message.tool_calls = read_tool_calls(fields);
  if (!fields.has("content") && message.tool_calls.empty() && message.role != "assistant")
    fields.refuse("content", "it has to be a string or an array of parts");
  return message;
}

void read_messages(const Fields& fields, CompletionRequest& request) {
  const JsonTree::Value messages = fields.array("messages", kMostMessages);
  if (messages.size() == 0) fields.refuse("messages", "it has to have at least one message");
  for (const JsonTree::Value message : messages)
    request.messages.push_back(read_message(message, request.messages.size()));
}

void read_tools(const Fields& fields, CompletionRequest& request) {
  for (const JsonTree::Value one : fields.array("tools", kMostTools)) {
    const Fields tool(one, strformat("tools[{}].", request.tools.size()));
    if (tool.text("type") != "function") tool.refuse("type", "it has to be function");
    const Fields function(tool["function"], tool.path("function") + ".");
    request.tools.push_back({read_tool_name(function), json_text(one)});
  }
}

/// As vLLM and llama.cpp have it: {"enable_thinking": false}. What the request says itself stays.
void read_template_variables(const Fields& fields, CompletionRequest& request) {
  const JsonTree::Value given = fields.object("chat_template_kwargs");
  if (given.is_null()) return;
  constexpr std::string_view kOwn[] = {"messages",  "tools",     "documents",
                                       "bos_token", "eos_token", "add_generation_prompt"};
  for (const JsonTree::Value one : given)
    if (std::ranges::find(kOwn, one.key()) != std::end(kOwn))
      refuse_parameter(
          "chat_template_kwargs",
          strformat("chat_template_kwargs has '{}', which is not the client's to set", one.key()));
  request.template_variables = json_text(given);
}

void read_max_completion_tokens(const Fields& fields, CompletionRequest& request) {
  const int64_t most = fields.integer("max_completion_tokens", -1, 1, int64_t{1} << 31);
  int64_t& max_tokens = request.request.max_tokens;
  if (most >= 0 && max_tokens >= 0 && most != max_tokens)
    fields.refuse("max_completion_tokens", strformat("max_tokens is {}", max_tokens));
  if (most >= 0) max_tokens = most;
}

void read_chat_logprobs(const Fields& fields, CompletionRequest& request) {
  request.logprobs = fields.flag("logprobs", false);
  const int64_t top = fields.integer("top_logprobs", 0, 0, kMostLogprobs);
  if (top > 0 && !request.logprobs)
    fields.refuse("top_logprobs", "logprobs has to be true for that");
  if (request.logprobs) request.request.sampling.logprobs = static_cast<int32_t>(top);
}

void read_text_logprobs(const Fields& fields, CompletionRequest& request) {
  const int64_t top = fields.integer("logprobs", -1, 0, kMostLogprobs);
  request.logprobs = top >= 0;
  request.request.sampling.logprobs = static_cast<int32_t>(top);
  if (request.echo) request.request.prompt_logprobs = static_cast<int32_t>(top);
}

void read_best_of(const Fields& fields, CompletionRequest& request) {
  request.best_of = fields.integer("best_of", request.n, request.n, INT32_MAX);
  if (request.best_of == request.n) return;
  if (request.stream)
    fields.refuse("best_of", strformat("with stream it has to be n ({}): which answers are the "
                                       "best is known at their ends",
                                       request.n));
  int32_t& logprobs = request.request.sampling.logprobs;
  logprobs = std::max(logprobs, 0);
}

void refuse_other_modalities(const Fields& fields) {
  constexpr size_t kMost = 8;
  for (const JsonTree::Value one : fields.array("modalities", kMost))
    if (!one.is_text() || one.text() != "text")
      refuse_parameter("modalities",
                       strformat("modalities has {}; the model writes text only", shown(one)),
                       "unsupported_parameter");
}

}  // namespace

CompletionRequest parse_chat_request(std::string_view body, const ServeLimits& limits) {
  const JsonTree tree(body, "the body");
  const Fields fields(tree.root());
  fields.only(
      with_common({"messages", "tools", "tool_choice", "parallel_tool_calls", "top_logprobs",
                   "max_completion_tokens", "modalities", "audio", "prediction",
                   "web_search_options", "functions", "function_call", "chat_template_kwargs"}));
  // A prediction is a hint that makes answers faster elsewhere, and changes none.
  for (const std::string_view name : {"audio", "web_search_options"})
    refuse_unsupported(fields, name, "the model writes text from what it is given");
  refuse_other_modalities(fields);
  for (const std::string_view name : {"functions", "function_call"})
    refuse_unsupported(fields, name, "use tools and tool_choice");
  CompletionRequest request;
  read_common(fields, limits, request);
  read_max_completion_tokens(fields, request);
  read_chat_logprobs(fields, request);
  read_messages(fields, request);
  read_tools(fields, request);
  read_tool_choice(fields, request);
  read_template_variables(fields, request);
  return request;
}

CompletionRequest parse_text_request(std::string_view body, const ServeLimits& limits) {
  const JsonTree tree(body, "the body");
  const Fields fields(tree.root());
  fields.only(with_common({"prompt", "suffix", "echo", "best_of"}));
  if (!fields.text("suffix").empty())
    refuse_unsupported(fields, "suffix", "text is only written behind a prompt");
  CompletionRequest request;
  request.api = Api::Text;
  read_common(fields, limits, request);
  request.echo = fields.flag("echo", false);
  read_text_logprobs(fields, request);
  read_best_of(fields, request);
  request.prompts = read_prompts(fields, "prompt", limits.choices);
  const size_t choices = request.prompts.size() * static_cast<size_t>(request.written());
  const std::string_view name = request.best_of > request.n ? "best_of" : "n";
  if (choices > limits.choices)
    refuse_parameter(
        std::string(name),
        strformat("{} prompts and {} = {} are {} answers; at most {} are given",
                  request.prompts.size(), name, request.written(), choices, limits.choices));
  return request;
}

EmbeddingRequest parse_embedding_request(std::string_view body, const ServeLimits& limits) {
  constexpr std::string_view kKnown[] = {"model", "input", "encoding_format", "dimensions", "user"};
  const JsonTree tree(body, "the body");
  const Fields fields(tree.root());
  fields.only(kKnown);
  EmbeddingRequest request;
  request.model = fields.text("model");
  request.inputs = read_prompts(fields, "input", limits.embeddings);
  request.dimensions = fields.integer("dimensions", 0, 1, INT32_MAX);
  const std::string format = fields.text("encoding_format", "float");
  request.base64 = format == "base64";
  if (format != "float" && format != "base64")
    fields.refuse("encoding_format", "it has to be float or base64");
  return request;
}

TokenizeRequest parse_tokenize_request(std::string_view body) {
  constexpr std::string_view kKnown[] = {
      "content",     "prompt", "add_special", "parse_special", "add_special_tokens",
      "with_pieces", "model"};
  const JsonTree tree(body, "the body");
  const Fields fields(tree.root());
  fields.only(kKnown);
  const std::string_view name = fields.has("prompt") ? "prompt" : "content";
  if (!fields.has(name)) fields.refuse(name, "it has to be the text");
  return {fields.text(name), fields.flag("add_special", fields.flag("add_special_tokens", true)),
          fields.flag("parse_special", true), fields.flag("with_pieces", false)};
}

std::vector<llm::TokenId> parse_detokenize_request(std::string_view body) {
  constexpr std::string_view kKnown[] = {"tokens", "model"};
  const JsonTree tree(body, "the body");
  const Fields fields(tree.root());
  fields.only(kKnown);
  if (!fields["tokens"].is_array()) fields.refuse("tokens", "it has to be an array of tokens");
  return read_tokens(fields["tokens"], "tokens");
}

}  // namespace weft::serve
