#include "weft/serve/refusal.h"

namespace weft::serve {

namespace {

struct CodeRow {
  std::string_view code, api_code;
  int status;
};

constexpr CodeRow kCodes[] = {
    {"llm.prompt", "invalid_prompt", 400},
    {"llm.context", "context_length_exceeded", 400},
    {"llm", "unsupported_parameter", 400},
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

}  // namespace weft::serve
