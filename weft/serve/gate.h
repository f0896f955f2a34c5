// Who may ask: what is looked at before a request is.
#pragma once

#include <optional>

#include "weft/serve/http.h"
#include "weft/serve/options.h"

namespace weft::serve {

/// The refusal of a request that comes by a name that is not this machine's (421), from a page of
/// another origin (403), without the key (401), or with it in the address (400). `open`: what needs
/// no key.
std::optional<HttpResponse> refused_at_gate(const HttpRequest& request, const ServeOptions& options,
                                            bool open);
/// Fields for pages of other origins, where the request comes from one that is allowed.
HttpFields cross_origin_fields(const HttpRequest& request, const ServeOptions& options);

/// Takes as long for a wrong key as for the right one.
bool equal_keys(std::string_view given, std::string_view key);
/// Of "[::1]:8080" "::1", of "localhost:80" "localhost".
std::string host_of(std::string_view authority);
bool is_address(const std::string& host);
bool is_loopback(const std::string& host);

}  // namespace weft::serve
