#include "weft/http/refusal.h"

#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"

namespace weft::http {

namespace {

std::string_view type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403 || status == 421) return "permission_error";
  if (status == 429) return "rate_limit_error";
  if (status == 503) return "overloaded_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

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

std::string valid_start(std::string_view text) {
  constexpr size_t kMost = 64;
  std::string start = valid_utf8(text.substr(0, kMost));
  if (text.size() > kMost) start += "...";
  return start;
}

}  // namespace weft::http
