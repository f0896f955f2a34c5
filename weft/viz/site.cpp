#include "weft/viz/site.h"

#include <new>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/http/refusal.h"
#include "weft/viz/page.h"

namespace weft::viz {

namespace {

using http::HttpRequest, http::HttpResponse, http::Refusal, http::valid_start;

constexpr std::string_view kApi = "/api/";
constexpr size_t kMostParameters = 32;
constexpr std::chrono::milliseconds kBetweenLooks(500);

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Of application/x-www-form-urlencoded (URL Standard, section 5.1).
std::string decoded(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? digit(text[i + 1]) : -1,
              low = i + 2 < text.size() ? digit(text[i + 2]) : -1;
    if (high < 0 || low < 0)
      throw Refusal{400, "invalid_query", "",
                    strformat("'{}' has a % that is no byte", valid_start(text))};
    bytes += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (valid_utf8(bytes) != bytes)
    throw Refusal{400, "invalid_query", "", strformat("'{}' is no UTF-8", valid_start(bytes))};
  return bytes;
}

int64_t level_or_place(const Parameters& parameters, std::string_view name) {
  std::string_view text = parameters.text(name);
  const bool negative = text.starts_with('-');
  if (!negative) return parameters.number(name, 0);
  Parameters positive;
  positive.set(name, text.substr(1));
  return -positive.number(name, 0);
}

Refusal refusal_of(const Error& error) {
  const bool is_absent = error.code() == "viz.view";
  const bool asked_wrong = error.code().starts_with("viz.");
  if (error.kind() == ErrorKind::Memory) return {503, "memory", "", error.message()};
  return {is_absent     ? 404
          : asked_wrong ? 400
                        : 500,
          std::string(error.code()), "", error.message()};
}

HttpResponse page_file(std::string_view path) {
  const auto file = http::find_page_file(page_files(), path);
  if (!file)
    throw Refusal{404, "not_found", "", strformat("there is nothing at '{}'", valid_start(path))};
  return {200, std::string(file->content), std::string(file->content_type), http::page_fields()};
}

}  // namespace

Parameters query_parameters(std::string_view query) {
  Parameters parameters;
  for (size_t count = 0; !query.empty(); ++count) {
    if (count == kMostParameters)
      throw Refusal{400, "invalid_query", "",
                    strformat("there are more than {} parameters", kMostParameters)};
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    if (pair.empty()) continue;
    parameters.set(decoded(pair.substr(0, equals)),
                   equals == std::string_view::npos ? "" : decoded(pair.substr(equals + 1)));
  }
  return parameters;
}

Site::Site(std::string file, std::string token, std::string history)
    : file_(std::move(file)),
      history_(std::move(history)),
      gate_{.api_key = std::move(token)},
      session_(Session::open(file_)),
      looked_(Clock::now()) {}

std::shared_ptr<const Session> Site::session() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - looked_ < kBetweenLooks) return session_;
  if (session_->stale()) session_ = Session::open(file_);
  looked_ = Clock::now();
  return session_;
}

std::string Site::api(std::string_view name, Parameters parameters) {
  if (parameters.has("history"))
    throw Refusal{400, "viz.parameter", "",
                  "requests name no files; start the server with --history FILE"};
  if (name == "statistics" && !history_.empty()) parameters.set("history", history_);
  const auto now = session();
  if (name != "drawing" && name != "tile" && name != "box")
    return view_json(*now, name, parameters);
  const auto drawing = drawings_.get(now, parameters);
  if (name == "drawing") return drawing->json();
  if (name == "tile")
    return drawing->tile_json(
        {static_cast<int>(std::clamp<int64_t>(level_or_place(parameters, "level"), -1000, 1000)),
         level_or_place(parameters, "x"), level_or_place(parameters, "y")});
  const auto box =
      parameters.has("node")
          ? drawing->box_of(static_cast<uint64_t>(parameters.number("node", 0)))
          : static_cast<uint32_t>(std::min<int64_t>(parameters.number("box", 0), UINT32_MAX));
  return drawing->box_json(box, parameters.has("without_waiting"));
}

HttpResponse Site::dispatch(const HttpRequest& request) {
  const std::string_view path = request.path();
  const bool is_api = path.starts_with(kApi);
  if (auto refused = http::refused_at_gate(request, gate_, !is_api)) return *refused;
  if (request.method != "GET" && request.method != "HEAD")
    throw Refusal{405, "method_not_allowed", "",
                  strformat("only GET is taken, not {}", valid_start(request.method))};
  if (!is_api) return page_file(path);
  return {200, api(path.substr(kApi.size()), query_parameters(request.query()))};
}

HttpResponse Site::answer(const HttpRequest& request) {
  try {
    return dispatch(request);
  } catch (const Refusal& refusal) {
    return http::error_response(refusal);
  } catch (const Error& error) {
    return http::error_response(refusal_of(error));
  } catch (const std::bad_alloc&) {
    return http::error_response({503, "memory", "", "the system has no more memory to give"});
  }
}

}  // namespace weft::viz
