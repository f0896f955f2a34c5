// Who may ask: what is looked at before a request is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/http/http.h"

namespace weft::http {

struct GateOptions {
  std::string api_key = {};  ///< asked for as "Authorization: Bearer KEY"; empty: none
  /// Names by which the machine is reached, beside addresses and localhost. Others are refused:
  /// a page elsewhere could have made its own name mean this machine (DNS rebinding).
  std::vector<std::string> allowed_hosts = {};
  /// Of pages elsewhere that may ask, as "https://example.org".
  std::vector<std::string> allowed_origins = {};
  /// How a server is told that a name or a page may; empty: it cannot be.
  std::string_view host_advice = {}, origin_advice = {};
};

/// The refusal of a request that comes by a name that is not this machine's (421), from a page of
/// another origin (403), without the key (401), or with it in the address (400). `open`: what needs
/// no key.
std::optional<HttpResponse> refused_at_gate(const HttpRequest& request, const GateOptions& options,
                                            bool open);
/// Fields for pages of other origins, where the request comes from one that is allowed.
HttpFields cross_origin_fields(const HttpRequest& request, const GateOptions& options);

/// Takes as long for a wrong key as for the right one.
bool equal_keys(std::string_view given, std::string_view key);
/// Of "[::1]:8080" "::1", of "localhost:80" "localhost".
std::string host_of(std::string_view authority);
bool is_address(const std::string& host);
bool is_loopback(const std::string& host);

}  // namespace weft::http
