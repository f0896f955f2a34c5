#include "weft/serve/refusal.h"

#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"

namespace weft::serve {

namespace {

std::string_view type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403 || status == 421) return "permission_error";
  if (status == 429) return "rate_limit_error";
  if (status == 503) return "overloaded_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

struct CodeRow {
  std::string_view code, api_code;
  int status;
};

constexpr CodeRow kCodes[] = {
    {"llm.prompt", "invalid_prompt", 400},
    {"llm.context", "context_length_exceeded", 400},
    {"llm.queue", "overloaded", 429},
    {"llm.sampling", "invalid_parameter", 400},
    {"llm.schema", "invalid_schema", 400},
    {"llm.grammar", "invalid_schema", 400},
    {"memory", "out_of_memory", 503},
    {"json.format", "invalid_json", 400},
    {"template.raised", "invalid_messages", 400},  // the template's own words
    {"template.value", "invalid_messages", 400},
    {"template.limit", "invalid_messages", 400},
};

}  // namespace

std::string error_json(const Refusal& refusal) {
  JsonWriter json;
  json.begin_object().key("error").begin_object();
  json.field("message", refusal.message).field("type", type_of(refusal.status)).key("param");
  refusal.param.empty() ? json.null() : json.value(refusal.param);
  json.field("code", refusal.code);
  return json.end_object().end_object().take();
}

HttpResponse error_response(const Refusal& refusal) {
  HttpResponse response{refusal.status, error_json(refusal)};
  if (refusal.status == 429 || refusal.status == 503)
    response.fields.emplace_back("Retry-After", "1");
  return response;
}

Refusal refusal_of(std::string_view code, std::string_view message) {
  for (const CodeRow& row : kCodes)
    if (row.code == code) return {row.status, std::string(row.api_code), "", std::string(message)};
  return {500, "server_error", "", std::string(message)};
}

Refusal refusal_of(const Error& error) {
  std::string_view message = error.message();
  // The advice of a reader of files does not fit a request.
  if (error.code() == "json.format") message = message.substr(0, message.rfind("; the file"));
  return refusal_of(error.code(), message);
}

std::string valid_start(std::string_view text) {
  constexpr size_t kMost = 64;
  std::string start = valid_utf8(text.substr(0, kMost));
  if (text.size() > kMost) start += "...";
  return start;
}

}  // namespace weft::serve
