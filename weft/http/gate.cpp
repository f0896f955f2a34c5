#include "weft/http/gate.h"

#include <arpa/inet.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/http/refusal.h"

namespace weft::http {

namespace {

bool is_listed(std::string_view name, const std::vector<std::string>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& known) { return equal_ignoring_case(name, known); });
}

// An address cannot be made to mean another machine; a name can, by whoever it belongs to.
bool is_own_host(const HttpRequest& request, const GateOptions& options) {
  const std::string_view field = request.field("Host");
  const std::string host = host_of(field);
  const bool old = !request.chunks;  // HTTP/1.0, which browsers do not speak
  if (old && request.count("Host") == 0) return true;
  return request.count("Host") == 1 &&
         (is_address(host) || equal_ignoring_case(host, "localhost") ||
          is_listed(host, options.allowed_hosts) || is_listed(field, options.allowed_hosts));
}

// "http://HOST" of a page that came from here.
bool is_own_origin(std::string_view origin, std::string_view host) {
  const size_t scheme = origin.find("://");
  return !host.empty() && scheme != std::string_view::npos &&
         (origin.substr(0, scheme) == "http" || origin.substr(0, scheme) == "https") &&
         equal_ignoring_case(origin.substr(scheme + 3), host);
}

bool is_allowed_origin(const HttpRequest& request, const GateOptions& options) {
  if (request.count("Origin") == 0) return true;
  const std::string_view origin = request.field("Origin");
  return request.count("Origin") == 1 && (is_own_origin(origin, request.field("Host")) ||
                                          is_listed(origin, options.allowed_origins));
}

bool has_key(const HttpRequest& request, const std::string& key) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = request.field("Authorization");
  return request.count("Authorization") == 1 &&
         equal_ignoring_case(given.substr(0, kScheme.size()), kScheme) &&
         equal_keys(given.substr(kScheme.size()), key);
}

// Addresses end up in logs and histories. Values may have these words in them.
bool has_key_in_address(std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&')),
                           name = pair.substr(0, pair.find('='));
    for (const std::string_view word : {"key", "token", "auth"})
      if (name.find(word) != std::string_view::npos) return true;
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
  }
  return false;
}

}  // namespace

bool equal_keys(std::string_view given, std::string_view key) {
  if (key.empty()) return false;
  unsigned different = given.size() != key.size();
  for (size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned>(given[i] ^ key[i % key.size()]);
  return different == 0;
}

std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    return std::string(authority.substr(1, end == std::string_view::npos ? end : end - 1));
  }
  return std::string(authority.substr(0, authority.find(':')));
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool is_loopback(const std::string& host) {
  in_addr four;
  in6_addr six;
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six) != 0;
  return equal_ignoring_case(host, "localhost");
}

std::optional<HttpResponse> refused_at_gate(const HttpRequest& request, const GateOptions& options,
                                            bool open) {
  if (!is_own_host(request, options)) {
    return error_response({421, "host_not_allowed", "",
                           strformat("the server does not answer to the name '{}'; use its "
                                     "address{}",
                                     valid_start(request.field("Host")), options.host_advice)});
  }
  if (!is_allowed_origin(request, options)) {
    return error_response({403, "origin_not_allowed", "",
                           strformat("pages from '{}' may not ask{}",
                                     valid_start(request.field("Origin")), options.origin_advice)});
  }
  if (has_key_in_address(request.query())) {
    return error_response({400, "key_in_address", "",
                           "the address has a key in it, where it would be logged; send it as "
                           "'Authorization: Bearer KEY'"});
  }
  if (!open && !options.api_key.empty() && !has_key(request, options.api_key)) {
    HttpResponse response =
        error_response({401, "invalid_api_key", "",
                        "the API key is missing or wrong; send it as 'Authorization: Bearer KEY'"});
    response.fields.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  return std::nullopt;
}

HttpFields cross_origin_fields(const HttpRequest& request, const GateOptions& options) {
  const std::string_view origin = request.field("Origin");
  if (origin.empty() || !is_listed(origin, options.allowed_origins)) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}};
}

}  // namespace weft::http
