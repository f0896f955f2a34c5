// What of the library's errors a client is told.
#pragma once

#include <string_view>

#include "weft/base/exceptions.h"
#include "weft/http/refusal.h"

namespace weft::serve {

using http::Refusal, http::error_json, http::error_response, http::valid_start;

Refusal refusal_of(std::string_view code, std::string_view message);
Refusal refusal_of(const Error& error);

}  // namespace weft::serve
