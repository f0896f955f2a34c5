// HTTP as the rest of the room names it.
#pragma once

#include "weft/http/http.h"

namespace weft::serve {

using http::equal_ignoring_case;
using http::HttpFields, http::HttpRequest, http::HttpResponse, http::Exchange;

}  // namespace weft::serve
